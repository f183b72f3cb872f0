#include "server/main/cluster_term.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "server/base/version.h"
#include "server/cluster/kafka_control_log.h"
#include "server/cluster/member_logic.h"
#include "server/durable/recovery.h"
#include "server/main/cluster_init.h"
#include "server/main/millis_since.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr unsigned kMaxReplayThreads = 8;
// How soon a standby notices what wakes it in no other way: a signal.
constexpr absl::Duration kFollowInterval = absl::Milliseconds(50);
// From a claim that brokers did not answer to the next one.
constexpr absl::Duration kClaimInterval = absl::Milliseconds(100);

uint64_t RandomIncarnation() {
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(1)(random);
}

// See ClusterTerm::Events: a term has one of each at most, but for late leases.
struct ProcessEvents {
  std::atomic<uint64_t> takeovers{0};
  std::atomic<uint64_t> leases_late{0};
  std::atomic<uint64_t> fenced{0};
};
ProcessEvents process_events;

void LogMemberEvent(const MemberEvent& event) {
  using Kind = MemberEvent::Kind;
  const int64_t took_ms = absl::ToInt64Milliseconds(event.duration);
  switch (event.kind) {
    case Kind::kTakeover:
      return Log(LogLevel::kInfo, "ownership_taken",
                 {{"by", event.node},
                  {"from", event.former},
                  {"released", event.released},
                  {"silent_ms", took_ms}});
    case Kind::kRelease:
      return Log(LogLevel::kInfo, "ownership_released",
                 {{"by", event.node}, {"to", event.successor}});
    case Kind::kFenced:
      ++process_events.fenced;
      return Log(LogLevel::kWarning, "node_fenced", {{"by", event.node}});
    case Kind::kTakeoverRefused:
      return Log(LogLevel::kInfo, "takeover_refused",
                 {{"why", "another node was first"}});
    case Kind::kClockSkewed:
      return Log(LogLevel::kWarning, "clock_skewed",
                 {{"ahead_of_brokers_ms", took_ms},
                  {"message",
                   "this node does not take over until its clock, or the "
                   "brokers', is right"}});
    case Kind::kClockRight:
      return Log(LogLevel::kInfo, "clock_no_longer_skewed",
                 {{"ahead_of_brokers_ms", took_ms}});
    case Kind::kLeaseLate:
      ++process_events.leases_late;
      return Log(LogLevel::kWarning, "lease_late",
                 {{"message",
                   "no heartbeat came back from the control log in time: calls "
                   "are refused until one does"}});
    case Kind::kLeaseRenewed:
      return Log(LogLevel::kInfo, "lease_renewed", {{"after_ms", took_ms}});
    case Kind::kLogLost:
      return Log(LogLevel::kError, "control_log_lost", {{"why", event.reason}});
  }
}

