// fetch.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"
#include "client/cli/ui/watch_printer.h"
#include "client/cli/watch_arguments.h"
#include "timecache/settle.h"

namespace timecache::cli {
namespace {

struct FetchArguments {
  std::string ns;  // Empty: that of -n.
  std::string group;
  FetchOptions options;
  bool acknowledge = true;
};

// What cannot be acknowledged is delivered again.
bool AcknowledgeFetched(const Client& client, const std::string& group,
                        const std::vector<ExpiredEvent>& events) {
  for (size_t begin = 0; begin < events.size(); begin += kMaxSettlements) {
    const size_t end = std::min(events.size(), begin + kMaxSettlements);
    std::vector<Settlement> settlements;
    for (size_t i = begin; i < end; ++i) {
      settlements.push_back({events[i].delivery_token, Settle::Ack()});
    }
    const auto results = client.Settle(group, settlements);
    size_t failed = results.ok() ? 0 : events.size() - begin;
    absl::Status why = results.status();
    if (results.ok()) {
      for (const SettleResult& result : *results) {
        if (result.status.ok()) continue;
        ++failed;
        why = result.status;
      }
    }
    if (failed == 0) continue;
    Warn(absl::StrCat(CountText(failed),
                      " printed events could not be acknowledged, and may be "
                      "delivered again: ",
                      why.message()));
    return false;
  }
  return true;
}

int RunFetch(const Context& context, const FetchArguments& arguments) {
  Context about = context;
  if (!arguments.ns.empty()) about.namespaces = {arguments.ns};
  const Client client = about.MakeClient();
  auto fetched = client.FetchExpired(arguments.group, arguments.options);
  if (!fetched.ok()) return about.Fail(fetched.status());
  WatchBatch batch;
  batch.ns = about.ns();
  batch.events = std::move(fetched->events);
  batch.watermark = fetched->watermark;
  batch.lost = fetched->lost;
  batch.omitted_values = fetched->omitted_values;
  WatchArguments printing;
  printing.group = arguments.group;
  printing.keys_only = arguments.options.keys_only;
  printing.delivery_tokens = !arguments.acknowledge;
  WatchPrinter printer(about, printing, {batch.ns});
  if (!printer.Print(batch)) return about.FailToWrite();
  if (batch.events.empty()) return kExitNotFound;
  if (arguments.acknowledge &&
      !AcknowledgeFetched(client, arguments.group, batch.events)) {
    return kExitError;
  }
  return kExitDone;
}

constexpr char kFetchFooter[] =
    R"(For cron jobs and scripts: prints the events that are ready, as watch --group
does, and returns. Without one it waits for up to --wait for the first. Exit
code 1: there was none. Printed events are acknowledged; an event whose
acknowledgement fails is delivered again, and the exit code is 2.

--no-ack leaves the events with the caller: each is delivered again, as another
attempt, unless it is settled within the group's --ack-timeout. With --json
each has the delivery_token, in base64, that SettleExpired takes.

The group is created at its first use, with default options. Its streams (watch
--group) and fetches share its events.

Examples:
  timecachectl fetch orders --group billing --max 1000 --wait 10s
  while timecachectl fetch orders --group billing --json >> expired.json; do :; done)";

}  // namespace

void AddFetchCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<FetchArguments>();
  CLI::App* fetch = app.add_subcommand(
      "fetch", "Print a consumer group's next events, and return");
  fetch->add_option("namespace", arguments->ns,
                    "The namespace; else that of -n");
  fetch->add_option("--group", arguments->group, "The consumer group")
      ->type_name("GROUP")
      ->required();
  AddCount(*fetch, "--max", arguments->options.max_events,
           "Most events, up to 8192 (100)");
  AddDuration(*fetch, "--wait", arguments->options.wait,
              "How long to wait for the first event, up to 1m (0s)");
  fetch->add_flag("--keys-only", arguments->options.keys_only,
                  "Leave the values out");
  fetch->add_flag_callback(
      "--from-earliest",
      [arguments = arguments.get()] {
        arguments->options.start = WatchStart::kEarliest;
      },
      "Start a group that is created now with the oldest retained event");
  fetch->add_flag_callback(
      "--no-ack",
      [arguments = arguments.get()] { arguments->acknowledge = false; },
      "Do not acknowledge the printed events");
  fetch->footer(kFetchFooter);
  OnRun(fetch, context, arguments, RunFetch);
}

}  // namespace timecache::cli
