// The composition root: flags and configuration, and the objects that they ask
// for.

#include <grpc/support/log.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "server/common/housekeeping.h"
#include "server/common/version.h"
#include "server/config/config.h"
#include "server/config/configured_namespaces.h"
#include "server/config/flags.h"
#include "server/config/proto_to_text.h"
#include "server/engine/clock.h"
#include "server/engine/expiry/reaper.h"
#include "server/engine/local_store.h"
#include "server/engine/memory_budget.h"
#include "server/engine/registry.h"
#include "server/journal/maps/checkpointer.h"
#include "server/journal/maps/map_change_log.h"
#include "server/observability/call_log.h"
#include "server/observability/log.h"
#include "server/observability/loss_log.h"
#include "server/observability/monitoring.h"
#include "server/process/heap.h"
#include "server/process/journal/disk_log.h"
#include "server/process/journal/durability.h"
#include "server/process/journal/journal_metrics.h"
#include "server/process/journal/journal_status.h"
#include "server/process/journal/recovery_metrics.h"
#include "server/process/lifecycle.h"
#include "server/process/machine.h"
#include "server/process/reload.h"
#include "server/process/server_setup.h"
#include "server/process/service_manager.h"
#include "server/process/signals.h"
#include "server/process/startup_checks.h"
#include "server/process/state_metrics.h"
#include "server/process/system_memory.h"
#include "server/security/access_file.h"
#include "server/security/file_watch.h"
#include "server/security/tls_listeners.h"
#include "server/service/server.h"
#include "server/service/watch/event_codec.h"

