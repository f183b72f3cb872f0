// watch.
#include <poll.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/flags.h"
#include "client/cli/interrupt.h"
#include "client/cli/output.h"
#include "client/cli/progress.h"
#include "client/cpp/watcher.h"

namespace timecache::cli {
namespace {

// How often a watch on which nothing happens looks whether anyone still reads.
constexpr absl::Duration kLookInterval = absl::Milliseconds(500);

struct WatchArguments {
  std::vector<std::string> namespaces;
  std::string prefix;
  bool from_earliest = false;
  bool keys_only = false;
  bool watermarks = false;
  uint64_t count = 0;
  std::optional<absl::Time> until;
  std::optional<absl::Duration> heartbeat;
};

bool ReaderHasLeft() {
  pollfd out = {.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// Prints batches. Run by one thread.
class WatchPrinter {
 public:
  WatchPrinter(const Context& context, const WatchArguments& arguments,
               const std::vector<std::string>& namespaces)
      : context_(context), arguments_(arguments) {
    for (const std::string& ns : namespaces) {
      watermarks_[ns] = absl::InfinitePast();
    }
  }

  // False when the output cannot be written.
  bool Print(const WatchBatch& batch) {
    in_break_ = false;
    bool written = true;
    if (batch.reconnected) written = PrintReconnected(batch);
    if (batch.lost > 0) written = written && PrintLost(batch);
    for (const ExpiredEvent& event : batch.events) {
      if (arguments_.count > 0 && printed_ == arguments_.count) break;
      ++printed_;
      written = written && PrintEvent(event);
    }
    if (arguments_.watermarks) written = written && PrintWatermark(batch);
    watermarks_[batch.ns] = batch.watermark;
    return written && Flush();
  }

  // Whether --count or --until-watermark is reached.
  bool IsDone() const {
    if (arguments_.count > 0 && printed_ == arguments_.count) return true;
    if (!arguments_.until) return false;
    for (const auto& [ns, watermark] : watermarks_) {
      if (watermark < *arguments_.until) return false;
    }
    return true;
  }

  // A watch that stands breaks once, however many attempts then fail.
  void TellBreak(const absl::Status& why) {
    if (std::exchange(in_break_, true)) return;
    Warn(absl::StrCat(
        "lost the connection to ", context_.address,
        why.ok() ? ": the server stopped" : absl::StrCat(": ", why.message()),
        "; trying again"));
  }

 private:
  bool PrintEvent(const ExpiredEvent& event) {
    if (context_.json) {
      return WriteJson(ToJson(event, context_.encoding, arguments_.keys_only));
    }
    const absl::Duration late = event.delivered_at - event.death_time;
    std::string line = absl::StrCat(
        TimeText(event.death_time), "\t", std::string(CauseName(event.cause)),
        "\t+", absl::FormatDuration(absl::Trunc(late, absl::Microseconds(1))),
        "\t");
    if (watermarks_.size() > 1) absl::StrAppend(&line, event.ns, "\t");
    absl::StrAppend(&line, Encode(event.key, context_.encoding));
    if (!arguments_.keys_only) {
      absl::StrAppend(&line, "\t", Encode(event.value, context_.encoding));
    }
    return WriteLine(line);
  }

  bool PrintWatermark(const WatchBatch& batch) {
    if (context_.json) {
      return WriteJson(Json{{"type", "watermark"},
                            {"namespace", batch.ns},
                            {"watermark", ExactTimeText(batch.watermark)}});
    }
    return WriteLine(
        absl::StrCat(TimeText(batch.watermark), "\twatermark\t", batch.ns));
  }

  bool PrintLost(const WatchBatch& batch) {
    Warn(absl::StrCat(batch.ns, ": ", CountText(batch.lost),
                      " events lost: this watch read too slowly"));
    return !context_.json || WriteJson(Json{{"type", "lost"},
                                            {"namespace", batch.ns},
                                            {"lost", batch.lost}});
  }

  bool PrintReconnected(const WatchBatch& batch) {
    Warn(absl::StrCat(batch.ns, ": reconnected; events that died after ",
                      TimeText(batch.missed_after), " may be missing"));
    return !context_.json ||
           WriteJson(Json{{"type", "reconnected"},
                          {"namespace", batch.ns},
                          {"missed_after", ExactTimeText(batch.missed_after)}});
  }

  const Context& context_;
  const WatchArguments& arguments_;
  std::map<std::string, absl::Time> watermarks_;
  uint64_t printed_ = 0;
  bool in_break_ = false;
};

int RunWatch(const Context& context, const WatchArguments& arguments) {
  auto prefix = context.Key(arguments.prefix);
  if (!prefix.ok()) return context.Fail(prefix.status());
  const std::vector<std::string>& namespaces =
      arguments.namespaces.empty() ? context.namespaces : arguments.namespaces;
  WatchPrinter printer(context, arguments, namespaces);
  InterruptHandler::Hold();
  const WatchStart start =
      arguments.from_earliest ? WatchStart::kEarliest : WatchStart::kNow;
  Watcher watcher(context.MakeClient(),
                  {.namespaces = namespaces,
                   .start = start,
                   .key_prefix = *std::move(prefix),
                   .keys_only = arguments.keys_only,
                   .heartbeat_interval = arguments.heartbeat,
                   .restart = start,
                   .on_break = [&printer](const absl::Status& why) {
                     printer.TellBreak(why);
                   }});
  const InterruptHandler on_interrupt([&watcher] { watcher.Cancel(); });
  while (true) {
    const absl::StatusOr<WatchBatch> batch = watcher.Next(kLookInterval);
    if (batch.ok()) {
      if (!printer.Print(*batch)) return context.FailToWrite();
      if (printer.IsDone()) return kExitDone;
    } else if (absl::IsCancelled(batch.status())) {
      return kExitDone;
    } else if (!absl::IsDeadlineExceeded(batch.status())) {
      return context.Fail(batch.status());
    } else if (ReaderHasLeft()) {
      return kExitDone;
    }
  }
}

void AddFlags(CLI::App& watch, WatchArguments& arguments) {
  watch.add_option("namespaces", arguments.namespaces,
                   "The namespaces; else those of -n");
  watch.add_option("--prefix", arguments.prefix,
                   "Only keys that begin with this");
  watch.add_flag("--from-earliest", arguments.from_earliest,
                 "Begin with the oldest event that is retained, also after a "
                 "break; else with what dies from now on");
  watch.add_flag("--keys-only", arguments.keys_only, "Leave the values out");
  watch.add_option("--count", arguments.count, "Stop after this many events")
      ->check(CLI::PositiveNumber);
  watch.add_flag("--watermarks", arguments.watermarks,
                 "Print how far the events are complete, too");
  AddParsed<absl::Time>(
      watch, "--until-watermark", ParseTime,
      [&arguments](absl::Time time) { arguments.until = time; }, "TIME",
      "Stop once everything that died up to then has come");
  AddDuration(
      watch, "--heartbeat",
      [&arguments](absl::Duration d) { arguments.heartbeat = d; },
      "Longest time between two watermarks (1s)");
}

}  // namespace

void AddWatchCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<WatchArguments>();
  CLI::App* watch = app.add_subcommand("watch", "Print what expires, at once");
  AddFlags(*watch, *arguments);
  watch->footer(
      "Prints, tab-separated: time of death, cause (expired, evicted, "
      "rotated), how\nlate it was told, the namespace if there are several, "
      "key, value. Goes on until\nCtrl-C, and reconnects by itself; what may "
      "be missing then is said on standard\nerror (with --json as objects, "
      "too).\n\n"
      "Examples:\n"
      "  timecachectl watch sessions carts\n"
      "  timecachectl watch --prefix user: --keys-only\n"
      "  timecachectl watch sessions --json | jq -r "
      "'select(.type==\"expired\").key'\n"
      "  timecachectl watch --from-earliest --until-watermark "
      "2025-01-31T12:00:00Z");
  watch->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunWatch(context, *arguments);
    };
  });
}

}  // namespace timecache::cli
