// cluster status, cluster handover.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/cluster_text.h"
#include "client/cli/ui/command_result.h"

namespace timecache::cli {
namespace {

constexpr absl::Duration kOwnerLookInterval = absl::Milliseconds(20);

int RunClusterStatus(const Context& context) {
  const ClusterInfo cluster = context.MakeClient().GetCluster().value();
  const bool owned =
      cluster.slots.empty()
          ? !cluster.owner.empty()
          : absl::c_all_of(cluster.slots, [](const ClusterSlot& slot) {
              return !slot.owner.empty();
            });
  return Print(context, ClusterJson(cluster),
               ClusterText(context.address, cluster),
               owned ? kExitDone : kExitNotFound);
}

struct HandoverArguments {
  std::string to;
};

// Of slots, whichever node serves them now.
bool IsServing(const ClusterInfo& cluster, const std::string& node) {
  if (!cluster.slots.empty()) {
    return absl::c_all_of(cluster.slots, [](const ClusterSlot& slot) {
      return !slot.owner.empty();
    });
  }
  return cluster.owner == node &&
         absl::c_any_of(cluster.nodes, [&node](const ClusterNode& found) {
           return found.name == node && found.role == NodeRole::kOwner;
         });
}

// Until then, or for the time of a call: the node that was the owner goes on as
// a standby, and may not answer for a moment.
bool AwaitOwner(const Client& client, const std::string& node,
                absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  do {
    const absl::StatusOr<ClusterInfo> cluster = client.GetCluster();
    if (cluster.ok() && IsServing(*cluster, node)) return true;
    absl::SleepFor(kOwnerLookInterval);
  } while (absl::Now() < deadline);
  return false;
}

int RunHandover(const Context& context, const HandoverArguments& arguments) {
  const Client client = context.MakeClient();
  const ClusterInfo before = client.GetCluster().value();
  // With slots: those of the node that was asked.
  const std::string from = before.slots.empty() ? before.owner : before.node;
  const absl::Time start = absl::Now();
  const std::string to = client.HandOver(arguments.to).value();
  const bool serves = AwaitOwner(client, to, context.timeout);
  const absl::Duration took =
      absl::Trunc(absl::Now() - start, absl::Milliseconds(1));
  const Json object = {{"from", from},
                       {"to", to},
                       {"serves", serves},
                       {"took_ms", absl::ToInt64Milliseconds(took)}};
  const std::string text =
      serves ? absl::StrCat(to, " owns, after ", DurationText(took))
             : absl::StrCat(from, " has released the ownership to ", to,
                            ", which does not serve after ", DurationText(took),
                            ": see timecachectl cluster status");
  return Print(context, object, text, serves ? kExitDone : kExitNotFound);
}

}  // namespace

void AddClusterCommands(CLI::App& app, Context& context) {
  CLI::App* cluster = app.add_subcommand(
      "cluster", "Show a cluster's nodes, and move its ownership");
  cluster->require_subcommand(1);
  cluster->footer(
      "Examples:\n"
      "  timecachectl cluster status\n"
      "  timecachectl cluster handover --to cache-2");
  CLI::App* status = cluster->add_subcommand(
      "status", "Show the owner, the standbys, brokers and wrong settings");
  status->footer(
      R"(As the node at --address sees it; any node answers. HEARTBEAT: the time since
the node's last one; LAG: messages of the journal that it had not replayed
then. Where nodes share the ownership, OWNS and STANDS BY count slots. Exits with 0 if a
node owns, or each slot has an owner, else with 1.

Examples:
  timecachectl cluster status
  timecachectl cluster status --json | jq -r .owner)");
  OnRun(status, context, RunClusterStatus);

  auto arguments = std::make_shared<HandoverArguments>();
  CLI::App* handover = cluster->add_subcommand(
      "handover", "Make the owner hand over, and wait until another serves");
  handover
      ->add_option("--to", arguments->to,
                   "The next owner (the standby that has replayed most)")
      ->type_name("NODE");
  handover->footer(
      R"(Calls at the time fail with NOT_OWNER, and clients go to the next owner. If no
standby has caught up nothing changes. Waits for --timeout at most; exits with
1 if the next owner does not serve by then.

Where nodes share the ownership, each slot of the node at --address goes to its
standby; with --to all go to that node, which must have replayed each.

Examples:
  timecachectl cluster handover
  timecachectl cluster handover --to cache-2 --timeout 30s)");
  OnRun(handover, context, arguments, RunHandover);
}

}  // namespace timecache::cli
