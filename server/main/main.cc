// The process: its flags, its configuration, and the node that they ask for.

#include <cstdlib>
#include <iostream>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpc/support/log.h"
#include "server/api/proto_to_text.h"
#include "server/main/cluster_init.h"
#include "server/main/cluster_restore.h"
#include "server/main/config/config.h"
#include "server/main/config/flags.h"
#include "server/main/durability.h"
#include "server/main/machine.h"
#include "server/main/node.h"
#include "server/main/server_setup.h"
#include "server/main/signals.h"
#include "server/main/system_memory.h"
#include "server/ops/log.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {
namespace {

constexpr int kExitFailed = 1;
// Until a node that could not begin again, as brokers did not answer, tries again.
constexpr absl::Duration kRestartInterval = absl::Milliseconds(200);

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

  if (flags.cluster_init.has_value()) {
    const absl::Status made =
        InitCluster(*flags.cluster_init, *config, std::cout);
    return made.ok() ? EXIT_SUCCESS : Fail(made.message());
  }
  if (flags.cluster_restore.has_value()) {
    const absl::Status restored =
        RestoreCluster(*flags.cluster_restore, *config, std::cout);
    return restored.ok() ? EXIT_SUCCESS
                         : Fail(absl::StrCat("the backup cannot be restored: ",
                                             restored.message()));
  }
  if (!flags.restore.empty()) {
    absl::Status status = RestoreBackup(flags.restore, *config);
    if (!status.ok()) return Fail(status.message());
  }

  // Before there is a thread that could take them.
  Signals signals;
  bool has_begun = false;
  while (true) {
    Node node(flags, *config, &signals);
    const absl::Status status = node.Start();
    if (status.ok()) node.Run();
    // As a standby: nothing of what this one has in memory counts any more.
    has_begun |= node.begins_again();
    if (node.begins_again()) continue;
    // Its brokers were there, and come back.
    if (has_begun && absl::IsUnavailable(status)) {
      Log(LogLevel::kWarning, "standby_not_started",
          {{"why", status.message()}});
      if (signals.NextEndWithin(kRestartInterval) == 0) continue;
      return EXIT_SUCCESS;
    }
    return status.ok() || absl::IsCancelled(status) ? EXIT_SUCCESS
                                                    : Fail(status.message());
  }
}

}  // namespace
}  // namespace timecache::server

int main(int argc, char** argv) { return timecache::server::Main(argc, argv); }
