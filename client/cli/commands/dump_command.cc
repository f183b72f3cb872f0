// dump: a namespace as lines that `load` makes the same entries of.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/dump_format.h"
#include "client/cli/flags.h"
#include "client/cli/server_clock.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"

namespace timecache::cli {
namespace {

// Into a pipe, its reader's progress is the dump's; a second line would be drawn
// over that.
bool IsOutputAFile() {
  struct stat status;
  return fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode);
}

int RunDump(const Context& context, const std::string& argument) {
  auto prefix = context.Key(argument);
  if (!prefix.ok()) return context.Fail(prefix.status());
  ScanOptions options = {.key_prefix = *std::move(prefix)};
  if (context.timeout_given) options.timeout = context.timeout;
  const Client client = context.MakeClient();
  const auto now = ServerClock(client).Reached(absl::ZeroDuration());
  if (!now.ok()) return context.Fail(now.status());
  bool written = WriteJson(DumpBegin({.ns = context.ns(), .time = *now}));
  uint64_t entries = 0;
  ProgressBar bar;
  const bool draws = bar.shown() && IsOutputAFile();
  const absl::Time started_at = absl::Now();
  const absl::Status status =
      !written ? absl::OkStatus()
               : client.Scan(options, [&](const Entry& entry) {
                   written = WriteJson(DumpEntry(entry, context.encodings));
                   ++entries;
                   if (draws) {
                     bar.Update({.done = entries,
                                 .elapsed = absl::Now() - started_at});
                   }
                   return written;
                 });
  bar.Wipe();
  // Without its last line a dump is not whole, and `load` says so.
  if (status.ok()) written = written && WriteJson(DumpEnd(entries));
  if (!written || !Flush()) {
    // A pipe's reader that leaves has no dump.
    context.FailToWrite();
    return kExitError;
  }
  return status.ok() ? kExitDone : context.Fail(status);
}

}  // namespace

void AddDumpCommand(CLI::App& app, Context& context) {
  auto prefix = std::make_shared<std::string>();
  CLI::App* dump = app.add_subcommand(
      "dump", "Write a namespace's entries, with deadlines, for load");
  dump->add_option("--prefix", *prefix, "Only keys that begin with this");
  dump->footer(
      "Writes JSON lines: a head, {\"key\":..,\"value\":..,\"deadline\":..} "
      "for "
      "each live\nentry, and an end with their number. Bytes that are not text "
      "stand in key_base64\nand value_base64. An entry that lives through the "
      "whole dump is in it once,\nanother at most once. `load` gives each "
      "entry "
      "its deadline back. Versions are\nnot kept, nor the time to live that a "
      "touch without --ttl would renew.\n\n"
      "Examples:\n"
      "  timecachectl dump -n sessions > sessions.jsonl\n"
      "  timecachectl dump -n a | timecachectl load -n b\n"
      "  timecachectl dump | gzip > all.jsonl.gz");
  dump->callback([&context, prefix] {
    context.command = [&context, prefix] { return RunDump(context, *prefix); };
  });
}

}  // namespace timecache::cli
