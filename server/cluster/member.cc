#include "server/cluster/member.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/base/error.h"
#include "server/base/safety_rule.h"
#include "server/base/steady_cond_var.h"
#include "server/cluster/member_logic.h"

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

}  // namespace

class Member::Impl {
 public:
  using Confirmed = std::function<void(bool)>;

  Impl(MemberOptions options, ControlLog* log, const BootClock* clock,
       std::function<void(MemberRole)> on_change,
       std::function<void(const MemberEvent&)> on_event)
      : log_(log),
        clock_(clock),
        on_change_(std::move(on_change)),
        on_event_(std::move(on_event)),
        logic_(std::move(options)) {}

  ~Impl() { Stop(); }

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }

  void Stop() {
    if (!thread_.joinable()) return;
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
    }
    log_->Wake();
    thread_.join();
  }

  void SetLag(uint64_t messages, absl::Duration age) {
    absl::MutexLock lock(&mu_);
    logic_.SetLag(messages, age, clock_->NowNs());
  }

  void SetJournal(uint64_t id) {
    absl::MutexLock lock(&mu_);
    logic_.SetJournal(id);
  }

  void Yield() {
    {
      absl::MutexLock lock(&mu_);
      logic_.Yield();
    }
    log_->Wake();
  }

  MemberRole role() const {
    absl::MutexLock lock(&mu_);
    return logic_.role();
  }

  absl::Status AwaitFormerLease() {
    absl::MutexLock lock(&mu_);
    for (;;) {
      if (logic_.role() == MemberRole::kEnded) {
        return absl::CancelledError("the node is no longer the owner");
      }
      int64_t wait_ns = kMaxLeaseWaitNs;
      if (logic_.role() != MemberRole::kStandby) {
        const int64_t now_ns = clock_->NowNs();
        if (now_ns >= logic_.former_lease_end_ns()) return absl::OkStatus();
        wait_ns = std::min(wait_ns, logic_.former_lease_end_ns() - now_ns);
      }
      changed_.WaitFor(&mu_, std::chrono::microseconds(wait_ns / 1'000 + 1));
    }
  }

  void BeginService() {
    {
      absl::MutexLock lock(&mu_);
      logic_.BeginService(clock_->NowNs());
      Publish();
    }
    log_->Wake();
  }

  absl::Status CheckService() const {
    return Holds(serve_until_ns_) ? absl::OkStatus() : NotOwner();
  }

  bool HoldsLease() const { return Holds(lease_end_ns_); }

  void Confirm(Confirmed done) {
    {
      absl::MutexLock lock(&mu_);
      if (logic_.role() != MemberRole::kEnded && logic_.IsOwner()) {
        confirms_.emplace_back(logic_.RequestRecord(), std::move(done));
        done = nullptr;
      }
    }
    if (done) return done(false);
    log_->Wake();
  }

  void EndService() {
    absl::MutexLock lock(&mu_);
    service_ended_ = true;
    Publish();
  }

  absl::Status Release(const std::string& to, absl::Duration timeout) {
    absl::MutexLock lock(&mu_);
    if (absl::Status status = logic_.BeginRelease(to); !status.ok()) {
      return status;
    }
    service_ended_ = true;
    Publish();
    log_->Wake();
    const auto deadline =
        std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(timeout);
    while (logic_.role() != MemberRole::kEnded) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return absl::DeadlineExceededError(
            "the release has not come back from the control log");
      }
      changed_.WaitUntil(&mu_, deadline);
    }
    if (logic_.released()) return absl::OkStatus();
    return absl::FailedPreconditionError("another node has taken over");
  }

  absl::Status CheckSuccessor(const std::string& to) const {
    absl::MutexLock lock(&mu_);
    return logic_.CheckSuccessor(to);
  }

  Status GetStatus() const {
    absl::MutexLock lock(&mu_);
    return logic_.Status(clock_->NowNs());
  }

 private:
  bool Holds(const std::atomic<int64_t>& end_ns) const {
    const int64_t end = end_ns.load(std::memory_order_acquire);
    return clock_->NowNs() < end ||
           (end != INT64_MIN && !IsKept(SafetyRule::kLease));
  }

  // For those who ask without the lock.
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const bool serves = logic_.role() == MemberRole::kOwner && !service_ended_;
    lease_end_ns_.store(logic_.lease_end_ns(), std::memory_order_release);
    serve_until_ns_.store(serves ? logic_.lease_end_ns() : INT64_MIN,
                          std::memory_order_release);
    changed_.SignalAll();
  }

  absl::Status NotOwner() const {
    absl::MutexLock lock(&mu_);
    ErrorMetadata metadata;
    std::string message = "this node does not own, and no other one does now";
    if (logic_.role() == MemberRole::kOwner && !service_ended_) {
      message =
          "this node's lease has ended: its heartbeats do not reach the "
          "control log, or not in time";
    } else if (const std::string address = logic_.OwnerAddress();
               !address.empty()) {
      metadata["owner_address"] = address;
      message = absl::StrCat(
          "this node is not the owner, which is, or will be, at ", address);
    }
    return ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kNotOwner,
                           message, metadata);
  }

  void Run() {
    for (;;) {
      absl::Duration timeout = kBusyDelay;
      std::optional<ControlRecord> record;
      {
        absl::MutexLock lock(&mu_);
        if (stopping_) return;
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

  // False when there is nothing to be read any more.
  bool Read(absl::Duration timeout) {
    const absl::StatusOr<std::vector<ControlEntry>> entries =
        log_->Poll(timeout);
    {
      absl::MutexLock lock(&mu_);
      if (!entries.ok()) {
        logic_.OnLogLost(entries.status());
      } else {
        // Later than they were read, as AwaitFormerLease needs it.
        const int64_t now_ns = clock_->NowNs();
        for (const ControlEntry& entry : *entries) {
          logic_.OnEntry(entry, now_ns);
        }
      }
      Publish();
    }
    Notify();
    return entries.ok();
  }

  // Of Confirm, those that have an answer.
  std::vector<Confirmed> TakeConfirmed(bool owns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<Confirmed> taken;
    while (!confirms_.empty() &&
           (!owns || confirms_.front().first <= logic_.confirmed())) {
      taken.push_back(std::move(confirms_.front().second));
      confirms_.pop_front();
    }
    return taken;
  }

  void Notify() {
    std::vector<MemberEvent> events;
    std::vector<Confirmed> confirmed;
    std::vector<Confirmed> refused;
    MemberRole role;
    {
      absl::MutexLock lock(&mu_);
      events = logic_.TakeEvents();
      role = logic_.role();
      confirmed = TakeConfirmed(true);
      if (role == MemberRole::kEnded) refused = TakeConfirmed(false);
    }
    for (const Confirmed& done : confirmed) done(true);
    for (const Confirmed& done : refused) done(false);
    if (on_event_) {
      for (const MemberEvent& event : events) on_event_(event);
    }
    if (role == notified_role_) return;
    notified_role_ = role;
    if (on_change_) on_change_(role);
  }

  ControlLog* const log_;
  const BootClock* const clock_;
  const std::function<void(MemberRole)> on_change_;
  const std::function<void(const MemberEvent&)> on_event_;

  mutable absl::Mutex mu_;
  SteadyCondVar changed_;
  MemberLogic logic_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool service_ended_ ABSL_GUARDED_BY(mu_) = false;
  // By the number of the record that they wait for.
  std::deque<std::pair<uint64_t, Confirmed>> confirms_ ABSL_GUARDED_BY(mu_);
  // Written with mu_ held.
  std::atomic<int64_t> lease_end_ns_{INT64_MIN};
  std::atomic<int64_t> serve_until_ns_{INT64_MIN};

  // Of the thread.
  MemberRole notified_role_ = MemberRole::kStandby;
  std::thread thread_;
};

Member::Member(MemberOptions options, ControlLog* log, const BootClock* clock,
               std::function<void(MemberRole)> on_change,
               std::function<void(const MemberEvent&)> on_event)
    : impl_(std::make_unique<Impl>(std::move(options), log, clock,
                                   std::move(on_change), std::move(on_event))) {
}
Member::~Member() = default;

void Member::Start() { impl_->Start(); }
void Member::Stop() { impl_->Stop(); }
void Member::SetLag(uint64_t messages, absl::Duration age) {
  impl_->SetLag(messages, age);
}
void Member::SetJournal(uint64_t id) { impl_->SetJournal(id); }
void Member::Yield() { impl_->Yield(); }
MemberRole Member::role() const { return impl_->role(); }
absl::Status Member::AwaitFormerLease() { return impl_->AwaitFormerLease(); }
void Member::BeginService() { impl_->BeginService(); }
absl::Status Member::CheckService() const { return impl_->CheckService(); }
bool Member::HoldsLease() const { return impl_->HoldsLease(); }
void Member::Confirm(std::function<void(bool owns)> done) {
  impl_->Confirm(std::move(done));
}
void Member::EndService() { impl_->EndService(); }
absl::Status Member::Release(const std::string& to, absl::Duration timeout) {
  return impl_->Release(to, timeout);
}
absl::Status Member::CheckSuccessor(const std::string& to) const {
  return impl_->CheckSuccessor(to);
}
Member::Status Member::GetStatus() const { return impl_->GetStatus(); }

}  // namespace timecache::server
