#include "server/engine/partition_keeper.h"

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {

// What answers that come late use, too.
class PartitionKeeper::Rounds
    : public std::enable_shared_from_this<PartitionKeeper::Rounds> {
 public:
  Rounds(uint32_t slot, uint32_t slots, Registry* registry, Store* store,
         const Clock* clock)
      : slot_(slot),
        slots_(slots),
        registry_(registry),
        store_(store),
        clock_(clock) {}

  void Begin() ABSL_LOCKS_EXCLUDED(mu_);
  void End() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    tasks_.clear();
  }

 private:
  using Map = std::shared_ptr<TimeCacheMap>;
  // A partition that a namespace here has elsewhere; or a namespace that is to be
  // asked for, with its later partitions here.
  struct Task {
    std::string name;
    Map first;
    int partition = 0;
    std::vector<Map> later = {};
  };
  // A map that may belong to no namespace.
  struct Doubt {
    std::weak_ptr<TimeCacheMap> map;
    int64_t since_us = 0;
  };

  void ListTasks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool KeepHere(const Map& first, int partition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunTasks() ABSL_LOCKS_EXCLUDED(mu_);
  void EndTask() ABSL_LOCKS_EXCLUDED(mu_);
  void Ask(std::shared_ptr<Task> task);
  void Keep(const std::shared_ptr<Task>& task,
            const absl::StatusOr<NamespaceInfo>& info);
  void Judge(const Task& task, const absl::StatusOr<NamespaceInfo>& info)
      ABSL_LOCKS_EXCLUDED(mu_);

  const uint32_t slot_;
  const uint32_t slots_;
  Registry* const registry_;
  Store* const store_;
  const Clock* const clock_;

  // Held while the registry is used, never while the store is called.
  absl::Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  int64_t begun_us_ ABSL_GUARDED_BY(mu_) = kNeverUs;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  // Whether a thread starts tasks: those that end at once do not nest.
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_map<const TimeCacheMap*, Doubt> doubts_ ABSL_GUARDED_BY(mu_);
};

void PartitionKeeper::Rounds::Begin() {
  {
    absl::MutexLock lock(&mu_);
    const int64_t now_us = clock_->NowUs();
    if (ended_ || running_ || calls_ > 0 || !tasks_.empty() ||
        (begun_us_ != kNeverUs && now_us - begun_us_ < kRoundUs)) {
      return;
    }
    begun_us_ = now_us;
    ListTasks();
  }
  RunTasks();
}

void PartitionKeeper::Rounds::ListTasks() {
  absl::erase_if(doubts_,
                 [](const auto& each) { return each.second.map.expired(); });
  std::map<std::string, std::vector<Map>> later;
  for (const Map& map : registry_->List()) {
    if (map->partition() != 0) {
      later[map->namespace_name()].push_back(map);
      continue;
    }
    const int count = map->options().num_partitions;
    for (int i = 1; i < count; ++i) {
      if (KeepHere(map, i)) continue;
      tasks_.push_back({PartitionAddress(map->name(), i, count), map, i});
    }
  }
  for (auto& [name, maps] : later) {
    tasks_.push_back({name, nullptr, 0, std::move(maps)});
  }
}

// One of this slot, whose creation the first partition's would forbid the store.
bool PartitionKeeper::Rounds::KeepHere(const Map& first, int partition) {
  const std::string name = PartitionName(first->name(), partition);
  if (SlotOfMap(name, slots_) != slot_) return false;
  const NamespaceOptions options = first->options();
  const auto map = registry_->Find(name);
  if (!map.ok()) {
    registry_->CreateConfigured(name, options).status().IgnoreError();
  } else if (const NamespaceOptions is = (*map)->options();
             // One of another number is judged.
             is.num_partitions == options.num_partitions && is != options) {
    registry_
        ->Update(name,
                 [&first](NamespaceOptions* to) {
                   *to = first->options();
                   return absl::OkStatus();
                 })
        .status()
        .IgnoreError();
  }
  return true;
}

void PartitionKeeper::Rounds::RunTasks() {
  {
    absl::MutexLock lock(&mu_);
    if (std::exchange(running_, true)) return;
  }
  for (;;) {
    auto task = std::make_shared<Task>();
    {
      absl::MutexLock lock(&mu_);
      if (tasks_.empty() || calls_ == kMaxCalls) {
        running_ = false;
        return;
      }
      *task = std::move(tasks_.front());
      tasks_.pop_front();
      ++calls_;
    }
    Ask(std::move(task));
  }
}

void PartitionKeeper::Rounds::EndTask() {
  {
    absl::MutexLock lock(&mu_);
    --calls_;
  }
  RunTasks();
}

void PartitionKeeper::Rounds::Ask(std::shared_ptr<Task> task) {
  const std::string& name = task->name;
  store_->GetNamespace(name, /*include_statistics=*/false,
                       [self = shared_from_this(), task = std::move(task)](
                           const absl::StatusOr<NamespaceInfo>& info) mutable {
                         if (task->first != nullptr) {
                           return self->Keep(task, info);
                         }
                         self->Judge(*task, info);
                         self->EndTask();
                       });
}

// An error of a change is looked at again in the next round.
void PartitionKeeper::Rounds::Keep(const std::shared_ptr<Task>& task,
                                   const absl::StatusOr<NamespaceInfo>& info) {
  const NamespaceOptions options = task->first->options();
  const bool missing = absl::IsNotFound(info.status());
  bool changes = missing || (info.ok() && info->options != options);
  {
    absl::MutexLock lock(&mu_);
    if (ended_) return;
    const auto first = registry_->Find(task->first->name());
    // It may have been deleted meanwhile.
    changes &= first.ok() && *first == task->first;
  }
  if (!changes) return EndTask();
  const std::string& name = task->name;
  Store::DoneWith<NamespaceInfo> done =
      [self = shared_from_this(),
       task](const absl::StatusOr<NamespaceInfo>& /*seen next time*/) {
        self->EndTask();
      };
  if (missing) return store_->CreateNamespace(name, options, std::move(done));
  store_->UpdateNamespace(
      name,
      [first = task->first](NamespaceOptions* to) {
        *to = first->options();
        return absl::OkStatus();
      },
      std::move(done));
}

void PartitionKeeper::Rounds::Judge(const Task& task,
                                    const absl::StatusOr<NamespaceInfo>& info) {
  if (!info.ok() && !absl::IsNotFound(info.status())) return;
  absl::MutexLock lock(&mu_);
  if (ended_) return;
  const int64_t now_us = clock_->NowUs();
  for (const Map& map : task.later) {
    const int count = map->options().num_partitions;
    if (info.ok() && info->options.num_partitions == count) {
      doubts_.erase(map.get());
      continue;
    }
    Doubt& doubt = doubts_[map.get()];
    // Another one may have had this address.
    if (doubt.map.lock() != map) doubt = {map, now_us};
    if (now_us - doubt.since_us < kDoubtUs) continue;
    registry_->DeleteMap(map).IgnoreError();
    doubts_.erase(map.get());
  }
}

PartitionKeeper::PartitionKeeper(uint32_t slot, uint32_t slots,
                                 Registry* registry, Store* store,
                                 const Clock* clock)
    : rounds_(std::make_shared<Rounds>(slot, slots, registry, store, clock)) {}

PartitionKeeper::~PartitionKeeper() { rounds_->End(); }

void PartitionKeeper::Look() { rounds_->Begin(); }

}  // namespace timecache::server
