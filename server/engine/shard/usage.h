// The account of live entries and their bytes, of one map or of the whole
// server.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_USAGE_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_USAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/engine/store/limit_hit.h"

namespace timecache::server {

// Counts up to two limits, never beyond them. A map's account may have a
// server's account as its parent: additions here are added there, too, unless
// SetJoined says otherwise.
//
// Thread-safe, without a lock. An addition is two atomic additions, four with a
// server's account.
class Usage {
 public:
  struct Amount {
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  // `server`: the parent account, or null. Not owned, outlives this.
  Usage(int64_t max_entries, int64_t max_bytes, Usage* server = nullptr)
      : max_entries_(max_entries),
        max_bytes_(max_bytes),
        server_(server),
        joined_(server != nullptr) {}

  // Adds what a put needs (bytes may be negative), or nothing if it would
  // exceed a limit. A change that does not grow is never refused, even above a
  // lowered limit.
  LimitHit Add(int64_t entries, int64_t bytes) {
    if (joined_) {
      const LimitHit hit = server_->Add(entries, bytes);
      if (hit == LimitHit::kMaxEntries) return LimitHit::kServerMaxEntries;
      if (hit == LimitHit::kMaxBytes) return LimitHit::kServerMaxBytes;
    }
    LimitHit hit = LimitHit::kNone;
    if (Passes(&entries_, entries, max_entries_)) {
      hit = LimitHit::kMaxEntries;
    } else if (Passes(&bytes_, bytes, max_bytes_)) {
      entries_.fetch_sub(entries, std::memory_order_relaxed);
      hit = LimitHit::kMaxBytes;
    }
    if (hit != LimitHit::kNone && joined_) {
      server_->Subtract(entries, bytes);
    }
    return hit;
  }

  // Whether an addition may be refused at all. Where it may not, additions can
  // be gathered and made at once.
  bool limited() const {
    return max_entries() != 0 || max_bytes() != 0 ||
           (server_ != nullptr && server_->limited());
  }

  // Whether Add would succeed now.
  bool Fits(const Amount& more) const {
    return (max_entries() == 0 || more.entries <= 0 ||
            entries() + more.entries <= max_entries()) &&
           (max_bytes() == 0 || more.bytes <= 0 ||
            bytes() + more.bytes <= max_bytes()) &&
           (server_ == nullptr || server_->Fits(more));
  }
  // Whether this could be added if everything that is counted here was gone.
  bool CouldFit(const Amount& alone) const {
    return CouldFit({0, 0}, alone) &&
           (server_ == nullptr ||
            server_->CouldFit({server_->entries() - entries(),
                               server_->bytes() - this->bytes()},
                              alone));
  }

  // Or, an entry of `bytes`, if nothing at all was counted, here and in the
  // parent.
  bool CouldEverFit(int64_t bytes) const {
    const Amount alone = {1, bytes};
    return CouldFit({0, 0}, alone) &&
           (server_ == nullptr || server_->CouldFit({0, 0}, alone));
  }

  void Subtract(int64_t entries, int64_t bytes) {
    entries_.fetch_sub(entries, std::memory_order_relaxed);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    if (joined_) server_->Subtract(entries, bytes);
  }

  // Whether what is counted here is in the parent, if there is one: it is from
  // the beginning. Whatever the parent's limits. To be called while no other
  // thread uses this.
  void SetJoined(bool joined) {
    if (server_ == nullptr || joined == joined_) return;
    joined_ = joined;
    const int sign = joined ? -1 : 1;
    server_->Subtract(sign * entries(), sign * bytes());
  }

  void SetLimits(int64_t max_entries, int64_t max_bytes) {
    max_entries_.store(max_entries, std::memory_order_relaxed);
    max_bytes_.store(max_bytes, std::memory_order_relaxed);
  }

  const Usage* server() const { return server_; }
  int64_t entries() const { return entries_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t max_entries() const {
    return max_entries_.load(std::memory_order_relaxed);
  }
  int64_t max_bytes() const {
    return max_bytes_.load(std::memory_order_relaxed);
  }

 private:
  bool CouldFit(const Amount& beside, const Amount& more) const {
    return (max_entries() == 0 ||
            beside.entries + more.entries <= max_entries()) &&
           (max_bytes() == 0 || beside.bytes + more.bytes <= max_bytes());
  }

  // Adds, and takes it back if the sum grew past a limit that is set.
  static bool Passes(std::atomic<int64_t>* sum, int64_t more,
                     const std::atomic<int64_t>& limit) {
    const int64_t after =
        sum->fetch_add(more, std::memory_order_relaxed) + more;
    const int64_t most = limit.load(std::memory_order_relaxed);
    if (most == 0 || more <= 0 || after <= most) return false;
    sum->fetch_sub(more, std::memory_order_relaxed);
    return true;
  }

  std::atomic<int64_t> entries_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> max_entries_;
  std::atomic<int64_t> max_bytes_;
  Usage* const server_;
  bool joined_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_USAGE_H_
