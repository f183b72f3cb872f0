#include "server/cluster/membership.h"

#include <utility>

#include "server/cluster/membership_thread.h"

namespace timecache::server {

ClusterMembership::ClusterMembership(
    MemberOptions options, Sharing sharing, int slots, ControlLog* log,
    const BootClock* clock, std::function<void(int slot, MemberRole)> on_role,
    std::function<void(int slot, const MemberEvent&)> on_event)
    : thread_(std::make_unique<MembershipThread>(
          std::move(options), sharing, slots, log, clock, std::move(on_role),
          std::move(on_event))) {
  for (int slot = 0; slot < thread_->slots(); ++slot) {
    members_.push_back(std::make_unique<Member>(thread_.get(), slot));
  }
}

ClusterMembership::~ClusterMembership() { Stop(); }

void ClusterMembership::Start() { thread_->Start(); }
void ClusterMembership::Stop() { thread_->Stop(); }
int ClusterMembership::slots() const { return thread_->slots(); }
Member* ClusterMembership::At(int slot) {
  return members_[static_cast<size_t>(slot)].get();
}
void ClusterMembership::Renew(int slot) { thread_->Renew(slot); }
void ClusterMembership::Yield() { thread_->YieldAll(); }
std::vector<SlotPlacement> ClusterMembership::GetPlacement() const {
  return thread_->GetPlacement();
}
std::string ClusterMembership::OwnerAddress(int slot) const {
  return thread_->OwnerAddress(slot);
}
uint64_t ClusterMembership::BeginHold(absl::Duration most) {
  return thread_->BeginHold(most);
}
absl::Status ClusterMembership::AwaitHold(uint64_t hold,
                                          absl::Duration timeout) {
  return thread_->AwaitHold(hold, timeout);
}
absl::Status ClusterMembership::EndCut(uint64_t hold, absl::Duration timeout) {
  return thread_->EndCut(hold, timeout);
}
void ClusterMembership::EndHold(uint64_t hold) { thread_->EndHold(hold); }
absl::Status ClusterMembership::CheckHold(uint64_t hold) const {
  return thread_->CheckHold(hold);
}
bool ClusterMembership::MayTrim(int slot) const {
  return thread_->MayTrim(slot);
}
bool ClusterMembership::MaySettle(int slot) const {
  return thread_->MaySettle(slot);
}
MembershipStatus ClusterMembership::GetStatus() const {
  return thread_->GetStatus();
}

}  // namespace timecache::server
