#include "server/cluster/membership_thread.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/safety_rule.h"

namespace timecache::server {
namespace {

// Until a record that the log did not take, as the one before is on its way, is tried
// again.
constexpr absl::Duration kBusyDelay = absl::Milliseconds(20);
// The longest wait: for heartbeats that are further apart.
constexpr absl::Duration kMaxPoll = absl::Seconds(1);
// How long a wait for the end of a lease goes by the steady clock, which stands still
// while the machine is suspended.
constexpr int64_t kMaxLeaseWaitNs = 20'000'000;

uint64_t RandomIncarnation() {
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(1)(random);
}

}  // namespace

MembershipThread::MembershipThread(
    MemberOptions options, Sharing sharing, int slots, ControlLog* log,
    const BootClock* clock, std::function<void(int slot, MemberRole)> on_role,
    std::function<void(int slot, const MemberEvent&)> on_event)
    : log_(log),
      clock_(clock),
      on_role_(std::move(on_role)),
      on_event_(std::move(on_event)),
      logic_(std::move(options), sharing, slots, RandomIncarnation),
      slots_(static_cast<size_t>(sharing == Sharing::kOneOwner ? 1 : slots)) {}

MembershipThread::~MembershipThread() { Stop(); }

void MembershipThread::Start() {
  thread_ = std::thread([this] { Run(); });
}

void MembershipThread::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  log_->Wake();
  thread_.join();
}

// --- Of all slots.

void MembershipThread::Renew(int slot) {
  {
    absl::MutexLock lock(&mu_);
    Slot& renewed = At(slot);
    NoteRole(slot);
    TakeConfirmed(UINT64_MAX, false, &renewed, &calls_);
    logic_.Renew(slot);
    renewed.service_ended = false;
    renewed.noted_role = MemberRole::kStandby;
    ++renewed.term;
    Publish(slot);
  }
  log_->Wake();
}

void MembershipThread::YieldAll() {
  {
    absl::MutexLock lock(&mu_);
    logic_.Yield();
  }
  log_->Wake();
}

std::vector<SlotPlacement> MembershipThread::GetPlacement() const {
  absl::MutexLock lock(&mu_);
  return logic_.GetPlacement();
}

std::string MembershipThread::OwnerAddress(int slot) const {
  absl::MutexLock lock(&mu_);
  const MemberLogic& member = logic_.At(slot);
  const bool is_mine = member.role() == MemberRole::kTakingOver ||
                       member.role() == MemberRole::kOwner;
  return is_mine && !At(slot).service_ended ? "" : member.OwnerAddress();
}

MembershipStatus MembershipThread::GetStatus() const {
  absl::MutexLock lock(&mu_);
  return logic_.Status(clock_->NowNs());
}

// --- What is held.

uint64_t MembershipThread::SayHolds() {
  bool holds = false;
  bool cuts = false;
  for (const auto& [_, hold] : holds_) {
    if (!hold.ended.ok()) continue;
    holds = true;
    cuts = cuts || hold.cuts;
  }
  return logic_.SetHold(holds, cuts);
}

void MembershipThread::EndOldHolds() {
  if (holds_.empty()) return;
  const int64_t now_ns = clock_->NowNs();
  bool ended = false;
  for (auto& [_, hold] : holds_) {
    if (!hold.ended.ok() || hold.until_ns > now_ns) continue;
    hold.ended = absl::DeadlineExceededError("the hold's time is over");
    ended = true;
  }
  if (ended) SayHolds();
}

void MembershipThread::NoteHolds() {
  for (auto& [_, hold] : holds_) {
    if (!hold.lapses && logic_.read_number() >= hold.number) {
      hold.lapses = logic_.lapses();
    } else if (hold.lapses && *hold.lapses != logic_.lapses() &&
               hold.ended.ok()) {
      hold.ended = absl::UnavailableError(
          "other nodes took this one for gone meanwhile, as it was silent");
    }
  }
}

uint64_t MembershipThread::BeginHold(absl::Duration most) {
  uint64_t hold = 0;
  {
    absl::MutexLock lock(&mu_);
    hold = ++last_hold_;
    Hold& begun = holds_[hold];
    begun.until_ns = clock_->NowNs() + absl::ToInt64Nanoseconds(most);
    begun.number = SayHolds();
  }
  log_->Wake();
  return hold;
}

