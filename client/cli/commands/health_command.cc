// health: whether a server serves, for probes that run a program.
#include <string>

#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"

namespace timecache::cli {
namespace {

// As grpc.health.v1 names them.
std::string ServingName(ServingStatus status) {
  switch (status) {
    case ServingStatus::kServing:
      return "SERVING";
    case ServingStatus::kNotServing:
      return "NOT_SERVING";
    case ServingStatus::kUnknown:
      break;
  }
  return "UNKNOWN";
}

int RunHealth(const Context& context) {
  const auto status = context.MakeClient().CheckHealth().value();
  const std::string name = ServingName(status);
  return Print(context, {{"status", name}}, name,
               status == ServingStatus::kServing ? kExitDone : kExitNotFound);
}

}  // namespace

void AddHealthCommand(CLI::App& app, Context& context) {
  auto* health = app.add_subcommand(
      "health", "Whether the server serves: exits with 0 if so, else with 1");
  health->footer(
      "Calls grpc.health.v1.Health. Exits with 2 if there is no answer.\n\n"
      "Example:\n"
      "  timecachectl health --address 127.0.0.1:7173 --timeout 1s");
  OnRun(health, context, RunHealth);
}

}  // namespace timecache::cli
