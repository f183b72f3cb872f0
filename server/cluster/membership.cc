#include "server/cluster/membership.h"

#include <utility>

#include "server/cluster/membership_thread.h"

namespace timecache::server {

Membership::Membership(
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

Membership::~Membership() { Stop(); }

void Membership::Start() { thread_->Start(); }
void Membership::Stop() { thread_->Stop(); }
int Membership::slots() const { return thread_->slots(); }
Member* Membership::At(int slot) {
  return members_[static_cast<size_t>(slot)].get();
}
void Membership::Renew(int slot) { thread_->Renew(slot); }
void Membership::Yield() { thread_->YieldAll(); }
std::vector<SlotPlacement> Membership::GetPlacement() const {
  return thread_->GetPlacement();
}
std::string Membership::OwnerAddress(int slot) const {
  return thread_->OwnerAddress(slot);
}
MembershipStatus Membership::GetStatus() const { return thread_->GetStatus(); }

}  // namespace timecache::server