absl::Status MembershipThread::AwaitRecord(uint64_t hold, uint64_t number,
                                           int64_t late_ns) {
  for (;;) {
    const absl::Status& ended = holds_.at(hold).ended;
    if (!ended.ok() || logic_.read_number() >= number) return ended;
    if (stopping_ || clock_->NowNs() >= late_ns) {
      return absl::UnavailableError(
          "the heartbeats of this node do not come back from the control log "
          "in time");
    }
    changed_.WaitFor(&mu_, std::chrono::microseconds(kMaxLeaseWaitNs / 1'000));
  }
}

absl::Status MembershipThread::AwaitHold(uint64_t hold,
                                         absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  absl::Status status =
      AwaitRecord(hold, holds_.at(hold).number,
                  clock_->NowNs() + absl::ToInt64Nanoseconds(timeout));
  if (!status.ok()) return status;
  const int64_t certain_ns =
      clock_->NowNs() + MemberLogic::SafeLeaseNs(logic_.LongestLease());
  for (;;) {
    const int64_t left_ns = certain_ns - clock_->NowNs();
    const absl::Status& ended = holds_.at(hold).ended;
    if (left_ns <= 0 || !ended.ok()) return ended;
    if (stopping_) return absl::UnavailableError("this node ends");
    changed_.WaitFor(&mu_, std::chrono::microseconds(
                               std::min(left_ns, kMaxLeaseWaitNs) / 1'000 + 1));
  }
}

absl::Status MembershipThread::EndCut(uint64_t hold, absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  holds_.at(hold).cuts = false;
  const uint64_t number = SayHolds();
  log_->Wake();
  return AwaitRecord(hold, number,
                     clock_->NowNs() + absl::ToInt64Nanoseconds(timeout));
}

void MembershipThread::EndHold(uint64_t hold) {
  {
    absl::MutexLock lock(&mu_);
    holds_.erase(hold);
    SayHolds();
  }
  log_->Wake();
}

absl::Status MembershipThread::CheckHold(uint64_t hold) const {
  absl::MutexLock lock(&mu_);
  return holds_.at(hold).ended;
}

bool MembershipThread::MayTrim(int slot) const {
  return HoldsLease(slot) && !held_.load(std::memory_order_relaxed);
}

bool MembershipThread::MaySettle(int slot) const {
  return HoldsLease(slot) && !cut_.load(std::memory_order_relaxed);
}

// --- Of one.

void MembershipThread::SetLag(int slot, uint64_t messages, absl::Duration age) {
  absl::MutexLock lock(&mu_);
  logic_.SetLag(slot, messages, age, clock_->NowNs());
}

void MembershipThread::SetJournal(int slot, uint64_t id) {
  absl::MutexLock lock(&mu_);
  logic_.At(slot).SetJournal(id);
}

void MembershipThread::Yield(int slot) {
  {
    absl::MutexLock lock(&mu_);
    logic_.At(slot).Yield();
  }
  log_->Wake();
}

MemberRole MembershipThread::role(int slot) const {
  absl::MutexLock lock(&mu_);
  return logic_.At(slot).role();
}

absl::Status MembershipThread::AwaitFormerLease(int slot) {
  absl::MutexLock lock(&mu_);
  const uint64_t term = At(slot).term;
  for (;;) {
    const MemberLogic& member = logic_.At(slot);
    if (member.role() == MemberRole::kEnded || At(slot).term != term) {
      return absl::CancelledError("the node is no longer the owner");
    }
    int64_t wait_ns = kMaxLeaseWaitNs;
    if (member.role() != MemberRole::kStandby) {
      const int64_t now_ns = clock_->NowNs();
      if (now_ns >= member.former_lease_end_ns()) return absl::OkStatus();
      wait_ns = std::min(wait_ns, member.former_lease_end_ns() - now_ns);
    }
    changed_.WaitFor(&mu_, std::chrono::microseconds(wait_ns / 1'000 + 1));
  }
}

void MembershipThread::BeginService(int slot) {
  {
    absl::MutexLock lock(&mu_);
    logic_.At(slot).BeginService(clock_->NowNs());
    Publish(slot);
  }
  log_->Wake();
}

bool MembershipThread::Holds(const std::atomic<int64_t>& end_ns) const {
  const int64_t end = end_ns.load(std::memory_order_acquire);
  return clock_->NowNs() < end ||
         (end != INT64_MIN && !IsKept(SafetyRule::kLease));
}

absl::Status MembershipThread::CheckService(int slot) const {
  return Holds(At(slot).serve_until_ns) ? absl::OkStatus() : NotOwner(slot);
}

bool MembershipThread::HoldsLease(int slot) const {
  return Holds(At(slot).lease_end_ns);
}

void MembershipThread::Confirm(int slot, Confirmed done) {
  {
    absl::MutexLock lock(&mu_);
    MemberLogic& member = logic_.At(slot);
    if (member.role() != MemberRole::kEnded && member.IsOwner()) {
      At(slot).confirms.emplace_back(member.RequestRecord(), std::move(done));
      done = nullptr;
    }
  }
  if (done) return done(false);
  log_->Wake();
}

void MembershipThread::EndService(int slot) {
  absl::MutexLock lock(&mu_);
  At(slot).service_ended = true;
  Publish(slot);
}

absl::Status MembershipThread::Release(int slot, const std::string& to,
                                       absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  if (absl::Status status = logic_.At(slot).BeginRelease(to); !status.ok()) {
    return status;
  }
  const uint64_t term = At(slot).term;
  At(slot).service_ended = true;
  Publish(slot);
  log_->Wake();
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(timeout);
  while (logic_.At(slot).role() != MemberRole::kEnded) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          "the release has not come back from the control log");
    }
    changed_.WaitUntil(&mu_, deadline);
    if (At(slot).term != term) {
      return absl::CancelledError("the node's term is over");
    }
  }
  if (logic_.At(slot).released()) return absl::OkStatus();
  return absl::FailedPreconditionError("another node has taken over");
}

absl::Status MembershipThread::CheckSuccessor(int slot,
                                              const std::string& to) const {
  absl::MutexLock lock(&mu_);
  return logic_.At(slot).CheckSuccessor(to);
}

MemberStatus MembershipThread::GetStatus(int slot) const {
  absl::MutexLock lock(&mu_);
  return logic_.At(slot).Status(clock_->NowNs());
}

// For those who ask without the lock.
void MembershipThread::Publish(int slot) {
  const MemberLogic& member = logic_.At(slot);
  Slot& published = At(slot);
  const bool serves =
      member.role() == MemberRole::kOwner && !published.service_ended;
  published.lease_end_ns.store(member.lease_end_ns(),
                               std::memory_order_release);
  published.serve_until_ns.store(serves ? member.lease_end_ns() : INT64_MIN,
                                 std::memory_order_release);
  changed_.SignalAll();
}

void MembershipThread::PublishAll() {
  held_.store(logic_.IsHeld(), std::memory_order_relaxed);
  cut_.store(logic_.IsCut(), std::memory_order_relaxed);
  for (int slot = 0; slot < slots(); ++slot) Publish(slot);
}

absl::Status MembershipThread::NotOwner(int slot) const {
  absl::MutexLock lock(&mu_);
  const MemberLogic& member = logic_.At(slot);
  ErrorMetadata metadata;
  std::string message = "this node does not own, and no other one does now";
  if (member.role() == MemberRole::kOwner && !At(slot).service_ended) {
    message =
        "this node's lease has ended: its heartbeats do not reach the control "
        "log, or not in time";
  } else if (const std::string address = member.OwnerAddress();
             !address.empty()) {
    metadata["owner_address"] = address;
    message = absl::StrCat(
        "this node is not the owner, which is, or will be, at ", address);
  }
  return ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kNotOwner,
                         message, metadata);
}

// --- The thread.

void MembershipThread::Run() {
  for (;;) {
    absl::Duration timeout = kBusyDelay;
    std::optional<ControlRecord> record;
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) return;
      EndOldHolds();
      record = logic_.Next(clock_->NowNs(), clock_->WallUs());
    }
    Notify();
    if (!record || log_->Append(*record)) {
      absl::MutexLock lock(&mu_);
      const int64_t now_ns = clock_->NowNs();
      if (record) logic_.OnSent(*record, now_ns);
      timeout = std::clamp(
          absl::Nanoseconds(std::max(logic_.NextNs(), now_ns) - now_ns),
          absl::ZeroDuration(), kMaxPoll);
    }
    if (!Read(timeout)) return;
  }
}

