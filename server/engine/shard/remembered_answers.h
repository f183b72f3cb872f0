// The answers to requests with an idempotency id, for a while.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_REMEMBERED_ANSWERS_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_REMEMBERED_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/base/memory_budget.h"

namespace timecache::server {

// A key and an id, by their hashes. Two requests with the same ones are taken
// for one: of a million, with a probability of 10^-26.
struct AnswerId {
  uint64_t key_hash = 0;
  uint64_t id_hash = 0;

  bool operator==(const AnswerId&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const AnswerId& id) {
    return H::combine(std::move(state), id.key_hash, id.id_hash);
  }
};

// What a Result says of an operation that succeeded, as its fields of the same
// names. A view where it is passed on, owned where it is kept.
template <typename Value>
struct Answer {
  int64_t until_us = 0;
  uint64_t version = 0;
  int64_t number = 0;
  bool found = false;
  bool removed = false;
  bool duplicate = false;
  // Gather: whether it returned all parts, which are the value.
  bool has_parts = false;
  Value value = {};
};
using AnswerView = Answer<absl::string_view>;

// And what it is the answer to.
struct AnswerTo {
  AnswerId id;
  AnswerView answer;
};

// Each answer until a time of its own, in the order in which they were added.
// Beyond `max_ids`, or `max_bytes` of values, the first ones are forgotten.
//
// Not thread-safe. O(1) amortized, and O(bytes of the value).
class RememberedAnswers {
 public:
  using Kept = Answer<std::string>;

  void SetLimits(size_t max_ids, int64_t max_bytes) {
    max_ids_ = max_ids;
    max_bytes_ = max_bytes;
  }
  // Null if there is none.
  const Kept* Find(const AnswerId& id, int64_t now_us) const {
    const auto it = answers_.find(id);
    return it != answers_.end() && it->second.until_us > now_us ? &it->second
                                                                : nullptr;
  }
  void Add(const AnswerId& id, const AnswerView& answer, int64_t now_us) {
    Trim(now_us);
    Forget(id);
    answers_[id] = {answer.until_us,  answer.version,
                    answer.number,    answer.found,
                    answer.removed,   answer.duplicate,
                    answer.has_parts, std::string(answer.value)};
    order_.push_back({id, answer.until_us});
    bytes_ += static_cast<int64_t>(answer.value.size());
    while (order_.size() > max_ids_ ||
           (bytes_ > max_bytes_ && order_.size() > 1)) {
      DropFirst();
    }
    Charge();
  }
  // Forgets those whose time is over, up to the first whose time is not.
  void Trim(int64_t now_us) {
    while (!order_.empty() && order_.front().second <= now_us) DropFirst();
    Charge();
  }
  // Those that were remembered at `from_us` are for so much longer.
  void Skip(int64_t from_us, int64_t by_us) {
    for (auto& [id, answer] : answers_) {
      if (answer.until_us > from_us) answer.until_us += by_us;
    }
    for (auto& [id, until_us] : order_) {
      if (until_us > from_us) until_us += by_us;
    }
  }
  const absl::flat_hash_map<AnswerId, Kept>& all() const { return answers_; }
  bool empty() const { return order_.empty(); }
  int64_t memory_bytes() const { return charged_bytes_; }

 private:
  // One in both containers, with the room that these have.
  static constexpr int64_t kAnswerBytes = 150;
  static constexpr size_t kChargeStep = 64;

  void Forget(const AnswerId& id) {
    const auto it = answers_.find(id);
    if (it == answers_.end()) return;
    bytes_ -= static_cast<int64_t>(it->second.value.size());
    answers_.erase(it);
  }
  // Unless it was added again.
  void DropFirst() {
    const auto [id, until_us] = order_.front();
    const auto it = answers_.find(id);
    if (it != answers_.end() && it->second.until_us == until_us) Forget(id);
    order_.pop_front();
  }
  void Charge() {
    const size_t steps = (order_.size() + kChargeStep - 1) / kChargeStep;
    const int64_t bytes =
        static_cast<int64_t>(steps * kChargeStep) * kAnswerBytes + bytes_;
    if (bytes == charged_bytes_) return;
    charged_bytes_ = bytes;
    charge_.Set(bytes);
  }

  size_t max_ids_ = 0;
  int64_t max_bytes_ = 0;
  absl::flat_hash_map<AnswerId, Kept> answers_;
  // With the time until which each was added.
  std::deque<std::pair<AnswerId, int64_t>> order_;
  // Of the values.
  int64_t bytes_ = 0;
  int64_t charged_bytes_ = 0;
  MemoryCharge charge_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_REMEMBERED_ANSWERS_H_
