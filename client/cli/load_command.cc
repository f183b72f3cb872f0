// load: many puts from a file or standard input.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/flags.h"
#include "client/cli/line_reader.h"
#include "client/cli/load_line.h"
#include "client/cli/output.h"
#include "client/cli/progress.h"
#include "client/cpp/pipeline.h"

namespace timecache::cli {
namespace {

// Bad lines that are reported one by one; the others are only counted.
constexpr uint64_t kMaxReportedLines = 20;
constexpr size_t kMaxPutsInFlight = 65'536;

struct LoadArguments {
  std::string file = "-";
  std::string format = "auto";
  std::optional<absl::Duration> ttl;
  size_t puts_in_flight = 4096;
  bool skip_bad = false;
};

// An eighth of them in a request, so that several are under way.
PipelineOptions MakePipelineOptions(size_t puts_in_flight) {
  PipelineOptions options = {.operations_in_flight_max = puts_in_flight};
  options.batch_operations_max =
      std::clamp(puts_in_flight / 8, size_t{1}, options.batch_operations_max);
  return options;
}

uint64_t FileBytes(std::FILE* file) {
  struct stat status;
  const bool known = fstat(fileno(file), &status) == 0 &&
                     S_ISREG(status.st_mode) && status.st_size > 0;
  return known ? status.st_size : 0;
}

// One load. Run by one thread; puts are answered on others.
class Loader {
 public:
  Loader(const Context& context, const LoadArguments& arguments,
         std::FILE* file)
      : context_(context),
        arguments_(arguments),
        reader_(file),
        bytes_all_(FileBytes(file)),
        pipeline_(context.MakeClient(),
                  MakePipelineOptions(arguments.puts_in_flight)) {}

  int Run() {
    std::string line;
    LineReader::Result result;
    while ((result = reader_.Next(line)) != LineReader::Result::kEnd) {
      ++line_number_;
      if (result == LineReader::Result::kError) {
        pipeline_.Close().IgnoreError();
        return context_.Fail(absl::UnknownError(absl::StrCat(
            "reading line ", line_number_, ": ", std::strerror(errno))));
      }
      if (result == LineReader::Result::kTooLong) {
        ReportBad(
            line_number_,
            absl::StrCat("longer than ", SizeText(LineReader::kMaxLineBytes)));
      } else {
        Take(line);
      }
      if (failed_) break;
      absl::MutexLock lock(&mu_);
      bar_.Update(ProgressNow());
    }
    // Every put has been told of; how the stream ends after that matters not.
    pipeline_.Close().IgnoreError();
    return Summarize();
  }

 private:
  void Take(const std::string& line) {
    if (IsBlank(line)) return;
    if (!format_) format_ = FormatOf(line);
    absl::StatusOr<LoadEntry> entry =
        *format_ == LoadFormat::kJson ? ParseJsonLine(line)
                                      : ParseTsvLine(line, context_.encoding);
    if (!entry.ok()) {
      ReportBad(line_number_, std::string(entry.status().message()));
      return;
    }
    const PutOptions options = {.ttl =
                                    entry->ttl ? entry->ttl : arguments_.ttl};
    const absl::Status taken = pipeline_.Add(
        Operation::Put(entry->key, entry->value, options),
        [this, number = line_number_](const OperationResult& result) {
          Answered(number, result.status);
        });
    if (!taken.ok()) Answered(line_number_, taken);
  }

  LoadFormat FormatOf(const std::string& line) const {
    if (arguments_.format == "json") return LoadFormat::kJson;
    if (arguments_.format == "tsv") return LoadFormat::kTsv;
    return GuessFormat(line);
  }

  // What the server finds malformed is a bad line as well; anything else would
  // fail the lines that follow, too.
  void Answered(uint64_t number, const absl::Status& status) {
    if (status.ok()) {
      ++loaded_;
    } else if (absl::IsInvalidArgument(status)) {
      ReportBad(number, std::string(status.message()));
    } else {
      absl::MutexLock lock(&mu_);
      if (!failed_) failure_ = {number, status};
      failed_ = true;
    }
  }

  void ReportBad(uint64_t number, const std::string& why) {
    absl::MutexLock lock(&mu_);
    ++bad_;
    if (bad_ > kMaxReportedLines) return;
    bar_.Wipe();
    Warn(absl::StrCat("line ", number, ": ", why));
    if (bad_ == kMaxReportedLines) Warn("further bad lines are only counted");
  }

