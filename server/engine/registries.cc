#include "server/engine/registries.h"

#include <algorithm>

namespace timecache::server {

void Registries::Add(const RegistryMember& member) {
  absl::MutexLock lock(&mu_);
  members_.push_back(member);
}

void Registries::Remove(const Registry* registry) {
  absl::MutexLock lock(&mu_);
  const auto it = std::find_if(members_.begin(), members_.end(),
                               [registry](const RegistryMember& each) {
                                 return each.registry == registry;
                               });
  if (it == members_.end()) return;
  gone_sweeps_.Merge(it->reaper->sweeps());
  members_.erase(it);
}

void Registries::ForEach(
    absl::FunctionRef<void(const RegistryMember& member)> visit) const {
  absl::ReaderMutexLock lock(&mu_);
  for (const RegistryMember& each : members_) visit(each);
}

void Registries::ForEachMap(MapVisitor visit) const {
  struct Timed {
    std::shared_ptr<TimeCacheMap> map;
    int64_t now_us;
  };
  absl::ReaderMutexLock lock(&mu_);
  std::vector<Timed> maps;
  for (const RegistryMember& each : members_) {
    const int64_t now_us = each.clock->NowUs();
    for (auto& map : each.registry->List()) {
      maps.push_back({std::move(map), now_us});
    }
  }
  // Those of one are in order.
  if (members_.size() > 1) {
    std::sort(maps.begin(), maps.end(), [](const Timed& a, const Timed& b) {
      return a.map->name() < b.map->name();
    });
  }
  for (const Timed& each : maps) visit(each.map, each.now_us);
}

DurationHistogram Registries::sweeps() const {
  absl::ReaderMutexLock lock(&mu_);
  DurationHistogram sweeps = gone_sweeps_;
  for (const RegistryMember& each : members_) {
    sweeps.Merge(each.reaper->sweeps());
  }
  return sweeps;
}

}  // namespace timecache::server
