// A journal that several nodes share, in memory: of which one appends.

#ifndef TIMECACHED_TESTS_SUPPORT_JOURNAL_SHARED_LOG_H_
#define TIMECACHED_TESTS_SUPPORT_JOURNAL_SHARED_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/log/journal.h"

namespace timecache::server {

// The records. Thread-safe.
class SharedLog {
 public:
  explicit SharedLog(uint32_t partitions)
      : count_(partitions), partitions_(partitions) {}

  // A node's. The log must outlive it.
  std::unique_ptr<Journal> Open(int node) {
    return std::make_unique<Node>(this, node);
  }
  // Whose appends count from now on.
  void SetOwner(int node) {
    absl::MutexLock lock(&mu_);
    owner_ = node;
  }
  // Appends are stored, and not answered before AnswerAll.
  void Hold() {
    absl::MutexLock lock(&mu_);
    holds_ = true;
  }
  size_t held() {
    absl::MutexLock lock(&mu_);
    return held_.size();
  }
  void AnswerAll() {
    std::vector<absl::AnyInvocable<void()>> held;
    {
      absl::MutexLock lock(&mu_);
      holds_ = false;
      held.swap(held_);
    }
    for (auto& answer : held) answer();
  }
  uint64_t records() {
    absl::MutexLock lock(&mu_);
    uint64_t records = 0;
    for (const auto& partition : partitions_) records += partition.size();
    return records;
  }

 private:
  class Node final : public Journal {
   public:
    Node(SharedLog* log, int node) : log_(*log), node_(node) {}

    uint32_t partitions() const override { return log_.count_; }
    void Append(uint32_t partition, std::vector<std::string> records,
                Durability /*durability*/, AppendDone done) override {
      absl::StatusOr<uint64_t> position =
          absl::FailedPreconditionError("another node owns");
      {
        absl::MutexLock lock(&log_.mu_);
        if (log_.owner_ == node_) {
          auto& to = log_.partitions_[partition];
          position = to.size();
          to.insert(to.end(), records.begin(), records.end());
        }
        if (log_.holds_) {
          log_.held_.push_back([position = std::move(position),
                                records = std::move(records),
                                done = std::move(done)]() mutable {
            done(std::move(position), std::move(records));
          });
          return;
        }
      }
      done(std::move(position), std::move(records));
    }
    absl::Status Read(absl::Span<const ReadFrom> from,
                      Visitor visit) const override {
      for (const ReadFrom& each : from) {
        std::vector<std::string> records;
        {
          absl::MutexLock lock(&log_.mu_);
          const auto& all = log_.partitions_[each.partition];
          records.assign(all.begin() + static_cast<ptrdiff_t>(each.position),
                         all.end());
        }
        uint64_t position = each.position;
        for (const std::string& record : records) {
          absl::Status status = visit(each.partition, position++, record);
          if (!status.ok()) return status;
        }
      }
      return absl::OkStatus();
    }
    absl::Status TrimBefore(uint32_t /*partition*/,
                            uint64_t /*position*/) override {
      return absl::OkStatus();
    }
    uint64_t First(uint32_t /*partition*/) const override { return 0; }
    uint64_t End(uint32_t partition) const override {
      absl::MutexLock lock(&log_.mu_);
      return log_.partitions_[partition].size();
    }
    bool low_space() const override { return false; }
    uint64_t checkpoint_bytes_max() const override { return UINT64_MAX; }
    bool IsOwner() const override {
      absl::MutexLock lock(&log_.mu_);
      return log_.owner_ == node_;
    }
    JournalStatistics statistics() const override { return {}; }

   private:
    SharedLog& log_;
    const int node_;
  };

  const uint32_t count_;
  absl::Mutex mu_;
  int owner_ ABSL_GUARDED_BY(mu_) = 0;
  bool holds_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<absl::AnyInvocable<void()>> held_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<std::string>> partitions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_JOURNAL_SHARED_LOG_H_