// All changes of these maps are stored, and the calls that waited for them are
// answered; or that cannot be, or it is late.
void FlushAll(const Registry& registry, MapChangeLogs* logs,
              absl::Duration patience) {
  struct Waits {
    absl::Mutex mu;
    size_t left ABSL_GUARDED_BY(mu) = 0;
  };
  const auto waits = std::make_shared<Waits>();
  const auto none_left = [&waits] {
    waits->mu.AssertReaderHeld();
    return waits->left == 0;
  };
  const auto done = [waits](const absl::Status&) {
    absl::MutexLock lock(&waits->mu);
    --waits->left;
  };
  const auto maps = registry.List();
  {
    absl::MutexLock lock(&waits->mu);
    waits->left = maps.size();
  }
  for (const auto& map : maps) {
    if (map->change_log() == nullptr) {
      done(absl::OkStatus());
    } else {
      map->change_log()->WhenAllKept(done);
    }
  }
  absl::MutexLock lock(&waits->mu);
  if (!waits->mu.AwaitWithTimeout(absl::Condition(&none_left), patience)) {
    return;
  }
  waits->left = 1;
  logs->WhenAnswered([done] { done(absl::OkStatus()); });
  waits->mu.AwaitWithTimeout(absl::Condition(&none_left), patience);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterTerm>> ClusterTerm::Begin(
    const config::v1::ServerConfig& config, std::function<void()> wake) {
  absl::StatusOr<KafkaOptions> kafka = ToKafkaOptions(config.cluster().kafka());
  if (!kafka.ok()) return kafka.status();
  auto term = std::unique_ptr<ClusterTerm>(
      new ClusterTerm(config.cluster(), *std::move(kafka), std::move(wake)));
  if (absl::Status status = term->Open(); !status.ok()) return status;
  return term;
}

ClusterTerm::ClusterTerm(config::v1::ClusterConfig config, KafkaOptions kafka,
                         std::function<void()> wake)
    : config_(std::move(config)),
      wake_(std::move(wake)),
      incarnation_(RandomIncarnation()),
      kafka_(std::move(kafka)) {}

ClusterTerm::~ClusterTerm() = default;

absl::Status ClusterTerm::Open() {
  absl::StatusOr<std::vector<TopicFault>> faults =
      timecache::server::CheckTopics(kafka_, config_.name());
  if (!faults.ok()) return faults.status();
  NoteFaults(*std::move(faults));
  {
    absl::MutexLock lock(&mu_);
    if (!faults_.empty() && !config_.allow_unsafe()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the cluster's topics can lose acknowledged writes: ",
          faults_.front().ToString(),
          faults_.size() > 1
              ? absl::StrCat(", and ", faults_.size() - 1, " more")
              : "",
          ". Correct the setting, or set cluster.allow_unsafe on a machine "
          "where that does not matter"));
    }
  }
  absl::StatusOr<std::unique_ptr<KafkaControlLog>> control =
      KafkaControlLog::Open(kafka_, ControlTopic(config_.name()),
                            ToDuration(config_.lease()));
  if (!control.ok()) return control.status();
  control_log_ = *std::move(control);
  member_ = std::make_unique<Member>(
      MakeMemberOptions(), control_log_.get(), &BootClock::System(),
      [this](MemberRole role) {
        if (role == MemberRole::kEnded) {
          End("another node has taken over, or this one has released");
        } else if (journal_ != nullptr) {
          journal_->Wake();
        }
      },
      LogMemberEvent);
  KafkaJournalOptions options;
  options.kafka = kafka_;
  options.topic = JournalTopic(config_.name());
  options.node = config_.node();
  options.incarnation = incarnation_;
  options.on_lost = [this](const absl::Status& why) { End(why.message()); };
  options.holds_lease = [this] { return member_->HoldsLease(); };
  absl::StatusOr<std::unique_ptr<KafkaJournal>> journal =
      KafkaJournal::Open(std::move(options));
  if (!journal.ok()) return journal.status();
  opened_ = *std::move(journal);
  journal_ = opened_.get();
  member_->Start();
  return absl::OkStatus();
}

MemberOptions ClusterTerm::MakeMemberOptions() const {
  MemberOptions options;
  options.node = config_.node();
  options.incarnation = incarnation_;
  options.address = config_.advertise();
  options.version = Version();
  options.lease = ToDuration(config_.lease());
  options.failure_timeout = ToDuration(config_.failure_timeout());
  options.max_clock_skew = ToDuration(config_.max_clock_skew());
  return options;
}

std::unique_ptr<MapChangeLogs> ClusterTerm::TakeLogs() {
  MapChangeLogsOptions options;
  options.kind = JournalKind::kCluster;
  if (config_.reads() == config::v1::CLUSTER_READS_CONFIRMED) {
    options.confirm = [this](std::function<void(bool)> done) {
      member_->Confirm(std::move(done));
    };
  }
  return std::make_unique<MapChangeLogs>(std::move(opened_),
                                         std::move(options));
}

void ClusterTerm::End(absl::string_view why) {
  if (over_.exchange(true)) return;
  member_->EndService();
  Log(LogLevel::kWarning, "term_over",
      {{"node", config_.node()}, {"why", why}});
  journal_->Wake();
  wake_();
}