namespace timecache::server {
namespace {

constexpr int kExitFailed = 1;
// How soon the log says what was counted.
constexpr std::chrono::seconds kLogInterval{1};
// How soon a journal that is too large is noticed.
constexpr std::chrono::seconds kCheckpointInterval{1};

int Fail(absl::string_view what) {
  std::cerr << "timecached: " << what << std::endl;
  return kExitFailed;
}

// gRPC's own words are for those who debug it: what matters to an operator is
// said here.
void LogGrpc(gpr_log_func_args* args) {
  Log(LogLevel::kDebug, "grpc", {{"message", args->message}});
}

// gRPC's traces print the headers of calls, and so the tokens of callers.
void KeepTokensOutOfTraces(const config::v1::ServerConfig& config) {
  if (config.access().file().empty() || getenv("GRPC_TRACE") == nullptr) return;
  unsetenv("GRPC_TRACE");
  Log(LogLevel::kWarning, "grpc_trace_ignored",
      {{"why", "with access rules it would print tokens"}});
}

void LogStarted(const Flags& flags, const config::v1::ServerConfig& config,
                const Server& server, const Monitoring& monitoring,
                const MemoryPlan& memory) {
  const std::string limits = ProtoToJson(config.limits());
  Log(LogLevel::kInfo, "server_started",
      {{"version", Version()},
       {"address", absl::StrJoin(server.addresses(), ",")},
       {"health", server.health_address()},
       {"http", monitoring.http_address()},
       {"namespaces", config.namespaces_size()},
       {"virtual_clock", flags.virtual_clock},
       {"limits", LogJson{limits}},
       {"max_memory_bytes", memory.engine_bytes},
       {"max_memory_source", memory.source},
       {"grace_period_s", config.grace_period().seconds()}});
}

// None of them may end before the metrics.
void AddStateMetrics(const Server& server, const Reload& reload,
                     const AccessFile* access, const TlsListeners& tls,
                     Metrics* metrics) {
  AddServerMetrics(&server, metrics);
  AddResponseMetrics(&server, metrics);
  AddMemoryMetrics(metrics);
  AddLogMetrics(metrics);
  AddReloadMetrics(&reload, metrics);
  AddAccessMetrics(access, metrics);
  AddTlsMetrics(&tls, metrics);
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
      {"health_watches_refused",
       [&] { return server.refused_health_watches(); }},
  };
}

int Serve(const Flags& flags, const config::v1::ServerConfig& config,
          Signals* signals) {
  const auto manual_clock =
      flags.virtual_clock ? std::make_unique<ManualClock>() : nullptr;
  const SystemClock system_clock;
  const Clock& clock = manual_clock != nullptr
                           ? static_cast<const Clock&>(*manual_clock)
                           : system_clock;
  // Maps tell it of changes until the last of them, and the reaper, is gone.
  std::unique_ptr<MapChangeLogs> change_logs;
  Reaper reaper(&clock, [](const std::string& name, int64_t took_us) {
    Log(LogLevel::kWarning, "slow_sweep",
        {{"namespace", name}, {"took_ms", took_us / 1000}});
  });
  Registry registry(&clock, &reaper, ToRegistryLimits(config.limits()),
                    WireFormat());
  const ServiceManager manager = ServiceManager::FromEnvironment();
  RecoveryMetrics recovery_metrics;
  // From here on probes are told that it starts.
  Monitoring monitoring(&registry, &reaper, &clock);
  monitoring.metrics()->Add(&recovery_metrics);
  if (absl::Status status = monitoring.Start(config.http().address());
      !status.ok()) {
    return Fail(status.message());
  }
  const MemoryPlan memory = PlanMemory(config.limits());
  MemoryBudget::Process().SetLimit(memory.engine_bytes);
  auto journal = OpenJournal(config);
  if (!journal.ok()) return Fail(journal.status().message());
  change_logs = *std::move(journal);
  std::unique_ptr<Checkpointer> checkpointer;

  ServerOptions options = ToServerOptions(config, manual_clock.get());
  options.grpc_memory_bytes = memory.grpc_bytes;
  options.limits.set_max_response_bytes(
      static_cast<uint64_t>(memory.response_bytes));
  options.call_observers.push_back(monitoring.calls());
  CallLog call_log(SlowCallUs(config), &system_clock);
  options.call_observers.push_back(&call_log);
  Housekeeping housekeeping;
  FileWatch files(&housekeeping);
  std::shared_ptr<AccessFile> access;
  if (!config.access().file().empty()) {
    auto file = AccessFile::Open(config.access().file(), &files);
    if (!file.ok()) return Fail(file.status().message());
    access = *std::move(file);
  }
  options.access = access.get();
  const auto tls = TlsListeners::Create(config, &files, &housekeeping);
  if (!tls.ok()) return Fail(tls.status().message());
  options.credentials = (*tls)->credentials();
  options.flush = [&reaper] { reaper.Flush(); };
  if (change_logs != nullptr) {
    options.describe_journal = [&](v1::JournalStatus* status) {
      DescribeJournal(config.journal().directory(), change_logs.get(),
                      *checkpointer, status);
    };
    options.backup_source = BackupsOf(change_logs.get());
  }
  LocalStore store(&registry, &clock);
  Server server(&store, &clock, std::move(options));
  // All but health waits for the recovery, which may take minutes.
  if (absl::Status status = server.StartHealth(); !status.ok())
    return Fail(status.message());
  std::unique_ptr<Housekeeping::Task> checkpoints;
  if (change_logs != nullptr) {
    absl::Status status =
        Recover(config, *signals, clock, manual_clock.get(),
                {&recovery_metrics, monitoring.readiness(), &manager},
                change_logs.get(), &registry);
    if (absl::IsCancelled(status)) return EXIT_SUCCESS;
    if (!status.ok()) return Fail(status.message());
    checkpointer =
        std::make_unique<Checkpointer>(change_logs.get(), &registry, &clock);
    checkpoints = housekeeping.Every(kCheckpointInterval,
                                     [&checkpointer] { checkpointer->Look(); });
  }
  const auto trims = housekeeping.Every(kHeapTrimInterval, [] { TrimHeap(); });
  if (absl::Status status = CreateNamespaces(config, &registry); !status.ok()) {
    return Fail(status.message());
  }
  if (absl::Status status = server.Start(); !status.ok())
    return Fail(status.message());
  LogStartupChecks(config);
  LogNamespaces(config);
  LogStarted(flags, config, server, monitoring, memory);

  Reload reload(config, [&flags] { return ReadConfig(flags); });
  AddAppliers(&registry, &server, &call_log, &reload);
  reload.Also([&files] { files.Check(); });
  std::unique_ptr<JournalMetrics> journal_metrics;
  if (change_logs != nullptr) {
    journal_metrics =
        std::make_unique<JournalMetrics>(change_logs.get(), checkpointer.get());
    monitoring.metrics()->Add(journal_metrics.get());
  }
  AddStateMetrics(server, reload, access.get(), **tls, monitoring.metrics());
  DiskLog disk_log(
      [logs = change_logs.get()] {
        return logs != nullptr && logs->disk_full();
      },
      config.journal().directory());
  LossLog loss_log(&registry, &system_clock, CountersOf(server));
  {
    const auto logs = housekeeping.Every(kLogInterval, [&] {
      call_log.WriteDue();
      loss_log.Look();
      disk_log.Look();
    });
    Lifecycle{signals, &manager, monitoring.readiness(), &reload, &server}
        .Run();
  }
  call_log.Finish();
  loss_log.Finish();
  monitoring.Stop();
  return EXIT_SUCCESS;
}

int Main(int argc, char** argv) {
  // Debian builds Abseil with its checks of the lock order on, which cost
  // several times what the lock does. The tests leave them on.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  FitAllocator();
  const std::variant<Flags, int> parsed = ParseFlags(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const Flags& flags = std::get<Flags>(parsed);
  const absl::StatusOr<config::v1::ServerConfig> config = ReadConfig(flags);
  if (!config.ok()) return Fail(config.status().message());
  if (flags.check_config) {
    if (absl::Status status = CheckConfigFiles(*config); !status.ok()) {
      return Fail(status.message());
    }
    std::cout << ProtoToYaml(*config);
    return EXIT_SUCCESS;
  }
  SetLogging(config->log());
  gpr_set_log_function(LogGrpc);
  KeepTokensOutOfTraces(*config);
  RaiseOpenFiles();

  if (!flags.restore.empty()) {
    absl::Status status = RestoreBackup(flags.restore, *config);
    if (!status.ok()) return Fail(status.message());
  }

  // Before there is a thread that could take them.
  Signals signals;
  return Serve(flags, *config, &signals);
}

}  // namespace
}  // namespace timecache::server

int main(int argc, char** argv) { return timecache::server::Main(argc, argv); }
