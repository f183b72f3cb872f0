// Which partitions of a namespace a reader of all of them has to read.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_READY_PARTITIONS_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_READY_PARTITIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// A set of partitions: bit i is partition i.
using PartitionSet = uint64_t;
static_assert(kMaxPartitions <= 64);

inline PartitionSet SetOf(size_t partition) {
  return PartitionSet{1} << partition;
}

// What the wakes of the partitions' readers set. They may come from any thread,
// under locks of the engine, and after the reader is gone. Thread-safe, without
// a lock.
class ReadyPartitions {
 public:
  // `wake` is the reader's.
  explicit ReadyPartitions(std::function<void()> wake)
      : wake_(std::move(wake)) {}
  ReadyPartitions(const ReadyPartitions&) = delete;
  ReadyPartitions& operator=(const ReadyPartitions&) = delete;

  // Of one partition's reader.
  static std::function<void()> WakeOf(
      const std::shared_ptr<ReadyPartitions>& ready, size_t partition) {
    return [ready, partition] { ready->Wake(SetOf(partition)); };
  }

  // These have something to read; of none the reader is woken all the same.
  void Wake(PartitionSet partitions) {
    if (partitions != 0) ready_.fetch_or(partitions);
    if (awaited_.load() && awaited_.exchange(false)) wake_();
  }

  // Those that are ready, which are not any more.
  PartitionSet Take() { return ready_.load() == 0 ? 0 : ready_.exchange(0); }

  // The reader has found nothing more: the next Wake calls `wake`, once. False
  // if one has come before.
  bool Await() {
    awaited_.store(true);
    if (ready_.load() == 0) return true;
    StopAwaiting();
    return false;
  }
  void StopAwaiting() { awaited_.store(false); }

 private:
  const std::function<void()> wake_;
  std::atomic<PartitionSet> ready_{0};
  std::atomic<bool> awaited_{false};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_READY_PARTITIONS_H_
