#include "server/main/slots.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/base/thread_annotations.h"

namespace timecache::server {
namespace {

// How soon a node does what the cluster wants of it now.
constexpr std::chrono::milliseconds kWishInterval{100};
constexpr std::chrono::milliseconds kBuryInterval{50};

}  // namespace

Slots::Slots(Cluster* cluster, std::function<config::v1::ServerConfig()> config,
             std::shared_ptr<ServerAccount> account, Work work)
    : cluster_(*cluster),
      config_(std::move(config)),
      account_(std::move(account)),
      opened_(std::move(work.open)),
      host_{cluster,
            [this](int slot, std::function<void()> wake) {
              return Open(slot, std::move(wake));
            },
            std::move(work.prepare), std::move(work.look),
            [this, retire = std::move(work.retire)](int slot, SlotMaps* maps) {
              retire(slot, maps);
              WakeReaders(maps->store);
            }} {
  for (int slot = 0; slot < cluster->slots(); ++slot) {
    slots_.push_back(std::make_unique<Slot>(slot, &host_));
  }
}

Slots::~Slots() {
  follow_ = nullptr;
  slots_.clear();
  AwaitUnused();
}

// The last users are about to let go.
void Slots::AwaitUnused() {
  absl::MutexLock lock(&graves_mu_);
  graves_mu_.Await(absl::Condition(
      +[](int* open) { return *open == 0; }, &open_));
}

void Slots::Start() {
  bury_ = undertaker_.Every(kBuryInterval, [this] { EmptyGraves(); });
  cluster_.membership().Start();
  follow_ = housekeeping_.Every(kWishInterval, [this] { Follow(); });
}

// --- What is open.

absl::StatusOr<std::shared_ptr<SlotMaps>> Slots::Open(
    int slot, std::function<void()> wake) {
  auto maps =
      SlotMaps::Open(config_(), &cluster_, slot, account_, std::move(wake));
  if (!maps.ok()) return maps.status();
  opened_(slot, maps->get());
  {
    absl::MutexLock lock(&graves_mu_);
    ++open_;
  }
  return std::shared_ptr<SlotMaps>(maps->release(), [this](SlotMaps* last) {
    Bury(std::unique_ptr<SlotMaps>(last));
  });
}

// The last user may be a thread of the maps' own, which their end waits for.
void Slots::Bury(std::unique_ptr<SlotMaps> maps) {
  absl::MutexLock lock(&graves_mu_);
  graves_.push_back(std::move(maps));
}

void Slots::EmptyGraves() {
  std::vector<std::unique_ptr<SlotMaps>> graves;
  {
    absl::MutexLock lock(&graves_mu_);
    graves.swap(graves_);
  }
  const int count = static_cast<int>(graves.size());
  graves.clear();
  absl::MutexLock lock(&graves_mu_);
  open_ -= count;
}

// --- What the cluster wants.

void Slots::Follow() {
  const std::vector<SlotPlacement> placement =
      cluster_.membership().GetPlacement();
  int moving = 0;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const SlotPlacement& place = placement[slot];
    const bool moves = place.is_mine && !place.wanted_owner.empty() &&
                       place.wanted_owner != cluster_.config().node();
    moving += moves ? 1 : 0;
    slots_[slot]->Want(place.host, moves ? place.wanted_owner : "");
  }
  moving_ = moving;
  if (!ready_) ready_ = IsReady();
}

bool Slots::IsReady() const {
  const MembershipStatus status = cluster_.membership().GetStatus();
  const std::string& self = cluster_.config().node();
  return std::all_of(
      status.slots.begin(), status.slots.end(), [&](const SlotStatus& slot) {
        const SlotPlacement& place = slot.placement;
        const auto is_ready_here = [&](const ControlState::Node& node) {
          return node.name == self && node.ready;
        };
        return !place.owner.empty() &&
               (!place.host || place.is_mine ||
                std::any_of(slot.standbys.begin(), slot.standbys.end(),
                            is_ready_here));
      });
}

void Slots::Yield() { cluster_.membership().Yield(); }