  Progress ProgressNow() const {
    return {.done = loaded_,
            .bytes_read = reader_.bytes_read(),
            .bytes_all = bytes_all_,
            .elapsed = absl::Now() - started_at_};
  }

  int Summarize() {
    absl::MutexLock lock(&mu_);
    bar_.Wipe();
    const Progress progress = ProgressNow();
    const uint64_t rate = RatePerSecond(progress.done, progress.elapsed);
    const double seconds = absl::ToDoubleSeconds(progress.elapsed);
    const bool written =
        context_.json
            ? WriteJson(Json{{"loaded", progress.done},
                             {"bad_lines", bad_},
                             {"complete", !failed_},
                             {"elapsed_ms", std::llround(seconds * 1000)},
                             {"entries_per_second", rate}})
            : WriteLine(absl::StrFormat(
                  "loaded %s entries in %.1f s (%s/s), %s bad lines%s",
                  CountText(progress.done), seconds, CountText(rate),
                  CountText(bad_), failed_ ? ", then gave up" : ""));
    if (!written || !Flush()) return context_.FailToWrite();
    if (failed_) {
      Warn(absl::StrCat("line ", failure_.first, " was not stored"));
      return context_.Fail(failure_.second);
    }
    return bad_ > 0 && !arguments_.skip_bad ? kExitError : kExitDone;
  }

  const Context& context_;
  const LoadArguments& arguments_;
  LineReader reader_;
  const uint64_t bytes_all_;
  const absl::Time started_at_ = absl::Now();
  uint64_t line_number_ = 0;
  std::optional<LoadFormat> format_;  // Known from the first line on.
  std::atomic<uint64_t> loaded_ = 0;
  std::atomic<bool> failed_ = false;

  absl::Mutex mu_;
  ProgressBar bar_ ABSL_GUARDED_BY(mu_);
  uint64_t bad_ ABSL_GUARDED_BY(mu_) = 0;
  std::pair<uint64_t, absl::Status> failure_ ABSL_GUARDED_BY(mu_);

  Pipeline pipeline_;  // Last: its answers use the rest.
};

int RunLoad(const Context& context, const LoadArguments& arguments) {
  if (arguments.file == "-") return Loader(context, arguments, stdin).Run();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(arguments.file.c_str(), "rb"), std::fclose);
  if (file == nullptr) {
    return context.Fail(absl::NotFoundError(
        absl::StrCat(arguments.file, ": ", std::strerror(errno))));
  }
  return Loader(context, arguments, file.get()).Run();
}

}  // namespace

void AddLoadCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<LoadArguments>();
  CLI::App* load = app.add_subcommand(
      "load", "Put many entries from a file or standard input");
  load->add_option("file", arguments->file,
                   "The file; - or nothing: standard input");
  load->add_option("--format", arguments->format,
                   "tsv: KEY<TAB>VALUE; json: an object a line; auto: by the "
                   "first line")
      ->check(CLI::IsMember({"auto", "tsv", "json"}));
  AddDuration(
      *load, "--ttl",
      [arguments = arguments.get()](absl::Duration ttl) {
        arguments->ttl = ttl;
      },
      "Time to live of lines that name none; else the namespace's");
  load->add_option("--in-flight", arguments->puts_in_flight,
                   "Puts under way at a time (4096)")
      ->check(CLI::Range(size_t{1}, kMaxPutsInFlight));
  load->add_flag("--skip-bad", arguments->skip_bad,
                 "Exit with 0 in spite of malformed lines");
  load->footer(
      "JSON lines are {\"key\":\"k\",\"value\":\"v\",\"ttl\":\"30s\"}, with "
      "key_base64 or\nkey_hex for bytes that are not text, value likewise; ttl "
      "may be left out.\nA key that comes twice keeps its last value. "
      "Malformed "
      "lines are reported and\nmake the exit code 2; the others are stored all "
      "the same.\n\n"
      "Examples:\n"
      "  timecachectl load sessions.tsv --ttl 30m\n"
      "  zcat dump.jsonl.gz | timecachectl load -n sessions --skip-bad\n"
      "  printf 'a\\t1\\nb\\t2\\n' | timecachectl load");
  load->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunLoad(context, *arguments);
    };
  });
}

}  // namespace timecache::cli
