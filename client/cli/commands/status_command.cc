// status, top: the server at a glance, once or again and again.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/server_text.h"
#include "client/cli/ui/terminal.h"

namespace timecache::cli {
namespace {

constexpr absl::Duration kMinInterval = absl::Milliseconds(100);
constexpr absl::Duration kMaxInterval = absl::Hours(1);

struct StatusArguments {
  // Unset, `status` takes one sample and shows no rates.
  std::optional<absl::Duration> interval;
  // How often `top` prints; 0: until it is ended.
  uint64_t count = 0;
};

bool Print(const Context& context, const std::string& address,
           const ServerSample& sample, const ServerSample* before) {
  const bool written = context.json
                           ? WriteJson(ServerJson(address, sample, before))
                           : WriteLine(ServerText(address, sample, before));
  return written && Flush();
}

int RunStatus(const Context& context, const StatusArguments& arguments) {
  const Client client = context.MakeClient();
  absl::StatusOr<ServerSample> before = TakeSample(client);
  if (!before.ok()) return context.Fail(before.status());
  if (!arguments.interval) {
    return Print(context, client.address(), *before, nullptr)
               ? kExitDone
               : context.FailToWrite();
  }
  absl::SleepFor(*arguments.interval);
  const absl::StatusOr<ServerSample> now = TakeSample(client);
  if (!now.ok()) return context.Fail(now.status());
  return Print(context, client.address(), *now, &*before)
             ? kExitDone
             : context.FailToWrite();
}

// Sample after sample, for a terminal or, one under the other, for a file. An
// error at the start ends it; later the server may come back, and the screen
// says meanwhile what is wrong.
class Top {
 public:
  Top(const Context& context, const StatusArguments& arguments)
      : context_(context),
        arguments_(arguments),
        client_(context.MakeClient()),
        interval_(arguments.interval.value_or(absl::Seconds(1))) {}

  int Run() {
    absl::StatusOr<ServerSample> first = TakeSample(client_);
    if (!first.ok()) return context_.Fail(first.status());
    before_ = *std::move(first);
    absl::Notification interrupted;
    std::atomic<bool> once{false};
    const InterruptHandler handler([&] {
      if (!once.exchange(true)) interrupted.Notify();
    });
    const Terminal terminal;
    const bool draw = terminal.present() && !context_.json;
    for (uint64_t i = 0; arguments_.count == 0 || i < arguments_.count; ++i) {
      if (draw && i == 0) Show(terminal, before_, nullptr);
      const bool end =
          draw ? terminal.WaitForKey(interval_) == 'q' ||
                     interrupted.HasBeenNotified()
               : interrupted.WaitForNotificationWithTimeout(interval_);
      if (end) break;
      absl::StatusOr<ServerSample> now = TakeSample(client_);
      if (!now.ok() && !draw) return context_.Fail(now.status());
      if (!now.ok()) {
        terminal.Draw(context_.Explain(now.status()));
        continue;
      }
      AddHotKeys(client_, before_, &*now);
      const bool written =
          draw ? Show(terminal, *now, &before_) : PrintBlock(i == 0, *now);
      if (!written) return context_.FailToWrite();
      before_ = *std::move(now);
    }
    return kExitDone;
  }

 private:
  bool Show(const Terminal& terminal, const ServerSample& sample,
            const ServerSample* before) const {
    const Terminal::Size size = terminal.size();
    return terminal.Draw(
        ServerText(client_.address(), sample, before, size.rows, size.columns));
  }
  bool PrintBlock(bool first, const ServerSample& sample) const {
    return (first || context_.json || WriteLine("")) &&
           Print(context_, client_.address(), sample, &before_);
  }

  const Context& context_;
  const StatusArguments& arguments_;
  const Client client_;
  const absl::Duration interval_;
  ServerSample before_;
};

void AddInterval(CLI::App& app, StatusArguments& arguments,
                 const std::string& help) {
  AddDuration(
      app, "--interval",
      [&arguments](absl::Duration interval) {
        if (interval < kMinInterval || interval > kMaxInterval) {
          throw CLI::ValidationError("--interval", "must be from 100ms to 1h");
        }
        arguments.interval = interval;
      },
      help);
}

}  // namespace

void AddStatusCommands(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* status = app.add_subcommand(
      "status", "Show the server: limits, journal, namespaces, groups");
  AddInterval(*status, *arguments, "Show rates, too: those over this time");
  status->footer(
      R"(LATE: 99 % of events were delivered within this time of the death; BOUND:
the bucket width; VIOLATIONS: events published later than that. LAG: the age
of a group's oldest unsettled event. "memory only": without a journal no
namespace survives a restart.

Examples:
  timecachectl status
  timecachectl status --interval 5s --json | jq .namespaces[].rates)");
  OnRun(status, context, arguments, RunStatus);

  arguments = std::make_shared<StatusArguments>();
  CLI::App* top = app.add_subcommand(
      "top", "Show it periodically, with rates, the busiest first; q quits");
  AddInterval(*top, *arguments, "How often (1s)");
  AddCount(*top, "--count", arguments->count,
           "Stop after this many samples; 0: never (0)");
  top->footer(
      "KEY: the hottest ones of the busiest namespace, see `hot`. "
      "If standard output is not a terminal, prints one block of text after "
      "the other.\n\n"
      "Examples:\n"
      "  timecachectl top\n"
      "  timecachectl top --interval 10s --count 6 > minute.txt");
  OnRun(top, context, arguments,
        [](const Context& on, const StatusArguments& given) {
          // Before gRPC has threads that could take the signals.
          InterruptHandler::Hold();
          return Top(on, given).Run();
        });
}

}  // namespace timecache::cli
