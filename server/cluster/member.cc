#include "server/cluster/member.h"

#include <utility>

#include "server/cluster/membership_thread.h"

namespace timecache::server {

Member::Member(MemberOptions options, ControlLog* log, const BootClock* clock,
               std::function<void(MemberRole)> on_change,
               std::function<void(const MemberEvent&)> on_event)
    : own_(std::make_unique<MembershipThread>(
          std::move(options), Sharing::kOneOwner, /*slots=*/1, log, clock,
          [on_change = std::move(on_change)](int, MemberRole role) {
            if (on_change) on_change(role);
          },
          [on_event = std::move(on_event)](int, const MemberEvent& event) {
            if (on_event) on_event(event);
          })),
      thread_(*own_),
      slot_(0) {}

Member::Member(MembershipThread* thread, int slot)
    : thread_(*thread), slot_(slot) {}

Member::~Member() = default;

void Member::Start() { thread_.Start(); }
void Member::Stop() { thread_.Stop(); }
void Member::SetLag(uint64_t messages, absl::Duration age) {
  thread_.SetLag(slot_, messages, age);
}
void Member::SetJournal(uint64_t id) { thread_.SetJournal(slot_, id); }
void Member::Yield() { thread_.Yield(slot_); }
MemberRole Member::role() const { return thread_.role(slot_); }
absl::Status Member::AwaitFormerLease() {
  return thread_.AwaitFormerLease(slot_);
}
void Member::BeginService() { thread_.BeginService(slot_); }
absl::Status Member::CheckService() const {
  return thread_.CheckService(slot_);
}
bool Member::HoldsLease() const { return thread_.HoldsLease(slot_); }
void Member::Confirm(std::function<void(bool owns)> done) {
  thread_.Confirm(slot_, std::move(done));
}
void Member::EndService() { thread_.EndService(slot_); }
absl::Status Member::Release(const std::string& to, absl::Duration timeout) {
  return thread_.Release(slot_, to, timeout);
}
absl::Status Member::CheckSuccessor(const std::string& to) const {
  return thread_.CheckSuccessor(slot_, to);
}
Member::Status Member::GetStatus() const { return thread_.GetStatus(slot_); }

}  // namespace timecache::server