bool MembershipThread::Read(absl::Duration timeout) {
  const absl::StatusOr<std::vector<ControlEntry>> entries = log_->Poll(timeout);
  {
    absl::MutexLock lock(&mu_);
    if (!entries.ok()) {
      logic_.OnLogLost(entries.status());
    } else {
      // Later than they were read, as AwaitFormerLease needs it.
      const int64_t now_ns = clock_->NowNs();
      for (const ControlEntry& entry : *entries) {
        logic_.OnEntry(entry, now_ns);
        NoteHolds();
      }
    }
    PublishAll();
  }
  Notify();
  return entries.ok();
}

void MembershipThread::TakeConfirmed(uint64_t up_to, bool owns, Slot* slot,
                                     Calls* calls) {
  while (!slot->confirms.empty() && slot->confirms.front().first <= up_to) {
    calls->confirmed.emplace_back(std::move(slot->confirms.front().second),
                                  owns);
    slot->confirms.pop_front();
  }
}

void MembershipThread::NoteRole(int slot) {
  const MemberRole role = logic_.At(slot).role();
  if (role == At(slot).noted_role) return;
  At(slot).noted_role = role;
  calls_.roles.emplace_back(slot, role);
}

void MembershipThread::Notify() {
  Calls calls;
  {
    absl::MutexLock lock(&mu_);
    for (int slot = 0; slot < slots(); ++slot) {
      NoteRole(slot);
      const MemberLogic& member = logic_.At(slot);
      TakeConfirmed(member.confirmed(), true, &At(slot), &calls_);
      if (member.role() == MemberRole::kEnded) {
        TakeConfirmed(UINT64_MAX, false, &At(slot), &calls_);
      }
    }
    calls_.events = logic_.TakeEvents();
    calls = std::exchange(calls_, {});
  }
  for (const auto& [done, owns] : calls.confirmed) done(owns);
  if (on_event_) {
    for (const auto& [slot, event] : calls.events) on_event_(slot, event);
  }
  for (const auto& [slot, role] : calls.roles) {
    if (on_role_) on_role_(slot, role);
  }
}

}  // namespace timecache::server
