// load: many puts from a file or standard input.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/dump/loader.h"
#include "client/cli/flags.h"
#include "client/cli/ui/interrupt.h"

namespace timecache::cli {
namespace {

constexpr size_t kMaxPutsInFlight = 65'536;

int LoadFrom(const Context& context, const LoadArguments& arguments, int fd) {
  // Before gRPC has threads that could take the signals.
  InterruptHandler::Hold();
  Loader loader(context, arguments, fd);
  const InterruptHandler interrupt([&loader] { loader.Interrupt(); });
  return loader.Run([&interrupt] { return interrupt.signal(); });
}

int RunLoad(const Context& context, const LoadArguments& arguments) {
  if (arguments.file == "-") return LoadFrom(context, arguments, STDIN_FILENO);
  const int fd = open(arguments.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return context.Fail(absl::NotFoundError(
        absl::StrCat(arguments.file, ": ", std::strerror(errno))));
  }
  const int exit_code = LoadFrom(context, arguments, fd);
  close(fd);
  return exit_code;
}

void AddFormatFlags(CLI::App& load, LoadArguments& arguments) {
  load.add_option_function<std::string>(
          "--format",
          [&arguments](const std::string& format) {
            if (format == "tsv") arguments.format = LoadFormat::kTsv;
            if (format == "raw") arguments.format = LoadFormat::kRaw;
            if (format == "json") arguments.format = LoadFormat::kJson;
            if (format == "binary") arguments.format = LoadFormat::kBinary;
          },
          "tsv: KEY<TAB>VALUE as scan prints it; raw: the same without "
          "escapes; json: an object a line; binary: of dump; auto: binary, "
          "json or tsv, by how it begins (auto)")
      ->check(CLI::IsMember({"auto", "tsv", "raw", "json", "binary"}));
  load.add_option_function<std::string>(
          "--deadlines",
          [&arguments](const std::string& deadlines) {
            arguments.deadlines = deadlines == "pause"    ? Deadlines::kPause
                                  : deadlines == "ignore" ? Deadlines::kIgnore
                                                          : Deadlines::kKeep;
          },
          "Of lines that have one. keep: by the server's clock; pause: the "
          "time since the dump does not count; ignore: a fresh time to live "
          "(keep)")
      ->check(CLI::IsMember({"keep", "pause", "ignore"}));
}

constexpr char kLoadFooter[] =
    R"(JSON lines are {"key":"k","value":"v","ttl":"30s"}, with key_base64 or
key_hex for bytes that are not text, value likewise; in place of ttl there may
be a deadline, with the own_ttl that a renewal gives, or neither. TSV has \xNN
for bytes and two backslashes for one. A key that comes twice keeps its last value.
Malformed lines are reported and make the exit code 2; the others are stored all
the same.

An entry with a deadline gets that deadline and its own time to live. Entries of
dumps by earlier versions have none: a renewal gives them the namespace's. Entries
whose deadline has passed are counted, not loaded. Ctrl-C ends the load after a
line that is shown, with exit code 130.

Examples:
  timecachectl load sessions.tsv --ttl 30m
  timecachectl dump -n a | timecachectl load -n b
  zcat dump.jsonl.gz | timecachectl load -n sessions --skip-bad
  printf 'a\t1\nb\t2\n' | timecachectl load)";

}  // namespace

void AddLoadCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<LoadArguments>();
  CLI::App* load = app.add_subcommand(
      "load", "Put many entries from a file or standard input");
  load->add_option("file", arguments->file,
                   "The file; - or nothing: standard input");
  AddFormatFlags(*load, *arguments);
  AddDuration(*load, "--ttl", arguments->ttl,
              "Time to live of lines that name none; else the namespace's");
  load->add_option("--in-flight", arguments->puts_in_flight,
                   "Puts in flight at a time (4096)")
      ->check(CLI::Range(size_t{1}, kMaxPutsInFlight));
  load->add_flag("--skip-bad", arguments->skip_bad,
                 "Exit with 0 despite malformed lines");
  load->footer(kLoadFooter);
  OnRun(load, context, arguments, RunLoad);
}

}  // namespace timecache::cli
