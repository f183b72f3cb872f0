#include "server/main/server_setup.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/proto_time.h"
#include "server/base/housekeeping.h"
#include "server/base/memory_budget.h"
#include "server/base/read_file.h"
#include "server/base/version.h"
#include "server/edge/access_rules.h"
#include "server/edge/file_watch.h"
#include "server/edge/tls_listeners.h"
#include "server/main/cluster_init.h"
#include "server/main/config/cluster_config.h"
#include "server/main/config/config.h"
#include "server/main/config/configured_namespaces.h"
#include "server/main/peer_credentials.h"
#include "server/main/system_memory.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

absl::Status CheckAccessFile(const config::v1::ServerConfig& config) {
  const std::string& path = config.access().file();
  if (path.empty()) return absl::OkStatus();
  const auto text = ReadFile(path, FileWatch::kMaxFileBytes);
  if (!text.ok()) return text.status();
  return AccessRules::Parse(*text, path).status();
}

}  // namespace

absl::StatusOr<config::v1::ServerConfig> ReadConfig(const Flags& flags) {
  absl::StatusOr<config::v1::ServerConfig> config = ConfigFromFlags(flags);
  if (!config.ok()) return config;
  if (absl::Status status = CheckNamespaces(*config); !status.ok()) {
    return status;
  }
  return config;
}

absl::Status CheckConfigFiles(const config::v1::ServerConfig& config) {
  if (absl::Status status = CheckAccessFile(config); !status.ok()) {
    return status;
  }
  if (!config.cluster().name().empty()) {
    const auto kafka = ToKafkaOptions(config.cluster().kafka());
    if (!kafka.ok()) return kafka.status();
    if (absl::Status status = CheckPeerFiles(config); !status.ok()) {
      return status;
    }
  }
  Housekeeping none;
  FileWatch files;
  return TlsListeners::Create(config, &files, &none).status();
}

int64_t SlowCallUs(const config::v1::ServerConfig& config) {
  return absl::ToInt64Microseconds(ToDuration(config.log().slow_call()));
}

int64_t StallGraceUs(const config::v1::ServerConfig& config) {
  return absl::ToInt64Microseconds(ToDuration(config.stall_grace()));
}

RegistryLimits ToRegistryLimits(const config::v1::ServerLimits& from) {
  RegistryLimits limits;
  limits.max_namespaces = static_cast<int>(from.max_namespaces());
  limits.max_entries = static_cast<int64_t>(from.max_entries());
  limits.max_bytes = static_cast<int64_t>(from.max_bytes());
  return limits;
}

ServerOptions ToServerOptions(const config::v1::ServerConfig& config,
                              ManualClock* virtual_clock) {
  ServerOptions options;
  for (const config::v1::Listener& listener : config.listeners()) {
    options.addresses.push_back(listener.address());
  }
  options.limits = config.limits();
  options.virtual_clock = virtual_clock;
  options.default_partitions = static_cast<int>(config.default_partitions());
  options.observer = LogNamespace;
  options.reflection = config.debug().reflection();
  options.health_address = config.health_address();
  options.version = Version();
  return options;
}

void LogSlowSweep(const std::string& map, int64_t took_us) {
  Log(LogLevel::kWarning, "slow_sweep",
      {{"namespace", map}, {"took_ms", took_us / 1000}});
}

void DescribeSlowCalls(const CallLog& from, v1::ListSlowCallsResponse* calls) {
  if (const int64_t slow_us = from.slow_call_us(); slow_us > 0) {
    SetDuration(slow_us, calls->mutable_threshold());
  }
  for (SlowCall& call : from.slow_calls().List()) {
    v1::SlowCall* const to = calls->add_calls();
    SetTime(call.time_us, to->mutable_time());
    to->set_method(std::move(call.method));
    to->set_namespace_(std::move(call.name));
    SetDuration(call.took_us, to->mutable_duration());
    to->set_code(
        absl::StatusCodeToString(static_cast<absl::StatusCode>(call.code)));
    to->set_operations(call.operations);
    to->set_principal(std::move(call.principal));
    to->set_peer(std::move(call.peer));
    to->set_request_id(std::move(call.request_id));
  }
}

void AddAppliers(ServerAccount* account, Reload::Applier namespaces,
                 Server* server, CallLog* call_log, Reload* reload) {
  reload->Apply("log", [=](const config::v1::ServerConfig& now) {
    SetLogging(now.log());
    call_log->SetSlowCall(SlowCallUs(now));
  });
  // Read when the server stops.
  reload->Apply("grace_period", [](const config::v1::ServerConfig&) {});
  reload->Apply("drain_delay", [](const config::v1::ServerConfig&) {});
  reload->Apply("namespaces", std::move(namespaces));
  const auto set_limits = [=](const config::v1::ServerConfig&,
                              const config::v1::ServerConfig& now) {
    return account->SetLimits(ToRegistryLimits(now.limits()));
  };
  for (const char* field : {"max_namespaces", "max_entries", "max_bytes"}) {
    reload->Apply(absl::StrCat("limits.", field), set_limits);
  }
  reload->Apply("limits.max_memory_bytes",
                [](const config::v1::ServerConfig& now) {
                  MemoryBudget::Process().SetLimit(
                      PlanMemory(now.limits(), ReadMachine()).engine_bytes);
                });
  reload->Apply("limits.max_watchers",
                [=](const config::v1::ServerConfig& now) {
                  server->SetMaxWatchers(now.limits().max_watchers());
                });
}

}  // namespace timecache::server
