// scan.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/server_clock.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {
namespace {

// How old the time may be from which the remaining time is computed.
constexpr absl::Duration kScanClockAge = absl::Milliseconds(100);

struct ScanArguments {
  std::string prefix;
  bool keys_only = false;
  bool ttl = false;
  uint64_t limit = 0;
};

bool PrintEntry(const Context& context, const ScanArguments& arguments,
                const Entry& entry, std::optional<absl::Duration> left) {
  if (context.json) {
    Json object = ToJson(entry, context.encodings, arguments.keys_only);
    if (left) object["left_ms"] = absl::ToInt64Milliseconds(*left);
    return WriteJson(object);
  }
  std::string line = left ? absl::StrCat(LeftText(*left), "\t") : "";
  absl::StrAppend(&line, Encode(entry.key, context.encodings.key));
  if (!arguments.keys_only) {
    absl::StrAppend(&line, "\t", ValueText(entry, context.encodings.value));
  }
  return WriteLine(line);
}

int RunScan(const Context& context, const ScanArguments& arguments) {
  auto prefix = context.Key(arguments.prefix).value();
  ScanOptions options = {.key_prefix = std::move(prefix),
                         .keys_only = arguments.keys_only};
  if (context.timeout_given) options.timeout = context.timeout;
  const Client client = context.MakeClient();
  ServerClock clock(client);
  uint64_t printed = 0;
  bool written = true;
  absl::Status no_time;
  const absl::Status status = client.Scan(options, [&](const Entry& entry) {
    std::optional<absl::Duration> left;
    if (arguments.ttl) {
      const auto now = clock.Reached(kScanClockAge);
      no_time = now.status();
      if (!now.ok()) return false;
      left = TimeLeft(entry, *now);
    }
    written = PrintEntry(context, arguments, entry, left);
    ++printed;
    return written && printed != arguments.limit;
  });
  if (!written || !Flush()) return context.FailToWrite();
  if (!no_time.ok()) return context.Fail(no_time);
  return status.ok() ? kExitDone : context.Fail(status);
}

}  // namespace

void AddScanCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ScanArguments>();
  CLI::App* scan =
      app.add_subcommand("scan", "List live entries, in no particular order");
  scan->add_option("prefix,--prefix", arguments->prefix,
                   "Only keys that begin with this");
  scan->add_flag("--keys-only", arguments->keys_only, "Leave the values out");
  scan->add_flag("--ttl", arguments->ttl,
                 "Show the remaining time to live before each key");
  scan->add_option("--limit", arguments->limit, "Stop after this many entries")
      ->check(AtLeastOne());
  scan->footer(
      R"(Prints KEY<TAB>VALUE, with --ttl LEFT<TAB>KEY<TAB>VALUE; bytes that are not
text are shown as \x00 and a backslash as two. `timecachectl load` accepts
this output without --ttl; with deadlines if it is of --json or of `dump`.
Runs without a time limit unless --timeout is given.

Examples:
  timecachectl scan session: --keys-only
  timecachectl scan --limit 10 --ttl
  timecachectl scan --prefix user: -n a | timecachectl load -n b)");
  OnRun(scan, context, arguments, RunScan);
}

}  // namespace timecache::cli
