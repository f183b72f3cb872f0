// The composition root: flags and configuration, the objects that they ask for,
// and the wait for a signal.

#include <grpc/support/log.h>
#include <pthread.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <variant>

#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/clock.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/ops/config.h"
#include "server/ops/flags.h"
#include "server/ops/log.h"
#include "server/ops/proto_to_yaml.h"
#include "server/ops/version.h"
#include "server/service/convert.h"
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

absl::Status CheckNamespaces(const v1::ServerConfig& config) {
  for (const v1::NamespaceConfig& from : config.namespaces()) {
    const absl::StatusOr<MapOptions> options = NewOptions(from.options());
    const absl::Status status = options.ok()
                                    ? ValidateNamespace(from.name(), *options)
                                    : options.status();
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("namespace \"", from.name(), "\": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CreateNamespaces(const v1::ServerConfig& config,
                              Registry* registry) {
  for (const v1::NamespaceConfig& from : config.namespaces()) {
    const auto map = registry->Create(from.name(), *NewOptions(from.options()));
    if (!map.ok()) return map.status();
  }
  return absl::OkStatus();
}

// Once the server listens: one that cannot has nothing to say but why.
void LogNamespaces(const v1::ServerConfig& config) {
  for (const v1::NamespaceConfig& from : config.namespaces()) {
    v1::NamespaceOptions options;
    SetOptions(*NewOptions(from.options()), &options);
    LogNamespace("namespace_created", from.name(), options.ShortDebugString());
  }
}

int Serve(const v1::ServerConfig& config, bool virtual_clock,
          const sigset_t& signals) {
  const auto manual_clock =
      virtual_clock ? std::make_unique<ManualClock>() : nullptr;
  const SystemClock system_clock;
  const Clock& clock =
      virtual_clock ? static_cast<const Clock&>(*manual_clock) : system_clock;
  Reaper reaper(&clock, [](const std::string& name, int64_t took_us) {
    Log(LogLevel::kWarning, "slow_sweep",
        {{"namespace", name}, {"took_ms", took_us / 1000}});
  });
  RegistryLimits limits;
  limits.max_namespaces = static_cast<int>(config.limits().max_namespaces());
  limits.max_entries = static_cast<int64_t>(config.limits().max_entries());
  limits.max_bytes = static_cast<int64_t>(config.limits().max_bytes());
  Registry registry(&clock, &reaper, limits, WireFormat());
  if (absl::Status status = CreateNamespaces(config, &registry); !status.ok()) {
    return Fail(status.message());
  }

  ServerOptions options;
  for (const v1::Listener& listener : config.listeners()) {
    options.addresses.push_back(listener.address());
  }
  options.max_watchers = config.limits().max_watchers();
  options.virtual_clock = manual_clock.get();
  options.observer = LogNamespace;
  Server server(&registry, &reaper, &clock, std::move(options));
  if (absl::Status status = server.Start(); !status.ok())
    return Fail(status.message());
  LogNamespaces(config);
  Log(LogLevel::kInfo, "server_started",
      {{"version", Version()},
       {"address", absl::StrJoin(server.addresses(), ",")},
       {"namespaces", config.namespaces_size()},
       {"virtual_clock", virtual_clock},
       {"limits", config.limits().ShortDebugString()},
       {"grace_period_s", config.grace_period().seconds()}});

  int signal = 0;
  sigwait(&signals, &signal);
  // A second signal does not wait.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  Log(LogLevel::kInfo, "drain_started", {{"signal", strsignal(signal)}});
  const bool in_time =
      server.Drain(*ToMicros(config.grace_period(), "grace_period"));
  Log(in_time ? LogLevel::kInfo : LogLevel::kWarning, "server_stopped",
      {{"calls_cancelled", !in_time}});
  return EXIT_SUCCESS;
}

int Main(int argc, char** argv) {
  // Debian builds Abseil with its checks of the lock order on, which cost
  // several times what the lock does. The tests leave them on.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::variant<Flags, int> parsed = ParseFlags(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const Flags& flags = std::get<Flags>(parsed);
  const absl::StatusOr<v1::ServerConfig> config = ConfigFromFlags(flags);
  if (!config.ok()) return Fail(config.status().message());
  if (absl::Status status = CheckNamespaces(*config); !status.ok()) {
    return Fail(status.message());
  }
  if (flags.check_config) {
    std::cout << ProtoToYaml(*config);
    return EXIT_SUCCESS;
  }
  SetLogging(config->log());
  gpr_set_log_function(LogGrpc);

  // Before there is a thread that could take them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return Serve(*config, flags.virtual_clock, signals);
}

}  // namespace
}  // namespace timecache

int main(int argc, char** argv) { return timecache::Main(argc, argv); }