absl::Status ClusterTerm::CheckService() const {
  absl::Status status = member_->CheckService();
  if (status.ok() && !serving_.load(std::memory_order_acquire)) {
    status = ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kNotOwner,
                             "this node is about to own, and reads the rest of "
                             "the journal: try again at once");
  }
  return status;
}

// --- Standby.

void ClusterTerm::NameOwner(const RecoveryObservers& observers) {
  const auto now = SteadyClock::now();
  if (now - owner_named_ < absl::ToChronoMilliseconds(kFollowInterval)) return;
  owner_named_ = now;
  const MemberStatus status = member_->GetStatus();
  if (waits_for_ != status.waits_for) {
    waits_for_ = status.waits_for;
    Log(LogLevel::kInfo, "standby_waits", {{"for", waits_for_}});
  }
  const auto& owner = status.view.owner;
  const bool owns = owner.has_value() && !owner->released && !owner->node.gone;
  observers.readiness->SetOwner(owns ? owner->node.name : "");
  if (observers.ready) observers.ready(owns && caught_up_);
}

KafkaJournalLag ClusterTerm::Lag(const Member::Status& member) const {
  return journal_->lag(absl::Now() - member.clock_skew);
}

bool ClusterTerm::AwaitMore() {
  if (claimed_) return false;
  const KafkaJournalLag lag = Lag(member_->GetStatus());
  member_->SetLag(lag.messages, lag.age);
  member_->SetJournal(journal_->id());
  if (lag.messages <= MemberLogic::kCaughtUpMessages &&
      !std::exchange(caught_up_, true)) {
    Log(LogLevel::kInfo, "standby_caught_up",
        {{"node", config_.node()}, {"messages", lag.read}});
  }
  if (member_->role() != MemberRole::kTakingOver) {
    journal_->AwaitMore(kFollowInterval);
    return true;
  }
  const absl::Status claimed = journal_->Claim();
  if (claimed.ok()) {
    claimed_ = true;
    Log(LogLevel::kInfo, "journal_claimed",
        {{"node", config_.node()}, {"partitions", journal_->partitions()}});
  } else {
    Log(LogLevel::kWarning, "claim_failed", {{"why", claimed.message()}});
    journal_->AwaitMore(kClaimInterval);
  }
  // What came before the claim.
  return true;
}

absl::Status ClusterTerm::BeginOwnership(int64_t last_us, SystemClock* clock) {
  // A new journal has no time.
  if (last_us != INT64_MIN) {
    const int64_t since_us = std::max<int64_t>(
        journal_->claim_append_us() - journal_->last_append_us(), 0);
    clock->Begin(last_us + since_us);
  }
  // That of a new one has begun with this claim.
  member_->SetJournal(journal_->id());
  absl::Status status = member_->AwaitFormerLease();
  if (status.ok()) member_->BeginService();
  return status;
}

absl::Status ClusterTerm::Follow(const std::function<bool()>& ended,
                                 const RecoveryObservers& observers,
                                 SystemClock* clock, MapChangeLogs* logs,
                                 Registry* registry) {
  registry->SetChangeLogs(logs);
  observers.metrics->Begin();
  Log(LogLevel::kInfo, "standby_started",
      {{"node", config_.node()},
       {"cluster", config_.name()},
       {"messages", Lag(member_->GetStatus()).messages}});
  observers.manager->Ready("Standby");
  observers.readiness->Set(Readiness::State::kStandby);
  SteadyClock::time_point took_over;
  RecoveryOptions options;
  options.threads = static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1u, kMaxReplayThreads));
  options.progress = [&](const RecoveryProgress& progress) {
    observers.metrics->Progress(progress);
  };
  options.clock = clock;
  options.cancelled = [&] { return IsOver() || ended(); };
  options.follow = [&] {
    const bool more = !options.cancelled() && AwaitMore();
    NameOwner(observers);
    if (claimed_ && took_over == SteadyClock::time_point()) {
      took_over = SteadyClock::now();
    }
    return more;
  };
  options.check_time = [&](int64_t last_us) {
    return options.cancelled() ? absl::CancelledError("the term is over")
                               : BeginOwnership(last_us, clock);
  };
  const absl::StatusOr<RecoveryReport> report =
      RecoverMaps(logs, registry, options);
  // What failed because the term is over is no error.
  if (!report.ok()) {
    return options.cancelled() ? absl::CancelledError(report.status().message())
                               : report.status();
  }
  clock->AdvanceTo(report->last_us);
  observers.metrics->Finish(*report);
  ++process_events.takeovers;
  Log(LogLevel::kInfo, "takeover_done",
      {{"node", config_.node()},
       {"namespaces", report->namespaces},
       {"entries", report->entries},
       {"took_ms", MillisSince(took_over)}});
  return absl::OkStatus();
}

