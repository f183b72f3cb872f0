// The maps that are measured side by side, behind one shape: the engine, a
// plain hash map, the same behind a lock, and Storm's algorithm written
// plainly.
//
// Each has B buckets of time and is told when to go on to the next: NextBucket
// lets no entry die, DropOldest kills the oldest bucket and tells of each of
// its entries. Not thread-safe.

#ifndef TIMECACHED_BENCH_ENGINE_ENGINE_PEERS_H_
#define TIMECACHED_BENCH_ENGINE_ENGINE_PEERS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server::bench {

class EnginePeer {
 public:
  static constexpr const char* kName = "engine";
  static constexpr int64_t kTtlUs = 3600 * kMicrosPerSecond;

  explicit EnginePeer(int num_buckets) : EnginePeer(Options(num_buckets)) {}
  explicit EnginePeer(const NamespaceOptions& options)
      : width_us_(BucketWidthUs(options)),
        now_us_(width_us_ + 1),
        map_(std::make_unique<TimeCacheMap>("bench", options, nullptr,
                                            now_us_)) {}

  static NamespaceOptions Options(int num_buckets) {
    NamespaceOptions options;
    options.ttl_us = kTtlUs;
    options.num_buckets = num_buckets;
    return options;
  }

  void Put(const std::string& key, const std::string& value) {
    map_->Apply(Operation::Put(key, value), now_us_, &result_);
  }
  // As the others: straight into the newest bucket.
  void Load(const std::string& key, const std::string& value) {
    Put(key, value);
  }
  bool Get(const std::string& key, std::string* value) {
    map_->Apply(Operation::Get(key), now_us_, &result_);
    value->swap(result_.entry.value);
    return result_.found;
  }
  bool Remove(const std::string& key) {
    map_->Apply(Operation::Remove(key), now_us_, &result_);
    return result_.found;
  }
  void NextBucket() { now_us_ += width_us_; }

  TimeCacheMap& map() { return *map_; }
  int64_t now_us() const { return now_us_; }

 private:
  const int64_t width_us_;
  int64_t now_us_;
  std::unique_ptr<TimeCacheMap> map_;
  Result result_;
};

// The engine as a request with many operations uses it: kBatch at a time.
class EngineBatchPeer {
 public:
  static constexpr const char* kName = "engine_batch";
  static constexpr size_t kBatch = 64;

  explicit EngineBatchPeer(int num_buckets)
      : peer_(num_buckets), results_(kBatch) {
    operations_.reserve(kBatch);
  }

  // Key and value must stay until Flush.
  void Put(const std::string& key, const std::string& value) {
    Add(Operation::Put(key, value));
  }
  void Load(const std::string& key, const std::string& value) {
    Put(key, value);
  }
  void Remove(const std::string& key) { Add(Operation::Remove(key)); }
  void Flush() {
    if (operations_.empty()) return;
    peer_.map().ApplyBatch(operations_, peer_.now_us(),
                           absl::MakeSpan(results_.data(), operations_.size()));
    operations_.clear();
  }
  // Counts what it finds.
  void GetAll(const std::vector<std::string>& keys, int64_t* found,
              size_t* bytes) {
    for (size_t i = 0; i < keys.size();) {
      const size_t first = i;
      for (; i < keys.size() && i < first + kBatch; ++i) {
        operations_.push_back(Operation::Get(keys[i]));
      }
      Flush();
      for (size_t j = 0; j < i - first; ++j) {
        *found += results_[j].found;
        *bytes += results_[j].entry.value.size();
      }
    }
  }
  void NextBucket() {
    Flush();
    peer_.NextBucket();
  }

 private:
  void Add(const Operation& operation) {
    operations_.push_back(operation);
    if (operations_.size() == kBatch) Flush();
  }

  EnginePeer peer_;
  std::vector<Operation> operations_;
  std::vector<Result> results_;
};

// Knows no time: an entry stays until it is erased. Takes no lock.
class FlatPeer {
 public:
  static constexpr const char* kName = "flat_hash_map";

  explicit FlatPeer(int /*num_buckets*/) {}

  void Put(const std::string& key, const std::string& value) {
    map_.insert_or_assign(key, value);
  }
  void Load(const std::string& key, const std::string& value) {
    Put(key, value);
  }
  bool Get(const std::string& key, std::string* value) {
    const auto it = map_.find(key);
    if (it == map_.end()) return false;
    value->assign(it->second);
    return true;
  }
  bool Remove(const std::string& key) { return map_.erase(key) > 0; }
  void NextBucket() {}

 private:
  absl::flat_hash_map<std::string, std::string> map_;
};

// What a program would have to do at the least to share it among threads.
class LockedFlatPeer {
 public:
  static constexpr const char* kName = "flat_hash_map_locked";

  explicit LockedFlatPeer(int num_buckets) : map_(num_buckets) {}

  void Put(const std::string& key, const std::string& value) {
    absl::MutexLock lock(&mu_);
    map_.Put(key, value);
  }
  void Load(const std::string& key, const std::string& value) {
    Put(key, value);
  }
  bool Get(const std::string& key, std::string* value) {
    absl::MutexLock lock(&mu_);
    return map_.Get(key, value);
  }
  bool Remove(const std::string& key) {
    absl::MutexLock lock(&mu_);
    return map_.Remove(key);
  }
  void NextBucket() {}

 private:
  absl::Mutex mu_;
  FlatPeer map_;
};

// Storm's TimeCacheMap: put stores into the first map and removes from the
// others; get looks through all. Takes no lock, which Storm's does.
class StormPeer {
 public:
  static constexpr const char* kName = "storm";

  explicit StormPeer(int num_buckets) : buckets_(num_buckets) {}

  void Put(const std::string& key, const std::string& value) {
    auto bucket = buckets_.begin();
    bucket->insert_or_assign(key, value);
    for (++bucket; bucket != buckets_.end(); ++bucket) bucket->erase(key);
  }
  // A put of a key that is known to be in no bucket.
  void Load(const std::string& key, const std::string& value) {
    buckets_.front().insert_or_assign(key, value);
  }
  bool Get(const std::string& key, std::string* value) {
    for (const auto& bucket : buckets_) {
      const auto it = bucket.find(key);
      if (it == bucket.end()) continue;
      value->assign(it->second);
      return true;
    }
    return false;
  }
  bool Remove(const std::string& key) {
    for (auto& bucket : buckets_) {
      if (bucket.erase(key) > 0) return true;
    }
    return false;
  }
  // Rotates; in the loads that are measured the oldest bucket is empty then.
  void NextBucket() {
    DropOldest([](const std::string&, const std::string&) {});
  }
  template <typename Callback>
  void DropOldest(Callback&& expired) {
    const auto dead = std::move(buckets_.back());
    buckets_.pop_back();
    buckets_.emplace_front();
    for (const auto& [key, value] : dead) expired(key, value);
  }

 private:
  std::list<std::unordered_map<std::string, std::string>> buckets_;
};

}  // namespace timecache::server::bench

#endif  // TIMECACHED_BENCH_ENGINE_ENGINE_PEERS_H_
