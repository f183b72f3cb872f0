#include "client/cli/commands/group_exec.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/ui/bytes.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"
#include "timecache/group_worker.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

// Events that wait for each running command: one, so that no command waits for
// an event, and other workers get the rest.
constexpr int kWaitingPerJob = 1;
constexpr uint32_t kMaxMaxInFlight = 65'536;

uint32_t MaxInFlight(const WatchArguments& arguments) {
  if (arguments.max_in_flight) return *arguments.max_in_flight;
  const auto jobs = static_cast<uint32_t>(arguments.jobs);
  return std::min(jobs * (1 + kWaitingPerJob), kMaxMaxInFlight);
}

void PrintSummary(const Context& context, const GroupWorkerCounters& counters) {
  if (context.json) {
    const Json object = {{"type", "summary"},
                         {"handled", counters.handled},
                         {"acked", counters.acked},
                         {"failed", counters.nacked},
                         {"put_back", counters.put_back},
                         {"terminated", counters.terminated},
                         {"stale", counters.stale},
                         {"extended", counters.extended},
                         {"unsettled", counters.unsettled},
                         {"lost", counters.lost}};
    std::fprintf(stderr, "%s\n", object.dump().c_str());
    return;
  }
  std::string text =
      absl::StrCat(CountText(counters.handled),
                   " events handled: ", CountText(counters.acked), " done, ",
                   CountText(counters.nacked), " failed, ",
                   CountText(counters.put_back), " put back");
  if (counters.terminated > 0) {
    absl::StrAppend(&text, ", ", CountText(counters.terminated), " given up");
  }
  if (counters.stale > 0) {
    absl::StrAppend(&text, ", ", CountText(counters.stale),
                    " settled too late (give this worker a longer "
                    "--extend-max, or the group a longer --ack-timeout)");
  }
  if (counters.unsettled > 0) {
    absl::StrAppend(&text, ", ", CountText(counters.unsettled),
                    " not settled, which are delivered again");
  }
  if (counters.lost > 0) {
    absl::StrAppend(&text, "; ", CountText(counters.lost),
                    " lost by the group");
  }
  Warn(text);
}

}  // namespace

EventCommand::EventCommand(const Context& context,
                           const WatchArguments& arguments)
    : context_(context), arguments_(arguments), command_(arguments.exec) {}

absl::StatusOr<std::map<std::string, std::string>> EventCommand::Environment(
    const ExpiredEvent& event) const {
  const std::string key = context_.encodings.key == Encoding::kText
                              ? event.key
                              : Encode(event.key, context_.encodings.key);
  if (key.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        "its key has a zero byte, which no environment holds: give --key-hex "
        "or --key-base64");
  }
  std::map<std::string, std::string> environment = {
      {"TIMECACHED_NAMESPACE", event.ns},
      {"TIMECACHED_GROUP", arguments_.group},
      {"TIMECACHED_KEY", key},
      {"TIMECACHED_VERSION", absl::StrCat(event.version)},
      {"TIMECACHED_CAUSE", NameOf(event.cause)},
      {"TIMECACHED_PUT_TIME", ExactTimeText(event.put_time)},
      {"TIMECACHED_DEADLINE", ExactTimeText(event.deadline)},
      {"TIMECACHED_DEATH_TIME", ExactTimeText(event.death_time)},
      {"TIMECACHED_ATTEMPT", absl::StrCat(event.attempt)},
      {"TIMECACHED_RETURNS", absl::StrCat(event.returns)},
      {"TIMECACHED_EVENT_ID", absl::StrCat(event.event_id)}};
  if (!event.last_reason.empty()) {
    environment["TIMECACHED_LAST_REASON"] = event.last_reason;
  }
  return environment;
}

Settle EventCommand::Handle(const ExpiredEvent& event) {
  {
    absl::MutexLock lock(&mu_);
    last_topic_.clear();
  }
  const auto environment = Environment(event);
  if (!environment.ok()) {
    return Failed(event, std::string(environment.status().message()));
  }
  std::string input = event.value;
  if (event.parts) {
    Json object = Json::object();
    SetParts(object, *event.parts, context_.encodings);
    input = object.dump();
  }
  const auto exit = command_.Run(input, *environment);
  if (!exit.ok()) return Failed(event, std::string(exit.status().message()));
  if (exit->signal == 0 && exit->code == 0) return Settle::Ack();
  if (exit->signal == 0 && exit->code == arguments_.put_back_exit) {
    return Settle::PutBack(arguments_.put_back_ttl);
  }
  const std::string how = absl::StrCat("the command ", exit->Text());
  if (exit->signal == 0 && exit->code == arguments_.terminate_exit) {
    return Settle::Terminate(how);
  }
  return Failed(event, how);
}

Settle EventCommand::Failed(const ExpiredEvent& event,
                            const std::string& how) const {
  Warn(absl::StrCat(event.ns, ": ", event.key, ", attempt ", event.attempt,
                    ": ", how, "; delivered again after ",
                    DurationText(arguments_.retry_delay),
                    ", unless this was the group's last attempt "
                    "(--max-attempts)"));
  return Settle::Nack(arguments_.retry_delay, how.substr(0, kMaxReasonBytes));
}

void EventCommand::PrintError(const absl::Status& why) {
  // Errors of the server have a reason, and the worker's own two codes. A lost
  // connection shows up as various other errors.
  const bool is_break =
      !ReasonName(why) && !absl::IsAborted(why) && !absl::IsNotFound(why);
  const std::string text =
      is_break ? context_.ExplainBreak(why)
               : absl::StrCat(context_.ns(), ": ", context_.Explain(why));
  {
    absl::MutexLock lock(&mu_);
    const std::string topic = is_break ? "connection" : text;
    if (std::exchange(last_topic_, topic) == topic) return;
  }
  Warn(text);
}

int RunGroupExec(const Context& context, const WatchArguments& arguments) {
  InterruptHandler::Hold();
  EventCommand command(context, arguments);
  GroupWorker worker(
      context.MakeClient(),
      {.ns = context.ns(),
       .group = arguments.group,
       .start =
           arguments.from_earliest ? WatchStart::kEarliest : WatchStart::kNow,
       .keys_only = arguments.keys_only,
       .threads = arguments.jobs,
       .max_in_flight = MaxInFlight(arguments),
       .extend_max = arguments.extend_max,
       .retry_delay = arguments.retry_delay,
       .on_error =
           [&command](const absl::Status& why) { command.PrintError(why); },
       .on_loss =
           [&context](uint64_t lost) {
             Warn(
                 absl::StrCat(context.ns(), ": ", CountText(lost),
                              " events lost: the group was too slow, raise its "
                              "--max-backlog-bytes (ns group-update)"));
           }},
      [&command](const ExpiredEvent& event) { return command.Handle(event); });
  int interrupts = 0;
  const InterruptHandler on_interrupt([&] {
    if (++interrupts == 1) {
      worker.RequestStop();
      if (const size_t running = command.running(); running > 0) {
        Warn(absl::StrCat("stopping after the running commands (", running,
                          "); interrupt again to kill them"));
      }
      return;
    }
    Warn("killing the running commands; their events are delivered again");
    command.KillAllAndExit(kExitError);
  });
  const absl::Status end = worker.Wait();
  PrintSummary(context, worker.counters());
  return end.ok() ? kExitDone : context.Fail(end);
}

}  // namespace timecache::cli