// --- Owner.

void ClusterTerm::HandOver(const std::string& to,
                           ClusterSource::HandedOver done) {
  absl::Status status = CheckService();
  if (status.ok()) status = member_->CheckSuccessor(to);
  if (!status.ok()) return done(status);
  {
    absl::MutexLock lock(&mu_);
    if (over_.exchange(true)) {
      status = absl::UnavailableError("the term of this node is over already");
    } else {
      successor_ = to;
      handed_over_ = std::move(done);
    }
  }
  if (!status.ok()) return done(status);
  wake_();
}

void ClusterTerm::Release(const Registry& registry, MapChangeLogs* logs,
                          absl::Duration patience) {
  const auto began = SteadyClock::now();
  std::string to;
  ClusterSource::HandedOver done;
  {
    absl::MutexLock lock(&mu_);
    to = successor_;
    done = std::exchange(handed_over_, nullptr);
  }
  if (member_->role() != MemberRole::kOwner) {
    journal_->Stop();
    if (done) done(absl::UnavailableError("another node has taken over"));
    return;
  }
  const absl::Status has_successor = member_->CheckSuccessor(to);
  member_->EndService();
  // Also what a call applied that had begun before the end of the service.
  for (int i = 0; i < 2; ++i) FlushAll(registry, logs, patience / 8);
  journal_->Stop();
  const absl::Status released = member_->Release(to, patience / 2);
  if (done && released.ok()) done(member_->GetStatus().successor);
  if (done && !released.ok()) done(released);
  Log(released.ok() ? LogLevel::kInfo : LogLevel::kWarning, "service_ended",
      {{"node", config_.node()},
       {"standby", has_successor.ok()},
       {"released", released.ok()},
       {"why", released.message()},
       {"took_ms", MillisSince(began)}});
}

void ClusterTerm::AbandonCalls(const Registry& registry, MapChangeLogs* logs) {
  if (member_->HoldsLease() || member_->GetStatus().lease_left >
                                   -ToDuration(config_.failure_timeout())) {
    return;
  }
  for (const auto& map : registry.List()) {
    if (map->change_log() != nullptr) logs->Of(*map)->Abandon();
  }
  if (logs->confirmations() != nullptr) logs->confirmations()->Abandon();
}

void ClusterTerm::CheckTopics() {
  absl::StatusOr<std::vector<TopicFault>> faults =
      timecache::server::CheckTopics(kafka_, config_.name());
  if (faults.ok()) return NoteFaults(*std::move(faults));
  Log(LogLevel::kWarning, "topics_unchecked",
      {{"why", faults.status().message()}});
}

void ClusterTerm::NoteFaults(std::vector<TopicFault> faults) {
  for (const TopicFault& fault : faults) {
    Log(LogLevel::kWarning, "topic_unsafe", {{"what", fault.ToString()}});
  }
  absl::MutexLock lock(&mu_);
  faults_ = std::move(faults);
}

ClusterTerm::Status ClusterTerm::GetStatus() const {
  Status status;
  status.member = member_->GetStatus();
  status.lag = Lag(status.member);
  status.serving = serving_.load(std::memory_order_acquire);
  status.events = {process_events.takeovers, process_events.leases_late,
                   process_events.fenced};
  absl::MutexLock lock(&mu_);
  status.faults = faults_;
  return status;
}

}  // namespace timecache::server
