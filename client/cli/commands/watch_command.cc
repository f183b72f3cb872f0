// watch.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/group_exec.h"
#include "client/cli/flags.h"
#include "client/cli/resume_file.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/watch_printer.h"
#include "client/cli/watch_arguments.h"
#include "timecache/settle.h"
#include "timecache/status.h"
#include "timecache/watcher.h"

namespace timecache::cli {
namespace {

// How often a watch on which nothing happens looks whether anyone still reads.
constexpr absl::Duration kLookInterval = absl::Milliseconds(500);

// Events that a group's member holds unsettled while it prints them.
constexpr uint64_t kDefaultInFlight = 1'000;
constexpr int kMaxJobs = 1'024;

bool ReaderHasLeft() {
  pollfd out = {.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

WatchOptions MakeOptions(const WatchArguments& arguments,
                         const std::vector<std::string>& namespaces,
                         std::string prefix) {
  WatchOptions options = {.namespaces = namespaces,
                          .start = arguments.from_earliest
                                       ? WatchStart::kEarliest
                                       : WatchStart::kNow,
                          .key_prefix = std::move(prefix),
                          .keys_only = arguments.keys_only,
                          .heartbeat_interval = arguments.heartbeat,
                          .fail_on_loss = arguments.fail_on_loss,
                          .lead_time = arguments.lead_time,
                          .group = arguments.group,
                          .changes = arguments.changes,
                          .max_in_flight = arguments.max_in_flight};
  if (!options.group.empty() && !options.max_in_flight) {
    // Events beyond --count would only be taken from other members.
    options.max_in_flight = static_cast<uint32_t>(
        arguments.count == 0 ? kDefaultInFlight
                             : std::min(arguments.count, kDefaultInFlight));
  }
  return options;
}

// Acknowledges printed events. Events whose acknowledgement is lost are
// delivered again.
void Acknowledge(const Client& client, const std::string& group,
                 const WatchBatch& batch, size_t printed) {
  std::vector<Settlement> settlements;
  for (size_t begin = 0; begin < printed; begin += kMaxSettlements) {
    settlements.clear();
    const size_t end = std::min(printed, begin + kMaxSettlements);
    for (size_t i = begin; i < end; ++i) {
      settlements.push_back({batch.events[i].delivery_token, Settle::Ack()});
    }
    const auto results = client.In(batch.ns).Settle(group, settlements);
    if (results.ok()) continue;
    Warn(absl::StrCat(batch.ns, ": ", CountText(printed - begin),
                      " printed events could not be acknowledged, and may be "
                      "delivered again: ",
                      results.status().message()));
    return;
  }
}

// Syncs output to a file, so that printed events are on the disk before the
// resume file records them. Other outputs need nothing.
void SyncOutput() { fdatasync(STDOUT_FILENO); }

// One run of the command.
class Watch {
 public:
  // All must outlive it. `resume` may be null.
  Watch(const Context& context, const WatchArguments& arguments,
        const std::vector<std::string>& namespaces, ResumeFile* resume)
      : context_(context),
        arguments_(arguments),
        resume_(resume),
        client_(context.MakeClient()),
        printer_(context, arguments, namespaces) {}

  int Run(WatchOptions options) {
    if (resume_ != nullptr) options.resume_tokens = resume_->tokens();
    options.on_break = [this](const absl::Status& why) {
      printer_.PrintBreak(why);
    };
    Watcher watcher(client_, std::move(options));
    const InterruptHandler on_interrupt([&watcher] { watcher.Cancel(); });
    while (true) {
      absl::StatusOr<WatchBatch> batch = watcher.Next(kLookInterval);
      if (batch.ok()) {
        if (const auto exit = Take(*batch)) return *exit;
        continue;
      }
      const bool timed_out = absl::IsDeadlineExceeded(batch.status());
      if (absl::IsCancelled(batch.status()) || (timed_out && ReaderHasLeft())) {
        return kExitDone;
      }
      if (!timed_out) return Fail(batch.status());
    }
  }

 private:
  // Prints the batch, then records or settles it: in this order, so that an
  // interrupted batch is delivered again and none is missed. The exit code, if
  // this was the end.
  std::optional<int> Take(WatchBatch& batch) {
    if (batch.log_changed && resume_ != nullptr) {
      batch.missed_after =
          std::max(batch.missed_after, resume_->watermark(batch.ns));
    }
    if (!printer_.Print(batch)) return context_.FailToWrite();
    if (!arguments_.group.empty()) {
      Acknowledge(client_, arguments_.group, batch,
                  printer_.printed_of_batch());
    }
    if (resume_ != nullptr) {
      SyncOutput();
      const absl::Status recorded =
          resume_->Record(batch.ns, batch.resume_token, batch.watermark);
      if (!recorded.ok()) return context_.Fail(recorded);
    }
    if (printer_.IsDone()) return kExitDone;
    return std::nullopt;
  }

  int Fail(const absl::Status& status) const {
    for (const auto& violation : FieldViolations(status)) {
      if (resume_ == nullptr || violation.field != "resume_tokens") continue;
      return context_.Fail(resume_->Damaged(violation.description));
    }
    return context_.Fail(status);
  }

  const Context& context_;
  const WatchArguments& arguments_;
  ResumeFile* const resume_;
  const Client client_;
  WatchPrinter printer_;
};

int RunWatch(const Context& context, const WatchArguments& arguments) {
  auto prefix = context.Key(arguments.prefix).value();
  const std::vector<std::string>& namespaces =
      arguments.namespaces.empty() ? context.namespaces : arguments.namespaces;
  // Errors name the namespace that is watched.
  Context about = context;
  about.namespaces = namespaces;
  if (!arguments.exec.empty()) {
    return RunGroupExec(about, arguments);
  }
  InterruptHandler::Hold();
  std::optional<ResumeFile> resume;
  if (!arguments.resume_file.empty()) {
    resume.emplace(ResumeFile::Open(arguments.resume_file, namespaces).value());
  }
  return Watch(about, arguments, namespaces, resume ? &*resume : nullptr)
      .Run(MakeOptions(arguments, namespaces, std::move(prefix)));
}

// An empty variable of a script must not turn off what the flag is for.
std::string NotEmpty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

void AddStartFlags(CLI::App& watch, WatchArguments& arguments) {
  watch.add_flag("--from-earliest", arguments.from_earliest,
                 "Start with the oldest retained event; else with entries that "
                 "die from now on");
  auto* file =
      watch
          .add_option("--resume-file", arguments.resume_file,
                      "Continue where the watch that wrote this file stopped, "
                      "and record this one's position in it")
          ->type_name("FILE")
          ->check(NotEmpty);
  auto* loss = watch.add_flag("--fail-on-loss", arguments.fail_on_loss,
                              "End with an error when events are lost, instead "
                              "of reporting their number and continuing");
  AddDuration(
      watch, "--lead-time", arguments.lead_time,
      "Print entries that will expire within this time, instead of those that "
      "have expired: in time to touch them")
      ->excludes("--from-earliest")
      ->excludes(file)
      ->excludes(loss);
  watch
      .add_flag(
          "--changes", arguments.changes,
          "Print puts, renewals and removals, instead of entries that have "
          "expired: of namespaces with a --change-retention")
      ->excludes("--lead-time");
}

void AddEndFlags(CLI::App& watch, WatchArguments& arguments) {
  watch
      .add_option("--count", arguments.count,
                  "Stop after this many events; with --resume-file at the end "
                  "of the batch in which they are reached")
      ->check(AtLeastOne());
  AddTime(watch, "--until-watermark", arguments.until,
          "Stop once all entries that died up to then are printed");
}

void AddPrintFlags(CLI::App& watch, WatchArguments& arguments) {
  watch.add_option("--prefix", arguments.prefix,
                   "Only keys that begin with this");
  watch.add_flag("--keys-only", arguments.keys_only, "Leave the values out");
  watch.add_flag("--watermarks", arguments.watermarks,
                 "Print the time up to which the events are complete, too");
  AddDuration(watch, "--heartbeat", arguments.heartbeat,
              "Longest time between two watermarks (1s)");
}

void AddGroupFlags(CLI::App& watch, WatchArguments& arguments) {
  auto* group = watch
                    .add_option("--group", arguments.group,
                                "Join this consumer group, whose members share "
                                "the events")
                    ->type_name("GROUP")
                    ->check(NotEmpty)
                    ->excludes("--prefix")
                    ->excludes("--resume-file")
                    ->excludes("--fail-on-loss")
                    ->excludes("--lead-time")
                    ->excludes("--changes");
  AddCount(watch, "--max-in-flight", arguments.max_in_flight,
           "Most events held unsettled (1000; with --exec twice --jobs)")
      ->needs(group);
}

void AddExecFlags(CLI::App& watch, WatchArguments& arguments) {
  auto* exec = watch
                   .add_option("--exec", arguments.exec,
                               "Run this command line by /bin/sh for each "
                               "event, and settle it by its exit code")
                   ->type_name("COMMAND")
                   ->check(NotEmpty)
                   ->needs("--group")
                   ->excludes("--count")
                   ->excludes("--until-watermark")
                   ->excludes("--watermarks")
                   ->excludes("--heartbeat");
  watch
      .add_option("--jobs", arguments.jobs,
                  "Commands that run at a time; with 1 in order of death")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxJobs))
      ->capture_default_str()
      ->needs(exec);
  AddDuration(
      watch, "--extend-max", arguments.extend_max,
      "How long an event's --ack-timeout is extended while its command runs, "
      "or waits for its turn; 0s: not at all (12h)")
      ->needs(exec);
  AddDuration(watch, "--retry-delay", arguments.retry_delay,
              "How long a failed event waits before it is delivered again (1s)")
      ->needs(exec);
  auto* put_back =
      watch
          .add_option("--put-back-exit", arguments.put_back_exit,
                      "Exit code that puts the entry back into the namespace, "
                      "with a fresh time to live")
          ->type_name("CODE")
          ->check(CLI::Range(1, 255))
          ->needs(exec);
  watch
      .add_option("--terminate-exit", arguments.terminate_exit,
                  "Exit code that gives the event up: to the dead letters")
      ->type_name("CODE")
      ->check(CLI::Range(1, 255))
      ->needs(exec);
  AddDuration(watch, "--put-back-ttl", arguments.put_back_ttl,
              "That time to live; else the namespace's")
      ->needs(put_back);
}

// Checks that CLI11's rules cannot express.
void Check(const Context& context, const WatchArguments& arguments) {
  const size_t namespaces = arguments.namespaces.empty()
                                ? context.namespaces.size()
                                : arguments.namespaces.size();
  if (!arguments.exec.empty() && namespaces != 1) {
    throw CLI::ValidationError("--exec", "takes one namespace");
  }
}

constexpr char kWatchFooter[] =
    R"(Prints, tab-separated: time of death, cause (expired, evicted, rotated,
expiring), lateness of the delivery, the namespace if there are several, key,
value. Runs until Ctrl-C, and continues after a broken connection. Standard
error shows the number of lost events (with --json also as objects).

--resume-file: after each batch has been printed, FILE is replaced by one that
records its end; a watch with the same FILE continues there, also after
kill -9: then at most the last batch is printed twice. While the server
retains the events (ns update --event-retention) none is missing; those that
it has dropped are counted.

--changes prints, tab-separated: time, kind (put, renewed, removed), the namespace
if there are several, key, value. All other options are as for expired entries.

--group: each event is delivered to one member, and again until it is settled.
Without --exec events are acknowledged once they are printed. With --exec the
COMMAND has the value on its standard input (parts as --json shows them) and,
in its environment, TIMECACHED_NAMESPACE, _GROUP, _KEY, _VERSION, _CAUSE,
_PUT_TIME, _DEADLINE, _DEATH_TIME, _ATTEMPT, _RETURNS and _EVENT_ID. Its exit
code 0 means done, --put-back-exit put back, any other failed: then the event
is delivered again after --retry-delay, at most the group's --max-attempts
times if there is a --dead-letter namespace. It may take longer than the group's
--ack-timeout, which is extended while it runs, up to --extend-max. After Ctrl-C
the running commands finish; a second one kills them.

Examples:
  timecachectl watch sessions carts
  timecachectl watch --prefix user: --keys-only
  timecachectl watch sessions --json | jq -r 'select(.type=="expired").key'
  timecachectl watch --from-earliest --until-watermark 2025-01-31T12:00:00Z
  timecachectl watch sessions --resume-file sessions.resume >> sessions.log
  timecachectl watch sessions --lead-time 1m
  timecachectl watch prices --changes --resume-file prices.resume
  timecachectl watch orders --group billing --exec ./charge.sh --jobs 4)";

}  // namespace

void AddWatchCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<WatchArguments>();
  CLI::App* watch = app.add_subcommand(
      "watch", "Print entries as they expire, or run a command for each");
  watch->add_option("namespaces", arguments->namespaces,
                    "The namespaces; else those of -n");
  AddPrintFlags(*watch, *arguments);
  AddStartFlags(*watch, *arguments);
  AddEndFlags(*watch, *arguments);
  AddGroupFlags(*watch, *arguments);
  AddExecFlags(*watch, *arguments);
  watch->footer(kWatchFooter);
  OnRun(watch, context, arguments, RunWatch,
        [&context](const WatchArguments& given) { Check(context, given); });
}

}  // namespace timecache::cli
