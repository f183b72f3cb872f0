#include "server/main/node.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "server/api/proto_time.h"
#include "server/api/proto_to_text.h"
#include "server/base/memory_budget.h"
#include "server/base/version.h"
#include "server/engine/partitioned_maps.h"
#include "server/main/clock_watch.h"
#include "server/main/config/configured_namespaces.h"
#include "server/main/disk_log.h"
#include "server/main/durability.h"
#include "server/main/millis_since.h"
#include "server/main/peer_credentials.h"
#include "server/main/server_setup.h"
#include "server/main/startup_checks.h"
#include "server/main/state_metrics.h"
#include "server/ops/log.h"
#include "server/ops/loss_log.h"

namespace timecache::server {
namespace {

// Of a process that a disk has held up.
constexpr int kExitTimedOut = 1;
// How soon the log says what was counted.
constexpr std::chrono::seconds kLogInterval{1};
// How soon a journal that is too large is noticed.
constexpr std::chrono::seconds kCheckpointInterval{1};
// How soon settings of a cluster's topics that are not safe any more are.
constexpr std::chrono::hours kTopicCheckInterval{1};
// How soon calls end that wait for a log which the node does not reach.
constexpr std::chrono::milliseconds kAbandonInterval{250};
// For calls of a node that has lost the ownership, or given it away.
constexpr absl::Duration kEndOfTerm = absl::Seconds(2);
// How soon a node that drains notices a signal.
constexpr absl::Duration kTermInterval = absl::Milliseconds(100);
// How often it looks whether others have its slots: twice as seldom as it does what the
// cluster wants of it.
constexpr absl::Duration kMoveInterval = absl::Milliseconds(200);
// How soon a node that shares the ownership says that it is ready.
constexpr std::chrono::milliseconds kReadyInterval{100};
// For the control log to say that a standby ends, before it does.
constexpr absl::Duration kYieldTime = absl::Milliseconds(100);

// For the journal to write what waits and to close, once the calls are done: at
// most this part of the grace period, unless that is shorter.
constexpr absl::Duration kCloseTime = absl::Seconds(2);
constexpr int kCloseShare = 4;

void LogStarted(const Flags& flags, const config::v1::ServerConfig& config,
                const Server& server, const Monitoring& monitoring,
                const MemoryPlan& memory, int64_t namespaces) {
  const std::string limits = ProtoToJson(config.limits());
  Log(LogLevel::kInfo, "server_started",
      {{"version", Version()},
       {"address", absl::StrJoin(server.addresses(), ",")},
       {"health", server.health_address()},
       {"http", monitoring.http_address()},
       {"namespaces", namespaces},
       {"virtual_clock", flags.virtual_clock},
       {"limits", LogJson{limits}},
       {"max_memory_bytes", memory.engine_bytes},
       {"max_memory_source", memory.source},
       {"grace_period_s", config.grace_period().seconds()}});
}

// What the log says of connections.
std::vector<LossLog::Counter> CountersOf(const Server& server) {
  const auto last_delayed = [&server] {
    return server.pacer().last_delayed().ToString();
  };
  return {
      // Beyond limits.max_connections.
      {"connections_refused", [&] { return server.refused_connections(); }},
      // Of addresses beyond limits.max_new_connections_per_second.
      {"connections_delayed", [&] { return server.pacer().delayed(); },
       last_delayed},
      {"connections_too_fast", [&] { return server.pacer().refused(); },
       last_delayed},
      // For calls, or bytes, without credentials.
      {"connections_cut", [&] { return server.guard().cut(); }},
      // Whose clients did not read what they had asked for.
      {"connections_unread",
       [&] { return server.responses().ended_connections; }},
      {"responses_refused", [&] { return server.responses().refused; }},
  };
}

}  // namespace

Node::Node(const Flags& flags, const config::v1::ServerConfig& config,
           Signals* signals)
    : flags_(flags),
      config_(config),
      signals_(*signals),
      // Beside a virtual clock, only the log reads it.
      system_clock_(flags.virtual_clock ? kNeverUs : StallGraceUs(config)),
      manual_clock_(flags.virtual_clock ? std::make_unique<ManualClock>()
                                        : nullptr),
      clock_(manual_clock_ != nullptr ? static_cast<Clock&>(*manual_clock_)
                                      : system_clock_),
      reaper_(&clock_, LogSlowSweep),
      account_(
          std::make_shared<ServerAccount>(ToRegistryLimits(config.limits()))),
      registry_(&clock_, &reaper_, account_),
      maps_(&registry_, &clock_),
      store_(&maps_, &registry_),
      registries_({&registry_, &reaper_, &clock_}),
      monitoring_(&registries_),
      call_log_(SlowCallUs(config), &system_clock_) {
  monitoring_.metrics()->Add(&recovery_metrics_);
}

// What has metrics ends before what asks for them.
Node::~Node() {
  monitoring_.Stop();
  if (term_ != nullptr) term_->Leave();
  if (cluster_ != nullptr) cluster_->Leave();
}

absl::Status Node::Start() {
  // From here on probes get the answer that it starts.
  if (absl::Status status = monitoring_.Start(config_.http().address());
      !status.ok()) {
    return status;
  }
  const Machine machine = ReadMachine();
  memory_ = PlanMemory(config_.limits(), machine);
  MemoryBudget::Process().SetLimit(memory_.engine_bytes);
  if (absl::Status status = OpenFiles(); !status.ok()) return status;
  // All but health waits for the recovery, which may take minutes.
  server_.emplace(shared_ != nullptr ? shared_->store() : &store_, &clock_,
                  MakeServerOptions());
  if (absl::Status status = server_->StartHealth(); !status.ok()) return status;
  if (term_ != nullptr) {
    // Calls learn who owns.
    absl::Status status = server_->Start();
    if (status.ok()) status = AwaitOwnership();
    if (!status.ok()) return status;
  } else if (journal_.logs != nullptr) {
    if (absl::Status status = RecoverJournal(); !status.ok()) return status;
  }
  if (journal_.logs != nullptr) {
    checkpointer_ = std::make_unique<Checkpointer>(journal_.logs.get(),
                                                   &registry_, &clock_);
    checkpoints_ = housekeeping_.Every(kCheckpointInterval,
                                       [this] { checkpointer_->Look(); });
  }
  heap_trims_ =
      housekeeping_.Every(kHeapTrimInterval, [this] { heap_trimmer_.Look(); });
  if (shared_ == nullptr) {
    absl::Status status = ReconcilePartitions(&registry_);
    if (status.ok()) status = CreateNamespaces(config_, &registry_);
    if (!status.ok()) return status;
  }
  if (term_ == nullptr) {
    if (absl::Status status = server_->Start(); !status.ok()) return status;
    if (shared_ != nullptr) {
      shared_->Start();
      readiness_ = housekeeping_.Every(kReadyInterval, [this] { LookReady(); });
    }
  } else {
    term_->Serve();
    abandoned_calls_ = housekeeping_.Every(kAbandonInterval, [this] {
      term_->AbandonCalls(registry_, journal_.logs.get());
    });
    server_->SetHealth(true);
  }
  LogStartupChecks(machine, config_);
  // Of slots, each is logged once its home is served here.
  if (shared_ == nullptr) LogNamespaces(config_, registry_);
  LogStarted(flags_, config_, *server_, monitoring_, memory_,
             static_cast<int64_t>(store_.GetUsage().namespaces));

  reload_.emplace(config_, [this] { return ReadConfig(flags_); });
  AddAppliers(
      registry_.account(),
      [this](const config::v1::ServerConfig& before,
             const config::v1::ServerConfig& now) {
        return shared_ != nullptr ? shared_->Reload(before, now)
                                  : ReloadNamespaces(before, now, &registry_);
      },
      &*server_, &call_log_, &*reload_);
  reload_->Also([this] { files_.Check(); });
  AddMetrics();
  return absl::OkStatus();
}

absl::Status Node::OpenFiles() {
  if (config_.cluster().name().empty()) {
    auto journal = OpenJournal(config_);
    if (!journal.ok()) return journal.status();
    journal_ = *std::move(journal);
  } else {
    auto cluster = Cluster::Begin(config_);
    if (!cluster.ok()) return cluster.status();
    cluster_ = *std::move(cluster);
    topic_checks_ = housekeeping_.Every(kTopicCheckInterval,
                                        [this] { cluster_->CheckTopics(); });
    absl::Status status = cluster_->has_slots() ? OpenShared() : OpenTerm();
    if (!status.ok()) return status;
    // Those of a standby, too.
    monitoring_.metrics()->Add(cluster_metrics_.get());
  }
  if (!config_.access().file().empty()) {
    auto access = AccessFile::Open(config_.access().file(), &files_);
    if (!access.ok()) return access.status();
    access_ = *std::move(access);
  }
  auto tls = TlsListeners::Create(config_, &files_, &housekeeping_);
  if (!tls.ok()) return tls.status();
  tls_ = *std::move(tls);
  return absl::OkStatus();
}

absl::Status Node::OpenTerm() {
  auto term = ClusterTerm::Begin(cluster_.get(), /*slot=*/0,
                                 [this] { signals_.Wake(); });
  if (!term.ok()) return term.status();
  term_ = *std::move(term);
  journal_.logs = term_->TakeLogs();
  cluster_->membership().Start();
  cluster_metrics_ = std::make_unique<ClusterMetrics>(
      config_.cluster().name(), [this] { return term_->GetStatus(); });
  return absl::OkStatus();
}

absl::Status Node::OpenShared() {
  if (absl::Status status = CheckPeerFiles(config_); !status.ok()) {
    return status;
  }
  shared_ = std::make_unique<SharedCluster>(config_, cluster_.get(), account_,
                                            &registries_);
  cluster_metrics_ = std::make_unique<SharedClusterMetrics>(
      config_.cluster().name(), [this] { return shared_->slots().GetStatus(); },
      &shared_->peer_counts());
  return absl::OkStatus();
}

ServerOptions Node::MakeServerOptions() {
  ServerOptions options = ToServerOptions(config_, manual_clock_.get());
  options.grpc_memory_bytes = memory_.grpc_bytes;
  options.limits.set_max_response_bytes(
      static_cast<uint64_t>(memory_.response_bytes));
  options.call_observers = {monitoring_.calls(), &call_log_};
  options.describe_slow_calls = [this](v1::ListSlowCallsResponse* calls) {
    DescribeSlowCalls(call_log_, calls);
  };
  options.access = access_.get();
  options.credentials = tls_->credentials();
  options.flush = [this] { reaper_.Flush(); };
  if (shared_ != nullptr) shared_->AddTo(&options);
  if (term_ != nullptr) {
    options.cluster = {
        .check_service = [this] { return term_->CheckService(); },
        .describe =
            [this](v1::GetClusterResponse* cluster) {
              term_->Describe(cluster);
            },
        .hand_over =
            [this](const std::string& to, ClusterSource::HandedOver done) {
              term_->HandOver(to, std::move(done));
            }};
    // The checkpointer is there once calls are served.
    options.describe_journal = [this](v1::JournalStatus* status) {
      DescribeJournal(
          JournalTopic(config_.cluster().name()),
          FiguresOf(journal_.logs.get(),
                    term_->CheckService().ok() ? checkpointer_.get() : nullptr),
          status);
    };
    options.backup_source = term_->Backups();
  }
  if (journal_.local != nullptr) {
    options.describe_journal = [this](v1::JournalStatus* status) {
      DescribeJournal(config_.journal().directory(),
                      FiguresOf(journal_.logs.get(), checkpointer_.get()),
                      status);
    };
    options.backup_source = BackupsOf(journal_.local);
  }
  return options;
}

absl::Status Node::RecoverJournal() {
  return Recover(config_, signals_, &clock_,
                 {&recovery_metrics_, monitoring_.readiness(), &manager_},
                 journal_, &registry_);
}

absl::Status Node::AwaitOwnership() {
  absl::Status status =
      term_->Follow([this] { return StandbyEnds(); },
                    {&recovery_metrics_, monitoring_.readiness(), &manager_},
                    &system_clock_, journal_.logs.get(), &registry_);
  ended_by_signal_ = signals_.EndPending();
  return status;
}

bool Node::StandbyEnds() {
  if (!signals_.EndPending()) return false;
  std::call_once(standby_leaves_, [this] {
    cluster_->membership().Yield();
    standby_ends_ = std::chrono::steady_clock::now() +
                    absl::ToChronoMilliseconds(kYieldTime);
    Log(LogLevel::kInfo, "standby_leaves");
    manager_.Stopping(kEndOfTerm);
    monitoring_.readiness()->Set(Readiness::State::kDraining);
    server_->SetHealth(false);
  });
  return std::chrono::steady_clock::now() >= standby_ends_;
}

void Node::LookReady() {
  Readiness* const readiness = monitoring_.readiness();
  if (readiness->state() != Readiness::State::kStarting ||
      !shared_->slots().ready()) {
    return;
  }
  readiness->Set(Readiness::State::kServing);
  server_->SetHealth(true);
}

void Node::AddMetrics() {
  Metrics* metrics = monitoring_.metrics();
  if (shared_ != nullptr) {
    journal_metrics_ = std::make_unique<JournalMetrics>(
        [this] { return shared_->journals().Sum(); });
  } else if (journal_.logs != nullptr) {
    journal_metrics_ = std::make_unique<JournalMetrics>(
        [this] { return FiguresOf(journal_.logs.get(), checkpointer_.get()); });
  }
  if (journal_metrics_ != nullptr) metrics->Add(journal_metrics_.get());
  AddStateMetrics(
      {&*server_, &system_clock_, &*reload_, access_.get(), tls_.get()},
      metrics);
}

// Returns the signal that ends it.
int Node::ServeUntilSignal() {
  while (true) {
    const int signal = signals_.Next();
    // One of a term before this.
    if (signal == Signals::kWake && (term_ == nullptr || !term_->IsOver())) {
      continue;
    }
    if (signal != SIGHUP) return signal;
    manager_.Reloading();
    manager_.Ready(reload_->Run() ? "Serving"
                                  : "Serving; the configuration has an error, "
                                    "see the log");
  }
}

// The ownership is lost or handed over: the calls in flight end, and the process
// goes on as a standby.
void Node::EndTerm() {
  const auto start = std::chrono::steady_clock::now();
  server_->SetNotServing();
  term_->Release(registry_, journal_.logs.get(), kEndOfTerm);
  server_->CheckStreams();
  const DrainReport report =
      server_->Drain(absl::ToInt64Microseconds(kEndOfTerm));
  Log(LogLevel::kInfo, "term_ended",
      {{"calls_cancelled", !report.in_time},
       {"watchers", report.watchers},
       {"pipelines", report.pipelines},
       {"took_ms", MillisSince(start)}});
}

void Node::Drain(int signal) {
  const auto start = std::chrono::steady_clock::now();
  const absl::Duration delay = ToDuration(reload_->config().drain_delay());
  const absl::Duration grace = ToDuration(reload_->config().grace_period());
  Log(LogLevel::kInfo, "drain_started",
      {{"signal", strsignal(signal)},
       {"drain_delay_ms", absl::ToInt64Milliseconds(delay)},
       {"grace_period_ms", absl::ToInt64Milliseconds(grace)}});
  manager_.Stopping(delay + grace);
  server_->SetNotServing();
  if (shared_ != nullptr) shared_->slots().Yield();
  if (term_ == nullptr) ServeOn(delay);
  if (term_ != nullptr) {
    term_->Release(registry_, journal_.logs.get(), grace / kCloseShare);
  }
  if (shared_ != nullptr) {
    AwaitMoves(grace / kCloseShare);
    shared_->slots().End(grace / kCloseShare);
    shared_->Leave();
    server_->CheckStreams();
  }
  signals_.Release();
  absl::Duration drain = grace;
  // Without a journal nothing waits for a disk.
  if (journal_.logs != nullptr) {
    drain -= std::min(kCloseTime, grace / kCloseShare);
    EndAfter(drain + kCloseTime);
  }
  const DrainReport report = server_->Drain(absl::ToInt64Microseconds(drain));
  Log(report.in_time ? LogLevel::kInfo : LogLevel::kWarning, "server_stopped",
      {{"calls_cancelled", !report.in_time},
       {"watchers", report.watchers},
       {"watchers_cut", report.watchers_cut},
       {"pipelines", report.pipelines},
       {"pipelines_cut", report.pipelines_cut},
       {"took_ms", MillisSince(start)}});
}

void Node::ServeOn(absl::Duration delay) {
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(delay);
  while (true) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= left.zero()) return;
    if (signals_.NextEndWithin(
            std::min(absl::FromChrono(left), kTermInterval)) != 0) {
      return;
    }
  }
}

