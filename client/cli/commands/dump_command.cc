// dump: a namespace as lines that `load` makes the same entries of.
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/dump/dump_binary.h"
#include "client/cli/dump/dump_format.h"
#include "client/cli/flags.h"
#include "client/cli/output_file.h"
#include "client/cli/server_clock.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"

namespace timecache::cli {
namespace {

struct DumpArguments {
  std::string prefix;
  std::string file = "-";
  bool binary = false;
};

std::string LineOf(const Json& object) {
  return absl::StrCat(
      object.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

// What was written of a dump.
struct Dumped {
  uint64_t entries = 0;
  // Of a whole dump as well.
  std::optional<OutputFile> output = {};
};

absl::Status Dump(const Context& context, const DumpArguments& arguments,
                  Dumped* dumped) {
  auto prefix = context.Key(arguments.prefix);
  if (!prefix.ok()) return prefix.status();
  ScanOptions options = {.key_prefix = *std::move(prefix)};
  if (context.timeout_given) options.timeout = context.timeout;
  const Client client = context.MakeClient();
  const auto now = ServerClock(client).Reached(absl::ZeroDuration());
  if (!now.ok()) return now.status();
  auto opened =
      OutputFile::Open(arguments.file, OutputFile::Replace::kWhenWhole);
  if (!opened.ok()) return opened.status();
  OutputFile& output = dumped->output.emplace(*std::move(opened));
  const DumpHead head = {.ns = context.ns(), .time = *now};
  const bool binary = arguments.binary;
  absl::Status written =
      output.Write(binary ? BinaryBegin(head) : LineOf(DumpBegin(head)));
  if (!written.ok()) return written;
  ProgressBar bar;
  // Into a pipe, its reader's progress is the dump's; a second line would be
  // drawn over that.
  const bool draws = bar.shown() && output.is_regular();
  const absl::Time started_at = absl::Now();
  const absl::Status status = client.Scan(options, [&](const Entry& entry) {
    written =
        output.Write(binary ? BinaryEntry(entry)
                            : LineOf(DumpEntry(entry, context.encodings)));
    ++dumped->entries;
    if (draws) {
      bar.Update(
          {.done = dumped->entries, .elapsed = absl::Now() - started_at});
    }
    return written.ok();
  });
  bar.Wipe();
  // Without its last line a dump is not whole, and `load` says so.
  if (status.ok() && written.ok()) {
    written = output.Write(binary ? BinaryEnd(dumped->entries)
                                  : LineOf(DumpEnd(dumped->entries)));
  }
  if (status.ok() && written.ok()) written = output.Finish();
  return written.ok() ? status : written;
}

int RunDump(const Context& context, const DumpArguments& arguments) {
  if (arguments.binary && arguments.file == "-" && isatty(STDOUT_FILENO) == 1) {
    return context.Fail(absl::InvalidArgumentError(
        "standard output is a terminal: name a file for a binary dump"));
  }
  Dumped dumped;
  const absl::Status status = Dump(context, arguments, &dumped);
  if (!status.ok()) {
    // A pipe's reader that leaves has no dump, and knows.
    const bool left = dumped.output && dumped.output->is_broken_pipe();
    if (!left) context.Fail(status);
    return kExitError;
  }
  if (dumped.output->is_standard_output()) return kExitDone;
  return Print(context, {{"dump", arguments.file}, {"entries", dumped.entries}},
               absl::StrCat("dumped ", CountText(dumped.entries),
                            " entries to ", arguments.file));
}

}  // namespace

void AddDumpCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<DumpArguments>();
  CLI::App* dump = app.add_subcommand(
      "dump", "Write a namespace's entries, with deadlines, for load");
  dump->add_option("file", arguments->file,
                   "The file; - or nothing: standard output");
  dump->add_option("--prefix", arguments->prefix,
                   "Only keys that begin with this");
  dump->add_option_function<std::string>(
          "--format",
          [arguments = arguments.get()](const std::string& format) {
            arguments->binary = format == "binary";
          },
          "json: an object a line; binary: smaller, and quicker to load (json)")
      ->check(CLI::IsMember({"json", "binary"}));
  dump->footer(
      R"(Writes JSON lines: a head, {"key":..,"value":..,"deadline":..} for each live
entry, and an end with their number. Bytes that are not text are in key_base64
and value_base64. An entry that is live during the whole dump is in it once,
any other at most once. `load` restores each entry's deadline, from own_ttl its
own time to live, and its traceparent. Versions and create times are not kept. FILE is replaced
once the dump is whole, and keeps its mode; a new one gets mode 0600.

Examples:
  timecachectl dump -n sessions sessions.jsonl
  timecachectl dump -n sessions --format binary sessions.dump
  timecachectl dump -n a | timecachectl load -n b
  timecachectl dump | gzip > all.jsonl.gz)");
  OnRun(dump, context, arguments, RunDump);
}

}  // namespace timecache::cli
