// whoami, clients, slow, tail: who does what to the server now.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

// "PERMISSION_DENIED" in red, and so on, where people look.
class Paint {
 public:
  explicit Paint(bool wanted)
      : wanted_(wanted && isatty(STDOUT_FILENO) == 1 &&
                std::getenv("NO_COLOR") == nullptr) {}

  std::string Red(const std::string& text) const { return In("31", text); }
  std::string Green(const std::string& text) const { return In("32", text); }
  std::string Dim(const std::string& text) const { return In("2", text); }

 private:
  std::string In(std::string_view code, const std::string& text) const {
    return wanted_
               ? absl::StrCat("\x1b[", std::string(code), "m", text, "\x1b[0m")
               : text;
  }

  const bool wanted_;
};

// Left-aligned, but for the last, each as wide as its widest cell.
std::string LeftTable(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string& line = lines.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppendFormat(&line, "%s%-*s", i == 0 ? "" : "  ",
                            static_cast<int>(widths[i]), row[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
  }
  return absl::StrJoin(lines, "\n");
}

int RunWhoAmI(const Context& context) {
  const CallerInfo caller = context.MakeClient().WhoAmI().value();
  Json permissions = Json::array();
  std::string text =
      absl::StrCat(Escape(caller.principal), " from ", Escape(caller.peer));
  for (const Permission& each : caller.permissions) {
    permissions.push_back({{"pattern", each.pattern}, {"verbs", each.verbs}});
    absl::StrAppend(&text, "\n  ", each.pattern, ": ",
                    absl::StrJoin(each.verbs, ", "));
  }
  if (!caller.access_rules) {
    text += "\nthe server has no access rules: everyone may do everything";
  } else if (caller.permissions.empty()) {
    text += "\nno rule lets it do anything";
  }
  return Print(context,
               {{"principal", caller.principal},
                {"peer", caller.peer},
                {"access_rules", caller.access_rules},
                {"permissions", std::move(permissions)}},
               text);
}

int RunClients(const Context& context) {
  const auto connections = context.MakeClient().ListConnections().value();
  Json all = Json::array();
  std::vector<Row> rows = {{"ID", "PEER", "SINCE", "PRINCIPAL", "OPEN", "CALLS",
                            "IDLE", "USER-AGENT"}};
  for (const ClientConnection& each : connections) {
    Json object = {{"id", each.id},
                   {"peer", each.peer},
                   {"since", ExactTimeText(each.since)},
                   {"principal", each.principal},
                   {"open_calls", each.open_calls},
                   {"calls", each.calls},
                   {"user_agent", each.user_agent}};
    if (each.idle) object["idle_ms"] = absl::ToDoubleMilliseconds(*each.idle);
    all.push_back(std::move(object));
    rows.push_back({absl::StrCat(each.id), Escape(each.peer),
                    TimeText(each.since), Escape(each.principal),
                    CountText(each.open_calls), CountText(each.calls),
                    each.idle ? absl::FormatDuration(absl::Trunc(
                                    *each.idle, absl::Milliseconds(1)))
                              : "-",
                    Escape(each.user_agent)});
  }
  return Print(context, {{"connections", std::move(all)}}, LeftTable(rows));
}

int RunClose(const Context& context, uint64_t id) {
  const absl::Status status = context.MakeClient().CloseConnection(id);
  if (!status.ok()) {
    const int code = context.Fail(status);
    return absl::IsNotFound(status) ? kExitNotFound : code;
  }
  return Print(context, {{"closed", id}}, absl::StrCat("closed ", id));
}

int RunSlow(const Context& context) {
  const SlowCallList list = context.MakeClient().ListSlowCalls().value();
  Json all = Json::array();
  std::vector<Row> rows = {{"TIME", "TOOK", "METHOD", "NAMESPACE", "OPS",
                            "CODE", "PRINCIPAL", "PEER", "REQUEST"}};
  for (const SlowCall& each : list.calls) {
    all.push_back({{"time", ExactTimeText(each.time)},
                   {"method", each.method},
                   {"namespace", each.ns},
                   {"took_ms", absl::ToDoubleMilliseconds(each.duration)},
                   {"code", each.code},
                   {"operations", each.operations},
                   {"principal", each.principal},
                   {"peer", each.peer},
                   {"request_id", each.request_id}});
    rows.push_back({TimeText(each.time), absl::FormatDuration(each.duration),
                    each.method.substr(each.method.rfind('/') + 1),
                    Escape(each.ns), CountText(each.operations), each.code,
                    Escape(each.principal), Escape(each.peer),
                    Escape(each.request_id)});
  }
  Json object = {{"calls", std::move(all)}};
  std::string text = "the server notes no slow calls: log.slow_call is off";
  if (list.threshold) {
    object["threshold_ms"] = absl::ToDoubleMilliseconds(*list.threshold);
    text = absl::StrCat("no call took longer than ",
                        absl::FormatDuration(*list.threshold));
  }
  return Print(context, object, list.calls.empty() ? text : LeftTable(rows));
}

struct TailArguments {
  std::string prefix;
  uint32_t max_per_second = 0;
  uint64_t count = 0;
};

// Prints the sample as it comes.
class TailPrinter {
 public:
  explicit TailPrinter(const Context& context)
      : context_(context), paint_(!context.json) {}

  bool Print(const TailedCall& call) {
    return context_.json ? PrintJson(call) : PrintText(call);
  }
  bool PrintSkipped(uint64_t skipped) {
    if (skipped == 0) return true;
    if (context_.json) return WriteJson(Json{{"skipped", skipped}});
    return WriteLine(paint_.Dim(
        absl::StrCat("              ", CountText(skipped), " left out")));
  }

 private:
  bool PrintJson(const TailedCall& call) {
    Json object = {{"time", ExactTimeText(call.time)},
                   {"operation", call.operation}};
    SetBytes(object, "key", call.key, context_.encodings.key);
    object["value_bytes"] = call.value_bytes;
    object["code"] = call.code;
    if (!call.reason.empty()) object["reason"] = call.reason;
    object["hit"] = call.hit;
    object["principal"] = call.principal;
    object["peer"] = call.peer;
    return WriteJson(object);
  }
  bool PrintText(const TailedCall& call) {
    const std::string result = call.code == "OK"     ? call.hit ? "ok" : "miss"
                               : call.reason.empty() ? call.code
                                                     : call.reason;
    const std::string padded = absl::StrFormat("%-11s", result);
    // The key is last but for who called, as its width is anyone's guess.
    key_width_ = std::min<size_t>(
        std::max(key_width_, Encode(call.key, context_.encodings.key).size()),
        kMaxKeyWidth);
    return WriteLine(absl::StrCat(
        paint_.Dim(
            absl::FormatTime("%H:%M:%E3S", call.time, absl::LocalTimeZone())),
        "  ", absl::StrFormat("%-8s", call.operation), "  ",
        call.code != "OK" ? paint_.Red(padded)
        : call.hit        ? paint_.Green(padded)
                          : paint_.Dim(padded),
        "  ",
        absl::StrFormat(
            "%8s", call.value_bytes == 0 ? "-" : SizeText(call.value_bytes)),
        "  ",
        absl::StrFormat("%-*s", static_cast<int>(key_width_),
                        Encode(call.key, context_.encodings.key)),
        "  ",
        paint_.Dim(
            absl::StrCat(Escape(call.principal), " ", Escape(call.peer)))));
  }

  static constexpr size_t kMaxKeyWidth = 40;

  const Context& context_;
  const Paint paint_;
  size_t key_width_ = 16;
};

int RunTail(const Context& context, const TailArguments& arguments) {
  const TailOptions options = {
      .key_prefix = context.Key(arguments.prefix).value(),
      .max_per_second = arguments.max_per_second};
  std::stop_source stop;
  CallOptions call = {.cancellation = stop.get_token()};
  if (context.timeout_given) call.timeout = context.timeout;
  const InterruptHandler handler([&stop] { stop.request_stop(); });
  TailPrinter printer(context);
  uint64_t printed = 0;
  bool written = true;
  const absl::Status status = context.MakeClient().TailCalls(
      options,
      [&](const TailedCalls& sample) {
        for (const TailedCall& each : sample.calls) {
          if (arguments.count > 0 && printed == arguments.count) break;
          ++printed;
          written = written && printer.Print(each);
        }
        written = written && printer.PrintSkipped(sample.skipped) && Flush();
        return written && (arguments.count == 0 || printed < arguments.count);
      },
      call);
  if (!written) return context.FailToWrite();
  if (handler.signal() != 0) return kExitInterrupted + handler.signal();
  // Whoever gives it a time has it end then.
  const bool in_time =
      context.timeout_given && absl::IsDeadlineExceeded(status);
  return status.ok() || in_time ? kExitDone : context.Fail(status);
}

void AddClientsCommands(CLI::App& app, Context& context) {
  CLI::App* clients = app.add_subcommand(
      "clients", "Show the connections of clients; close one");
  clients->footer(
      R"(OPEN: calls and streams that are open; CALLS: that have begun; IDLE: since the
last one began or ended. PRINCIPAL and USER-AGENT are of one of the last calls.
Calls over unix sockets are not known by their connection. Needs the permission
admin on all namespaces.

Examples:
  timecachectl clients
  timecachectl clients close 4711
  timecachectl clients --json | jq '.connections[] | select(.open_calls > 100)')");
  // Where no command below is named: the callback of that runs before.
  clients->callback([clients, &context] {
    if (!clients->get_subcommands().empty()) return;
    context.command = [&context] { return RunCommand(context, RunClients); };
  });
  auto id = std::make_shared<uint64_t>(0);
  CLI::App* close = clients->add_subcommand(
      "close", "Close one; its client may connect again");
  close->add_option("id", *id, "Its ID in the list")
      ->required()
      ->check(AtLeastOne());
  close->footer(
      "Exits with 1 if there is none of this ID.\n\n"
      "Examples:\n"
      "  timecachectl clients close 4711");
  OnRun(close, context, id, RunClose);
}

void AddTailCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TailArguments>();
  CLI::App* tail = app.add_subcommand(
      "tail", "Show a sample of the operations on a namespace, as they happen");
  tail->add_option("prefix,--prefix", arguments->prefix,
                   "Only keys that begin with this");
  AddCount(*tail, "--max-per-second", arguments->max_per_second,
           "Show at most so many, 1 to 1000 (20)");
  AddCount(*tail, "--count", arguments->count,
           "Stop after so many operations; 0: never (0)");
  tail->footer(
      R"(Never all operations of a busy namespace: it says how many it leaves out. Shows
keys, and of values the size. Needs the permission admin on the namespace. Ends
with Ctrl-C, or after --timeout.

Examples:
  timecachectl tail -n sessions
  timecachectl tail user: --max-per-second 200 --timeout 10s
  timecachectl tail --json | jq -r 'select(.hit == false) | .key')");
  OnRun(tail, context, arguments,
        [](const Context& on, const TailArguments& given) {
          // Before gRPC has threads that could take the signals.
          InterruptHandler::Hold();
          return RunTail(on, given);
        });
}

}  // namespace

void AddOperatorCommands(CLI::App& app, Context& context) {
  CLI::App* whoami = app.add_subcommand(
      "whoami", "Show who you are to the server, and what you may do");
  whoami->footer(
      "Examples:\n"
      "  timecachectl whoami\n"
      "  timecachectl --token-file token whoami --json");
  OnRun(whoami, context, RunWhoAmI);
  AddClientsCommands(app, context);
  CLI::App* slow = app.add_subcommand(
      "slow", "Show the last calls that took longer than log.slow_call");
  slow->footer(
      "At most 256, the latest first; streams are not among them. Needs the\n"
      "permission admin on all namespaces.\n\n"
      "Examples:\n"
      "  timecachectl slow\n"
      "  timecachectl slow --json | jq '.calls[].took_ms'");
  OnRun(slow, context, RunSlow);
  AddTailCommand(app, context);
}

}  // namespace timecache::cli