// What others have replayed goes to them; the rest is released to any.
void Node::AwaitMoves(absl::Duration patience) {
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
  do {
    if (signals_.NextEndWithin(kMoveInterval) != 0) return;
  } while (shared_->slots().moving() > 0 &&
           std::chrono::steady_clock::now() < until);
}

void Node::EndAfter(absl::Duration patience) {
  exit_deadline_.emplace(patience, [waits = journal_.logs->open_bytes()] {
    Log(LogLevel::kError, "stop_timed_out",
        {{"waiting_bytes", waits},
         {"message",
          "the journal's disk did not answer in time: the process ends without "
          "closing the journal. What was acknowledged is in it. Look at the "
          "disk before you start the server again"}});
    _exit(kExitTimedOut);
  });
}

void Node::Run() {
  DiskLog disk_log(
      [this] {
        return journal_.local != nullptr && journal_.logs->disk_full();
      },
      config_.journal().directory());
  LossLog loss_log(&registries_, &system_clock_, CountersOf(*server_));
  ClockWatch clock_watch(&system_clock_, journal_.local);
  {
    const auto logs = housekeeping_.Every(kLogInterval, [&] {
      call_log_.WriteDue();
      loss_log.Look();
      disk_log.Look();
      clock_watch.Look();
    });
    // One that shares the ownership is once it has its slots.
    if (shared_ == nullptr) {
      monitoring_.readiness()->Set(Readiness::State::kServing);
    }
    manager_.Ready("Serving");
    const int signal = ServeUntilSignal();
    readiness_ = nullptr;
    monitoring_.readiness()->Set(Readiness::State::kDraining);
    ended_by_signal_ = signal != Signals::kWake;
    if (ended_by_signal_) {
      Drain(signal);
    } else {
      EndTerm();
    }
  }
  clock_watch.Look();
  call_log_.Finish();
  loss_log.Finish();
}

}  // namespace timecache::server
