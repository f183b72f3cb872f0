// clock now, clock advance.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "timecache/virtual_clock.h"

namespace timecache::cli {
namespace {

struct ClockArguments {
  std::optional<absl::Duration> by;
  std::optional<absl::Time> to;
};

VirtualClock MakeClock(const Context& context) {
  const Client client = context.MakeClient();
  return context.timeout_given ? VirtualClock(client, context.timeout)
                               : VirtualClock(client);
}

int Print(const Context& context, const absl::StatusOr<absl::Time>& now) {
  if (absl::IsUnimplemented(now.status())) {
    return context.Fail(absl::FailedPreconditionError(
        absl::StrCat("the server at ", context.address,
                     " runs on the real clock, which only passes: start one "
                     "for tests with timecached --virtual-clock")));
  }
  if (!now.ok()) return context.Fail(now.status());
  return Print(context, {{"now", ExactTimeText(*now)}}, ExactTimeText(*now));
}

int RunAdvance(const Context& context, const ClockArguments& arguments) {
  const VirtualClock clock = MakeClock(context);
  return Print(context, arguments.to ? clock.AdvanceTo(*arguments.to)
                                     : clock.Advance(*arguments.by));
}

}  // namespace

void AddClockCommands(CLI::App& app, Context& context) {
  CLI::App* clock = app.add_subcommand(
      "clock", "Show and advance the clock of a server under --virtual-clock");
  clock->require_subcommand(1);
  clock->footer(
      "For tests: time stands still until it is advanced. It begins at\n"
      "1970-01-01T00:00:00Z, and never goes back.\n\n"
      "Examples:\n"
      "  timecachectl clock now\n"
      "  timecachectl clock advance 30m\n"
      "  timecachectl clock advance --to 1970-01-02T00:00:00Z");
  CLI::App* now = clock->add_subcommand("now", "Show its time");
  now->footer("Example:\n  timecachectl clock now");
  OnRun(now, context,
        [](const Context& on) { return Print(on, MakeClock(on).Now()); });
  auto arguments = std::make_shared<ClockArguments>();
  CLI::App* advance = clock->add_subcommand(
      "advance", "Advance it, and wait for all that is due then");
  AddDuration(*advance, "duration", arguments->by, "How far");
  AddTime(*advance, "--to", arguments->to,
          "Up to this time, in place of a duration");
  advance->footer(
      "Ends once all that is due has died, and its events are published.\n\n"
      "Examples:\n"
      "  timecachectl clock advance 30m\n"
      "  timecachectl clock advance --to 1970-01-02T00:00:00Z");
  OnRun(advance, context, arguments, RunAdvance,
        [](const ClockArguments& given) {
          if (given.by.has_value() == given.to.has_value()) {
            throw CLI::ValidationError("advance", "give a duration, or --to");
          }
        });
}

}  // namespace timecache::cli
