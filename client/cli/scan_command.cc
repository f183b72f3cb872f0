// scan.
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/flags.h"
#include "client/cli/output.h"

namespace timecache::cli {
namespace {

struct ScanArguments {
  std::string prefix;
  bool keys_only = false;
  uint64_t limit = 0;
};

bool PrintEntry(const Context& context, const Entry& entry, bool keys_only) {
  if (context.json) {
    return WriteJson(ToJson(entry, context.encoding, keys_only));
  }
  std::string line = Encode(entry.key, context.encoding);
  if (!keys_only) {
    absl::StrAppend(&line, "\t", Encode(entry.value, context.encoding));
  }
  return WriteLine(line);
}

int RunScan(const Context& context, const ScanArguments& arguments) {
  auto prefix = context.Key(arguments.prefix);
  if (!prefix.ok()) return context.Fail(prefix.status());
  ScanOptions options = {.key_prefix = *std::move(prefix),
                         .keys_only = arguments.keys_only};
  if (context.timeout_given) options.timeout = context.timeout;
  uint64_t printed = 0;
  bool written = true;
  const absl::Status status =
      context.MakeClient().Scan(options, [&](Entry entry) {
        written = PrintEntry(context, entry, arguments.keys_only);
        ++printed;
        return written && printed != arguments.limit;
      });
  if (!written || !Flush()) return context.FailToWrite();
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
  scan->add_option("--limit", arguments->limit, "Stop after this many entries")
      ->check(CLI::PositiveNumber);
  scan->footer(
      "Prints KEY<TAB>VALUE; bytes that are not text are shown as \\x00 and a\n"
      "backslash as two. With --json, `timecachectl load` takes the output.\n"
      "Runs without a time limit unless --timeout is given.\n\n"
      "Examples:\n"
      "  timecachectl scan session: --keys-only\n"
      "  timecachectl scan --limit 10\n"
      "  timecachectl scan --json -n a | timecachectl load -n b");
  scan->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunScan(context, *arguments);
    };
  });
}

}  // namespace timecache::cli
