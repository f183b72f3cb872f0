// health: whether a server serves, for probes that run a program.
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/ui/output.h"
#include "client/cpp/call.h"
#include "client/cpp/connection.h"
#include "client/cpp/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/client_context.h"

namespace timecache::cli {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

int RunHealth(const Context& context) {
  const Client client = context.MakeClient();
  grpc::ClientContext call;
  Connection connection(client.channel());
  Begin(connection, context.timeout, call);
  HealthCheckResponse response;
  const grpc::Status status =
      Health::NewStub(client.channel())
          ->Check(&call, HealthCheckRequest(), &response);
  if (!status.ok()) return context.Fail(FromGrpcStatus(status));
  const bool serving = response.status() == HealthCheckResponse::SERVING;
  const std::string& name =
      HealthCheckResponse::ServingStatus_Name(response.status());
  const bool written =
      context.json ? WriteJson({{"status", name}}) : WriteLine(name);
  if (!written || !Flush()) return context.FailToWrite();
  return serving ? kExitDone : kExitNotFound;
}

}  // namespace

void AddHealthCommand(CLI::App& app, Context& context) {
  auto* health = app.add_subcommand(
      "health", "Whether the server serves: exits with 0 if so, else with 1");
  health->footer(
      "Asks grpc.health.v1.Health. 2: there is no answer.\n\n"
      "Example:\n"
      "  timecachectl health --address 127.0.0.1:7173 --timeout 1s");
  health->callback([&context] {
    context.command = [&context] { return RunHealth(context); };
  });
}

}  // namespace timecache::cli