void Slots::End(absl::Duration patience) {
  follow_ = nullptr;
  for (const auto& slot : slots_) slot->BeginEnd(patience);
  for (const auto& slot : slots_) slot->End();
}

void Slots::HandOver(const std::string& to, ClusterSource::HandedOver done) {
  struct All {
    absl::Mutex mu;
    size_t left ABSL_GUARDED_BY(mu);
    // The first error, and the last successor.
    absl::Status error ABSL_GUARDED_BY(mu);
    std::string successor ABSL_GUARDED_BY(mu);
    ClusterSource::HandedOver done;
  };
  std::vector<std::shared_ptr<SlotMaps>> owned;
  VisitServed([&](int, const std::shared_ptr<SlotMaps>& maps) {
    owned.push_back(maps);
  });
  if (owned.empty()) {
    return done(absl::FailedPreconditionError("this node owns no slot"));
  }
  const auto all = std::make_shared<All>();
  {
    absl::MutexLock lock(&all->mu);
    all->left = owned.size();
  }
  all->done = std::move(done);
  for (const auto& maps : owned) {
    maps->term->HandOver(to, [all](const absl::StatusOr<std::string>& handed) {
      absl::StatusOr<std::string> outcome;
      {
        absl::MutexLock lock(&all->mu);
        all->error.Update(handed.status());
        if (handed.ok()) all->successor = *handed;
        if (--all->left > 0) return;
        outcome = all->successor;
        if (!all->error.ok()) outcome = all->error;
      }
      all->done(outcome);
    });
  }
}

SharedClusterStatus Slots::GetStatus() const {
  return {cluster_.config().node(), cluster_.membership().GetStatus(),
          GetClusterEvents(), cluster_.faults().size()};
}

// --- SlotMap.

std::shared_ptr<Store> Slots::Local(size_t slot) const {
  std::shared_ptr<SlotMaps> maps = slots_[slot]->serving();
  if (maps == nullptr || !maps->term->CheckService().ok()) return nullptr;
  Store* const store = &maps->store;
  return std::shared_ptr<Store>(std::move(maps), store);
}

bool Slots::Serves(size_t slot, const Store& store) const {
  const std::shared_ptr<SlotMaps> maps = slots_[slot]->serving();
  return maps != nullptr && &maps->store == &store &&
         maps->term->CheckService().ok();
}

const Clock* Slots::ClockOf(size_t slot, const Store& store) const {
  const std::shared_ptr<SlotMaps> maps = slots_[slot]->serving();
  return maps != nullptr && &maps->store == &store ? &maps->clock : nullptr;
}

uint64_t Slots::WhenServedNoMore(size_t slot, const Store& store,
                                 std::function<void()> wake) {
  {
    absl::MutexLock lock(&wakes_mu_);
    const std::shared_ptr<SlotMaps> maps = slots_[slot]->serving();
    // Else it has ended, or WakeReaders comes after this.
    if (maps != nullptr && &maps->store == &store) {
      wakes_[++last_wake_] = {&store, std::move(wake)};
      return last_wake_;
    }
  }
  wake();
  return 0;
}

void Slots::Forget(size_t /*slot*/, uint64_t number) {
  absl::MutexLock lock(&wakes_mu_);
  wakes_.erase(number);
}

void Slots::WakeReaders(const Store& store) {
  absl::MutexLock lock(&wakes_mu_);
  for (auto it = wakes_.begin(); it != wakes_.end();) {
    if (it->second.first != &store) {
      ++it;
      continue;
    }
    it->second.second();
    it = wakes_.erase(it);
  }
}

std::string Slots::OwnerAddress(size_t slot) const {
  return cluster_.membership().OwnerAddress(static_cast<int>(slot));
}

void Slots::VisitServed(
    absl::FunctionRef<void(int slot, const std::shared_ptr<SlotMaps>&)> visit)
    const {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (const auto maps = slots_[slot]->serving()) {
      visit(static_cast<int>(slot), maps);
    }
  }
}

}  // namespace timecache::server
