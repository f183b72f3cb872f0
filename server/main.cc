// The composition root: flags and configuration, the objects that they ask for,
// and the wait for signals.

#include <grpc/support/log.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/engine/clock.h"
#include "server/engine/memory_budget.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/ops/access_file.h"
#include "server/ops/call_log.h"
#include "server/ops/config.h"
#include "server/ops/configured_namespaces.h"
#include "server/ops/file_watch.h"
#include "server/ops/flags.h"
#include "server/ops/heap_trimmer.h"
#include "server/ops/log.h"
#include "server/ops/machine.h"
#include "server/ops/monitoring.h"
#include "server/ops/proto_to_yaml.h"
#include "server/ops/read_file.h"
#include "server/ops/reload.h"
#include "server/ops/service_manager.h"
#include "server/ops/signals.h"
#include "server/ops/startup_checks.h"
#include "server/ops/state_metrics.h"
#include "server/ops/system_memory.h"
#include "server/ops/tls_listeners.h"
#include "server/ops/version.h"
#include "server/service/event_codec.h"
#include "server/service/server.h"

namespace timecache {
namespace {

constexpr int kExitFailed = 1;

int Fail(absl::string_view what) {
  std::cerr << "timecached: " << what << std::endl;
  return kExitFailed;
}

// gRPC's own words are for those who debug it: what matters to an operator is
// said here.
void LogGrpc(gpr_log_func_args* args) {
  Log(LogLevel::kDebug, "grpc", {{"message", args->message}});
}

void LogNamespace(absl::string_view event, const std::string& name,
                  const std::string& about) {
  Log(LogLevel::kInfo, std::string_view(event.data(), event.size()),
      {{"namespace", name}, {"about", about}});
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

// The whole of it, before anything is done.
absl::StatusOr<v1::ServerConfig> ReadConfig(const Flags& flags) {
  absl::StatusOr<v1::ServerConfig> config = ConfigFromFlags(flags);
  if (!config.ok()) return config;
  if (absl::Status status = CheckNamespaces(*config); !status.ok()) {
    return status;
  }
  return config;
}

RegistryLimits ToRegistryLimits(const v1::ServerLimits& from) {
  RegistryLimits limits;
  limits.max_namespaces = static_cast<int>(from.max_namespaces());
  limits.max_entries = static_cast<int64_t>(from.max_entries());
  limits.max_bytes = static_cast<int64_t>(from.max_bytes());
  return limits;
}

ServerOptions ToServerOptions(const v1::ServerConfig& config,
                              ManualClock* virtual_clock) {
  ServerOptions options;
  for (const v1::Listener& listener : config.listeners()) {
    options.addresses.push_back(listener.address());
  }
  options.max_watchers = config.limits().max_watchers();
  options.limits = ServerLimits::From(config.limits());
  options.virtual_clock = virtual_clock;
  options.observer = LogNamespace;
  options.reflection = config.debug().reflection();
  options.channelz = config.debug().channelz();
  options.health_address = config.health_address();
  options.version = Version();
  return options;
}

int64_t SlowCallUs(const v1::ServerConfig& config) {
  return absl::ToInt64Microseconds(ToDuration(config.log().slow_call()));
}

// gRPC's traces print the headers of calls, and so the tokens of callers.
void KeepTokensOutOfTraces(const v1::ServerConfig& config) {
  if (config.access().file().empty() || getenv("GRPC_TRACE") == nullptr) return;
  unsetenv("GRPC_TRACE");
  Log(LogLevel::kWarning, "grpc_trace_ignored",
      {{"why", "with access rules it would print tokens"}});
}

// What reading it at the start would come to.
absl::Status CheckAccessFile(const v1::ServerConfig& config) {
  const std::string& path = config.access().file();
  if (path.empty()) return absl::OkStatus();
  const auto text = ReadFile(path, FileWatch::kMaxFileBytes);
  if (!text.ok()) return text.status();
  return AccessRules::Parse(*text, path).status();
}

// What takes effect without a restart.
void AddAppliers(Registry* registry, Server* server, CallLog* call_log,
                 Reload* reload) {
  reload->Apply("log", [=](const v1::ServerConfig& now) {
    SetLogging(now.log());
    call_log->SetSlowCall(SlowCallUs(now));
  });
  // Looked at when the server stops.
  reload->Apply("grace_period", [](const v1::ServerConfig&) {});
  reload->Apply("drain_delay", [](const v1::ServerConfig&) {});
  reload->Apply("namespaces", [=](const v1::ServerConfig& before,
                                  const v1::ServerConfig& now) {
    return ReloadNamespaces(before, now, registry);
  });
  const auto set_limits = [=](const v1::ServerConfig&,
                              const v1::ServerConfig& now) {
    return registry->SetLimits(ToRegistryLimits(now.limits()));
  };
  for (const char* field : {"max_namespaces", "max_entries", "max_bytes"}) {
    reload->Apply(absl::StrCat("limits.", field), set_limits);
  }
  reload->Apply("limits.max_memory_bytes", [](const v1::ServerConfig& now) {
    MemoryBudget::Process().SetLimit(PlanMemory(now.limits()).engine_bytes);
  });
  reload->Apply("limits.max_watchers", [=](const v1::ServerConfig& now) {
    server->SetMaxWatchers(now.limits().max_watchers());
  });
}

// Returns the signal that ends it.
int ServeUntilSignal(Signals* signals, const ServiceManager& manager,
                     Reload* reload) {
  while (true) {
    const int signal = signals->Next();
    if (signal != SIGHUP) return signal;
    manager.Reloading();
    manager.Ready(reload->Run() ? "Serving"
                                : "Serving; the configuration has an error, "
                                  "see the log");
  }
}

// A second signal does not wait.
void Stop(int signal, const v1::ServerConfig& config, Signals* signals,
          const ServiceManager& manager, Server* server) {
  const absl::Time start = absl::Now();
  const absl::Duration delay = ToDuration(config.drain_delay());
  const absl::Duration grace = ToDuration(config.grace_period());
  Log(LogLevel::kInfo, "drain_started",
      {{"signal", strsignal(signal)},
       {"drain_delay_ms", absl::ToInt64Milliseconds(delay)},
       {"grace_period_ms", absl::ToInt64Milliseconds(grace)}});
  manager.Stopping(delay + grace);
  server->SetNotServing();
  if (delay > absl::ZeroDuration()) signals->NextEndWithin(delay);
  signals->Release();
  const DrainReport report = server->Drain(absl::ToInt64Microseconds(grace));
  Log(report.in_time ? LogLevel::kInfo : LogLevel::kWarning, "server_stopped",
      {{"calls_cancelled", !report.in_time},
       {"watchers", report.watchers},
       {"pipelines", report.pipelines},
       {"took_ms", absl::ToInt64Milliseconds(absl::Now() - start)}});
}

int Serve(const Flags& flags, const v1::ServerConfig& config,
          Signals* signals) {
  const auto manual_clock =
      flags.virtual_clock ? std::make_unique<ManualClock>() : nullptr;
  const SystemClock system_clock;
  const Clock& clock = manual_clock != nullptr
                           ? static_cast<const Clock&>(*manual_clock)
                           : system_clock;
  Reaper reaper(&clock, [](const std::string& name, int64_t took_us) {
    Log(LogLevel::kWarning, "slow_sweep",
        {{"namespace", name}, {"took_ms", took_us / 1000}});
  });
  Registry registry(&clock, &reaper, ToRegistryLimits(config.limits()),
                    WireFormat());
  // From here on probes are told that it starts.
  Monitoring monitoring(&registry, &reaper, &clock);
  if (absl::Status status = monitoring.Start(config.http().address());
      !status.ok()) {
    return Fail(status.message());
  }
  const MemoryPlan memory = PlanMemory(config.limits());
  MemoryBudget::Process().SetLimit(memory.engine_bytes);
  if (absl::Status status = CreateNamespaces(config, &registry); !status.ok()) {
    return Fail(status.message());
  }

  ServerOptions options = ToServerOptions(config, manual_clock.get());
  options.limits.grpc_memory_bytes = memory.grpc_bytes;
  options.call_observers.push_back(monitoring.calls());
  CallLog call_log(SlowCallUs(config), &system_clock);
  options.call_observers.push_back(&call_log);
  FileWatch files;
  const HeapTrimmer heap_trimmer;
  std::shared_ptr<AccessFile> access;
  if (!config.access().file().empty()) {
    auto file = AccessFile::Open(config.access().file(), &files);
    if (!file.ok()) return Fail(file.status().message());
    access = *std::move(file);
  }
  options.access = access.get();
  const auto tls = TlsListeners::Create(config, &files);
  if (!tls.ok()) return Fail(tls.status().message());
  options.credentials = (*tls)->credentials();
  Server server(&registry, &reaper, &clock, std::move(options));
  if (absl::Status status = server.Start(); !status.ok())
    return Fail(status.message());
  LogStartupChecks(config);
  LogNamespaces(config);
  Log(LogLevel::kInfo, "server_started",
      {{"version", Version()},
       {"address", absl::StrJoin(server.addresses(), ",")},
       {"health", server.health_address()},
       {"http", monitoring.http_address()},
       {"namespaces", config.namespaces_size()},
       {"virtual_clock", flags.virtual_clock},
       {"limits", config.limits().ShortDebugString()},
       {"max_memory_bytes", memory.engine_bytes},
       {"max_memory_source", memory.source},
       {"grace_period_s", config.grace_period().seconds()}});

  Reload reload(config, [&flags] { return ReadConfig(flags); });
  AddAppliers(&registry, &server, &call_log, &reload);
  reload.Also([&files] { files.Check(); });
  AddServerMetrics(&server, monitoring.metrics());
  AddMemoryMetrics(monitoring.metrics());
  AddReloadMetrics(&reload, monitoring.metrics());
  AddAccessMetrics(access.get(), monitoring.metrics());
  AddTlsMetrics(tls->get(), monitoring.metrics());
  monitoring.readiness()->Set(Readiness::State::kServing);
  const ServiceManager manager = ServiceManager::FromEnvironment();
  manager.Ready("Serving");
  const int signal = ServeUntilSignal(signals, manager, &reload);
  monitoring.readiness()->Set(Readiness::State::kDraining);
  Stop(signal, reload.config(), signals, manager, &server);
  monitoring.Stop();
  return EXIT_SUCCESS;
}

int Main(int argc, char** argv) {
  // Debian builds Abseil with its checks of the lock order on, which cost
  // several times what the lock does. The tests leave them on.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  FitAllocatorToAddressSpace();
  const std::variant<Flags, int> parsed = ParseFlags(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const Flags& flags = std::get<Flags>(parsed);
  const absl::StatusOr<v1::ServerConfig> config = ReadConfig(flags);
  if (!config.ok()) return Fail(config.status().message());
  if (flags.check_config) {
    if (absl::Status status = CheckAccessFile(*config); !status.ok()) {
      return Fail(status.message());
    }
    std::cout << ProtoToYaml(*config);
    return EXIT_SUCCESS;
  }
  SetLogging(config->log());
  gpr_set_log_function(LogGrpc);
  KeepTokensOutOfTraces(*config);
  RaiseOpenFiles();

  // Before there is a thread that could take them.
  Signals signals;
  return Serve(flags, *config, &signals);
}

}  // namespace
}  // namespace timecache

int main(int argc, char** argv) { return timecache::Main(argc, argv); }
