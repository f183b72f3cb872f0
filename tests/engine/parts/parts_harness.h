// A namespace of several partitions, as a PartitionedStore has it over maps of
// this process, with a time of its own.

#ifndef TIMECACHED_TESTS_ENGINE_PARTS_PARTS_HARNESS_H_
#define TIMECACHED_TESTS_ENGINE_PARTS_PARTS_HARNESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/engine/local_store.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/engine/store/partitions.h"
#include "tests/support/delayed_store.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {

// The result of a call that completes inline: `call(done)`.
template <typename T>
absl::StatusOr<T> Inline(const std::function<void(Store::DoneWith<T>)>& call) {
  absl::StatusOr<T> result;
  call([&result](absl::StatusOr<T> done) { result = std::move(done); });
  return result;
}
// That of a call that may complete on another thread.
template <typename T>
absl::StatusOr<T> Later(const std::function<void(Store::DoneWith<T>)>& call) {
  absl::StatusOr<T> result;
  absl::Notification is_done;
  call([&](absl::StatusOr<T> done) {
    result = std::move(done);
    is_done.Notify();
  });
  is_done.WaitForNotification();
  return result;
}
inline absl::Status InlineStatus(const std::function<void(Store::Done)>& call) {
  absl::Status result = absl::UnknownError("it does not complete inline");
  call([&result](absl::Status done) { result = std::move(done); });
  return result;
}

// Reads one namespace, and counts how often it is woken.
class TestReader {
 public:
  using Open = std::function<void(Store::Wake wake,
                                  Store::DoneWith<Store::Readers> done)>;
  explicit TestReader(const Open& open) {
    auto readers = Later<Store::Readers>([&](auto done) {
      open([wakes = wakes_] { ++*wakes; }, std::move(done));
    });
    status_ = readers.status();
    if (status_.ok()) reader_ = std::move(readers->front());
  }

  const absl::Status& status() const { return status_; }
  EventReader* operator->() { return reader_.get(); }
  void Leave(int64_t now_us, StreamEnd end) {
    reader_->Leave(now_us, end);
    reader_.reset();
  }
  // Since the last call.
  int TakeWakes() { return wakes_->exchange(0); }

 private:
  std::shared_ptr<std::atomic<int>> wakes_ =
      std::make_shared<std::atomic<int>>(0);
  absl::Status status_;
  std::unique_ptr<EventReader> reader_;
};

inline NewGroup GroupWith(const GroupOptions& options,
                          const LogPosition& start = {},
                          const std::string& created_by = {}) {
  return {options, start, created_by};
}

// What a message takes.
inline constexpr int64_t kMessageBytes = int64_t{1} << 20;

// The namespace is kName. Time stands still until the test moves it.
class PartsHarness final : private PartitionDirectory {
 public:
  static constexpr char kName[] = "orders";
  static constexpr char kGroup[] = "workers";
  static constexpr GroupName kGroupName = {kName, kGroup};

  explicit PartsHarness(int partitions,
                        const NamespaceOptions& options = Tens()) {
    auto names = std::make_shared<std::vector<std::string>>();
    for (int i = 0; i < partitions; ++i) {
      names->push_back(PartitionName(kName, i));
      maps_.push_back(registry_.Make(names->back(), options, {}));
      EXPECT_TRUE(registry_.Add(maps_.back()).ok());
    }
    if (partitions > 1) names_ = std::move(names);
  }

  Store& store() { return store_; }
  // The same, on maps that answer later.
  Store& late_store() { return late_store_; }
  Registry& registry() { return registry_; }
  int64_t now_us() const { return clock_.NowUs(); }
  int partitions() const { return static_cast<int>(maps_.size()); }
  TimeCacheMap& map(int partition) {
    return *maps_[static_cast<size_t>(partition)];
  }
  // Another number of partitions from now on, as of a namespace made anew.
  void TakePartitions(int count) {
    auto names = std::make_shared<std::vector<std::string>>();
    for (int i = 0; i < count; ++i) names->push_back(PartitionName(kName, i));
    names_ = count > 1 ? std::move(names) : nullptr;
  }

  int PartitionOf(absl::string_view key) const {
    return PartitionOfKey(key, static_cast<int>(maps_.size()));
  }
  // A key of that partition, with this at its end.
  std::string KeyIn(int partition, absl::string_view tail) const {
    for (int i = 0;; ++i) {
      std::string key = std::to_string(i) + "-" + std::string(tail);
      if (PartitionOf(key) == partition) return key;
    }
  }
  void Put(absl::string_view key, absl::string_view value = "v",
           int64_t ttl_us = 10 * kSecond) {
    const Result result =
        map(PartitionOf(key))
            .Apply(Operation::Put(key, value).WithTtl(ttl_us), now_us());
    ASSERT_TRUE(result.status.ok()) << result.status;
  }
  // All that is due has been published.
  void Pass(int64_t step_us) {
    clock_.AdvanceBy(step_us);
    reaper_.Flush();
  }

  TestReader OpenLog(LogStart start = LogStart::kNow,
                     const LogPoints& points = {}) {
    return TestReader([&](auto wake, auto done) {
      store_.OpenLogs(own_name_, start, points, wake, std::move(done));
    });
  }
  TestReader OpenExpiring(const ExpiringOptions& options) {
    return TestReader([&](auto wake, auto done) {
      store_.OpenExpiring(own_name_, options, wake, std::move(done));
    });
  }
  TestReader Join(const std::string& group, int max_in_flight,
                  bool fetches = false, LogStart start = LogStart::kEarliest) {
    return TestReader([&](auto wake, auto done) {
      store_.JoinGroups(own_name_,
                        {.group = group,
                         .max_in_flight = max_in_flight,
                         .start = start,
                         .created_by = "me",
                         .fetches = fetches},
                        wake, std::move(done));
    });
  }
  // As a watch has them from a token.
  static LogPoints PointsOf(const std::vector<LogPoint>& points) {
    LogPoints by_name;
    for (size_t i = 0; i < points.size(); ++i) {
      by_name[PartitionName(kName, static_cast<int>(i))] = points[i];
    }
    return by_name;
  }

 private:
  Names PartitionsOf(absl::string_view name) const override {
    return name == kName ? names_ : nullptr;
  }

  const std::vector<std::string> own_name_ = {kName};
  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  std::vector<std::shared_ptr<TimeCacheMap>> maps_;
  Names names_;
  LocalStore local_{&registry_, &clock_};
  PartitionedStore store_{&local_, this};
  test::DelayedStore delayed_{&local_};
  PartitionedStore late_store_{&delayed_, this};
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_ENGINE_PARTS_PARTS_HARNESS_H_
