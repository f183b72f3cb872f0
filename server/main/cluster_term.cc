#include "server/main/cluster_term.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "server/cluster/member_logic.h"
#include "server/durable/recovery.h"
#include "server/main/millis_since.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr unsigned kMaxReplayThreads = 8;
// How soon a standby notices what wakes it in no other way: a signal.
constexpr absl::Duration kFollowInterval = absl::Milliseconds(50);
// From a claim that brokers did not answer to the next one.
constexpr absl::Duration kClaimInterval = absl::Milliseconds(100);

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
    Cluster* cluster, int slot, std::function<void()> wake) {
  auto term = std::unique_ptr<ClusterTerm>(
      new ClusterTerm(cluster, slot, std::move(wake)));
  absl::StatusOr<std::unique_ptr<KafkaJournal>> journal =
      cluster->OpenJournal(slot, [term = term.get()](const absl::Status& why) {
        term->End(why.message());
      });
  if (!journal.ok()) return journal.status();
  term->opened_ = *std::move(journal);
  term->journal_ = term->opened_.get();
  cluster->Observe(slot, [term = term.get()](MemberRole role) {
    if (role == MemberRole::kEnded) {
      term->End("another node has taken over, or this one has released");
    } else {
      term->journal_->Wake();
    }
  });
  return term;
}

ClusterTerm::ClusterTerm(Cluster* cluster, int slot, std::function<void()> wake)
    : cluster_(*cluster),
      slot_(slot),
      member_(cluster->membership().At(slot)),
      wake_(std::move(wake)) {}

void ClusterTerm::Leave() { cluster_.Observe(slot_, nullptr); }

void ClusterTerm::Say(LogLevel level, std::string_view event,
                      std::initializer_list<LogField> fields) const {
  LogOfSlot(cluster_.has_slots() ? slot_ : kWholeNode, level, event, fields);
}

std::unique_ptr<MapChangeLogs> ClusterTerm::TakeLogs() {
  MapChangeLogsOptions options;
  options.kind = JournalKind::kCluster;
  if (cluster_.config().reads() == config::v1::CLUSTER_READS_CONFIRMED) {
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
  Say(LogLevel::kWarning, "term_over", {{"node", node()}, {"why", why}});
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
    Say(LogLevel::kInfo, "standby_waits", {{"for", waits_for_}});
  }
  const auto& owner = status.view.owner;
  const bool owns = owner.has_value() && !owner->released && !owner->node.gone;
  if (observers.readiness != nullptr) {
    observers.readiness->SetOwner(owns ? owner->node.name : "");
  }
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
    Say(LogLevel::kInfo, "standby_caught_up",
        {{"node", node()}, {"messages", lag.read}});
  }
  if (member_->role() != MemberRole::kTakingOver) {
    journal_->AwaitMore(kFollowInterval);
    return true;
  }
  const absl::Status claimed = journal_->Claim();
  if (claimed.ok()) {
    claimed_ = true;
    Say(LogLevel::kInfo, "journal_claimed",
        {{"node", node()}, {"partitions", journal_->partitions()}});
  } else {
    Say(LogLevel::kWarning, "claim_failed", {{"why", claimed.message()}});
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
  if (observers.metrics != nullptr) observers.metrics->Begin();
  Say(LogLevel::kInfo, "standby_started",
      {{"node", node()},
       {"cluster", cluster_.config().name()},
       {"messages", Lag(member_->GetStatus()).messages}});
  if (observers.manager != nullptr) observers.manager->Ready("Standby");
  if (observers.readiness != nullptr) {
    observers.readiness->Set(Readiness::State::kStandby);
  }
  SteadyClock::time_point took_over;
  RecoveryOptions options;
  // A slot is one partition.
  options.threads =
      cluster_.has_slots()
          ? 1
          : static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u,
                                        kMaxReplayThreads));
  if (observers.metrics != nullptr) {
    options.progress = [&](const RecoveryProgress& progress) {
      observers.metrics->Progress(progress);
    };
  }
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
  if (observers.metrics != nullptr) observers.metrics->Finish(*report);
  CountTakeover();
  Say(LogLevel::kInfo, "takeover_done",
      {{"node", node()},
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
  Say(released.ok() ? LogLevel::kInfo : LogLevel::kWarning, "service_ended",
      {{"node", node()},
       {"standby", has_successor.ok()},
       {"released", released.ok()},
       {"why", released.message()},
       {"took_ms", MillisSince(began)}});
}

void ClusterTerm::AbandonCalls(const Registry& registry, MapChangeLogs* logs) {
  if (member_->HoldsLease() ||
      member_->GetStatus().lease_left >
          -ToDuration(cluster_.config().failure_timeout())) {
    return;
  }
  for (const auto& map : registry.List()) {
    if (map->change_log() != nullptr) logs->Of(*map)->Abandon();
  }
  if (logs->confirmations() != nullptr) logs->confirmations()->Abandon();
}

ClusterTerm::Status ClusterTerm::GetStatus() const {
  Status status;
  status.member = member_->GetStatus();
  status.lag = Lag(status.member);
  status.serving = serving_.load(std::memory_order_acquire);
  status.events = GetClusterEvents();
  status.faults = cluster_.faults();
  return status;
}

}  // namespace timecache::server
