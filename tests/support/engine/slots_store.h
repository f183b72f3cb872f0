// The slots of a cluster in one process: a registry each, and a store of all maps.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_SLOTS_STORE_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_SLOTS_STORE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/engine/store/partitions.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// Puts, and describes, creates, updates and lists namespaces, by a map's name or its
// PartitionAddress; other calls are UNIMPLEMENTED. Thread-safe.
class SlotsStore final : public Store {
 public:
  SlotsStore(size_t slots, const Clock* clock) {
    for (size_t i = 0; i < slots; ++i) {
      slots_.push_back(std::make_unique<Slot>(clock));
      slots_.back()->registry.LeaveRoutesToCaller();
    }
  }

  Registry& registry(size_t slot) { return slots_[slot]->registry; }
  Reaper& reaper(size_t slot) { return slots_[slot]->reaper; }
  // Of a map.
  size_t SlotOf(absl::string_view map) const {
    return SlotOfMap(map, static_cast<uint32_t>(slots_.size()));
  }
  Registry& RegistryOf(absl::string_view map) { return registry(SlotOf(map)); }
  bool Has(absl::string_view map) { return RegistryOf(map).Find(map).ok(); }

  // What all calls have as their result from now on, unless it is OK.
  void Fail(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    failure_ = std::move(status);
  }
  // Calls wait until Release, which makes them on its thread.
  void Hold() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    held_ = true;
  }
  void Release() ABSL_LOCKS_EXCLUDED(mu_) {
    std::deque<std::function<void()>> calls;
    {
      absl::MutexLock lock(&mu_);
      held_ = false;
      calls.swap(waiting_);
    }
    for (const auto& call : calls) call();
  }
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return waiting_.size();
  }
  size_t calls() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return calls_;
  }

  using Store::Execute;
  void Execute(absl::string_view name, absl::Span<const Operation> operations,
               absl::Span<Result> results, BatchProgress* progress,
               Done done) override {
    Call(name, std::move(done),
         [=](Store& maps, const std::string& map, Done end) {
           maps.Execute(map, operations, results, progress, std::move(end));
         });
  }
  void CreateNamespace(absl::string_view name, NamespaceOptions options,
                       DoneWith<NamespaceInfo> done) override {
    Call(name, std::move(done),
         [options](Store& maps, const std::string& map, auto end) {
           maps.CreateNamespace(map, options, std::move(end));
         });
  }
  void GetNamespace(absl::string_view name, bool include_statistics,
                    DoneWith<NamespaceInfo> done) override {
    Call(name, std::move(done),
         [include_statistics](Store& maps, const std::string& map, auto end) {
           maps.GetNamespace(map, include_statistics, std::move(end));
         });
  }
  void UpdateNamespace(absl::string_view name,
                       OptionsChange<NamespaceOptions> change,
                       DoneWith<NamespaceInfo> done) override {
    Call(name, std::move(done),
         [change](Store& maps, const std::string& map, auto end) {
           maps.UpdateNamespace(map, change, std::move(end));
         });
  }
  void ListNamespaces(ListQuery query,
                      DoneWith<Page<NamespaceInfo>> done) override {
    Page<NamespaceInfo> all;
    for (const auto& slot : slots_) {
      slot->maps.ListNamespaces(
          query, [&all](absl::StatusOr<Page<NamespaceInfo>> page) {
            for (NamespaceInfo& info : page->items) {
              all.items.push_back(std::move(info));
            }
          });
    }
    done(std::move(all));
  }

  void ExecuteAtomic(absl::string_view, absl::Span<const Operation>,
                     absl::Span<Result>, Done done) override {
    done(None());
  }
  void GetSize(absl::string_view, DoneWith<NamespaceSize> done) override {
    done(None());
  }
  void Scan(absl::string_view, absl::string_view, int, int64_t, ScanPosition*,
            bool*, EntryVisitor, Done done) override {
    done(None());
  }
  void DeleteNamespace(absl::string_view, Done done) override { done(None()); }
  void RotateNamespace(absl::string_view, DoneWith<int64_t> done) override {
    done(None());
  }
  void GetDeaths(absl::string_view, DeathsQuery,
                 DoneWith<DeathsAhead> done) override {
    done(None());
  }
  void GetHotKeys(absl::string_view, size_t, DoneWith<HotKeys> done) override {
    done(None());
  }
  void CreateGroup(GroupName, NewGroup, DoneWith<GroupInfo> done) override {
    done(None());
  }
  void GetGroup(GroupName, bool, DoneWith<GroupInfo> done) override {
    done(None());
  }
  void ListGroups(absl::string_view, ListQuery,
                  DoneWith<Page<GroupInfo>> done) override {
    done(None());
  }
  void UpdateGroup(GroupName, OptionsChange<GroupOptions>,
                   DoneWith<GroupInfo> done) override {
    done(None());
  }
  void DeleteGroup(GroupName, Done done) override { done(None()); }
  void ListMembers(GroupName, DoneWith<std::vector<MemberInfo>> done) override {
    done(None());
  }
  void SeekGroup(GroupName, LogPosition, bool,
                 DoneWith<SeekResult> done) override {
    done(None());
  }
  void ListUnsettled(GroupName, UnsettledQuery,
                     DoneWith<UnsettledPage> done) override {
    done(None());
  }
  void Settle(GroupName, absl::Span<const Settlement>, absl::Span<SettleResult>,
              Done done) override {
    done(None());
  }
  void OpenLogs(absl::Span<const std::string>, LogStart, const LogPoints&, Wake,
                DoneWith<Readers> done) override {
    done(None());
  }
  void OpenChanges(absl::Span<const std::string>, LogStart, const LogPoints&,
                   Wake, DoneWith<Readers> done) override {
    done(None());
  }
  void JoinGroups(absl::Span<const std::string>, Membership, Wake,
                  DoneWith<Readers> done) override {
    done(None());
  }
  void OpenExpiring(absl::Span<const std::string>, ExpiringOptions, Wake,
                    DoneWith<Readers> done) override {
    done(None());
  }
  StoreUsage GetUsage() const override { return {}; }
  void SetDeadLetterRight(DeadLetterRight) override {}

 private:
  struct Slot {
    explicit Slot(const Clock* clock)
        : reaper(clock),
          registry(clock, &reaper, RegistryLimits()),
          maps(&registry, clock) {}
    Reaper reaper;
    Registry registry;
    LocalStore maps;
  };

  static absl::Status None() {
    return absl::UnimplementedError("no such call");
  }

  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return failure_;
  }

  template <typename End, typename Make>
  void Call(absl::string_view name, End done, Make make)
      ABSL_LOCKS_EXCLUDED(mu_) {
    const auto end = std::make_shared<End>(std::move(done));
    auto call = [this, name = std::string(name), end, make] {
      if (absl::Status failure = this->failure(); !failure.ok()) {
        return (*end)(std::move(failure));
      }
      const PartitionPlace place = PlaceOf(name);
      const std::string map =
          PartitionName(place.namespace_name, place.partition);
      Slot& slot = *slots_[SlotOf(map)];
      const auto found = slot.registry.Find(map);
      if (place.count > 0 && found.ok() &&
          (*found)->options().num_partitions != place.count) {
        return (*end)(absl::UnavailableError("another number of partitions"));
      }
      make(slot.maps, map, std::move(*end));
    };
    {
      absl::MutexLock lock(&mu_);
      ++calls_;
      if (held_) {
        waiting_.push_back(std::move(call));
        return;
      }
    }
    call();
  }

  std::vector<std::unique_ptr<Slot>> slots_;
  mutable absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
  size_t calls_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_SLOTS_STORE_H_
