// Who serves which slot, as a test says: what brokers would decide.

#ifndef TIMECACHED_TESTS_PEER_TEST_SLOTS_H_
#define TIMECACHED_TESTS_PEER_TEST_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/store/store.h"
#include "server/peer/slot_map.h"

namespace timecache::test {

// The maps of each slot are the same whoever serves them: as if a node that takes a slot
// over had replayed all. At first slot i is node i % nodes'. Thread-safe.
class TestSlots {
 public:
  static constexpr size_t kNobody = SIZE_MAX;

  // `maps` are those of each slot; not owned.
  TestSlots(std::vector<server::Store*> maps, size_t nodes)
      : maps_(std::move(maps)), addresses_(nodes) {
    for (size_t slot = 0; slot < maps_.size(); ++slot) {
      owners_.push_back(slot % nodes);
    }
    for (size_t node = 0; node < nodes; ++node) {
      views_.push_back(std::make_unique<View>(this, node));
    }
  }
  TestSlots(const TestSlots&) = delete;
  TestSlots& operator=(const TestSlots&) = delete;

  // As a node sees it.
  server::SlotMap* ViewOf(size_t node) { return views_[node].get(); }

  void SetAddress(size_t node, const std::string& address)
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    addresses_[node] = address;
  }
  size_t OwnerOf(size_t slot) const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return owners_[slot];
  }
  // Of the slot's owner; empty: none.
  std::string OwnerAddress(size_t slot) const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const size_t owner = owners_[slot];
    return owner == kNobody ? "" : addresses_[owner];
  }
  // To a node, or kNobody.
  void Move(size_t slot, size_t to) ABSL_LOCKS_EXCLUDED(mu_) {
    std::map<uint64_t, std::function<void()>> wakes;
    {
      absl::MutexLock lock(&mu_);
      if (owners_[slot] == to) return;
      owners_[slot] = to;
      wakes.swap(wakes_[slot]);
    }
    for (const auto& [number, wake] : wakes) wake();
  }
  // How many wakes are to come.
  size_t Awaited() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    size_t awaited = 0;
    for (const auto& [slot, wakes] : wakes_) awaited += wakes.size();
    return awaited;
  }

 private:
  class View final : public server::SlotMap {
   public:
    View(TestSlots* all, size_t node) : all_(*all), node_(node) {}

    size_t slots() const override { return all_.maps_.size(); }
    std::shared_ptr<server::Store> Local(size_t slot) const override {
      absl::MutexLock lock(&all_.mu_);
      if (all_.owners_[slot] != node_) return nullptr;
      // Not owned.
      return {std::shared_ptr<void>(), all_.maps_[slot]};
    }
    bool Serves(size_t slot, const server::Store& /*store*/) const override {
      absl::MutexLock lock(&all_.mu_);
      return all_.owners_[slot] == node_;
    }
    uint64_t WhenServedNoMore(size_t slot, const server::Store& store,
                              std::function<void()> wake) override {
      if (!Serves(slot, store)) {
        wake();
        return 0;
      }
      absl::MutexLock lock(&all_.mu_);
      all_.wakes_[slot][++all_.last_wake_] = std::move(wake);
      return all_.last_wake_;
    }
    void Forget(size_t slot, uint64_t number) override {
      absl::MutexLock lock(&all_.mu_);
      all_.wakes_[slot].erase(number);
    }
    std::string OwnerAddress(size_t slot) const override {
      absl::MutexLock lock(&all_.mu_);
      const size_t owner = all_.owners_[slot];
      return owner == node_ || owner == kNobody ? "" : all_.addresses_[owner];
    }

   private:
    TestSlots& all_;
    const size_t node_;
  };

  const std::vector<server::Store*> maps_;
  std::vector<std::unique_ptr<View>> views_;
  mutable absl::Mutex mu_;
  std::vector<std::string> addresses_ ABSL_GUARDED_BY(mu_);
  std::vector<size_t> owners_ ABSL_GUARDED_BY(mu_);
  uint64_t last_wake_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<size_t, std::map<uint64_t, std::function<void()>>> wakes_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_PEER_TEST_SLOTS_H_
