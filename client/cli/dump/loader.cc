#include "client/cli/dump/loader.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/dump/dump_binary.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

// Bad lines that are reported one by one; the others are only counted.
constexpr uint64_t kMaxReportedLines = 20;
// How old the server's time may be when a deadline is compared with it, or
// counted from it.
constexpr absl::Duration kLoadClockAge = absl::Milliseconds(10);

// An eighth of them in a request, so that several are under way.
PipelineOptions MakePipelineOptions(size_t puts_in_flight) {
  PipelineOptions options = {.operations_in_flight_max = puts_in_flight};
  options.batch_operations_max =
      std::clamp(puts_in_flight / 8, size_t{1}, options.batch_operations_max);
  return options;
}

uint64_t FileBytes(int fd) {
  struct stat status;
  const bool known =
      fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  return known ? status.st_size : 0;
}

}  // namespace

Loader::Loader(const Context& context, const LoadArguments& arguments, int fd)
    : context_(context),
      arguments_(arguments),
      bytes_all_(FileBytes(fd)),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reader_(fd, LineReader::kMaxLineBytes, stop_fd_),
      client_(context.MakeClient()),
      format_(arguments.format),
      pipeline_(client_, MakePipelineOptions(arguments.puts_in_flight)) {}

Loader::~Loader() {
  pipeline_.Close().IgnoreError();
  close(stop_fd_);
}

int Loader::Run(const std::function<int()>& signal) {
  Read();
  // Every put has its result by now; how the stream ends does not matter.
  pipeline_.Close().IgnoreError();
  return Summarize(signal);
}

void Loader::Interrupt() {
  if (interrupts_++ > 0) pipeline_.Cancel();
  const uint64_t once = 1;
  // Cannot fail: nothing has been added before.
  [[maybe_unused]] const ssize_t written = write(stop_fd_, &once, sizeof(once));
}

void Loader::Read() {
  const int first = reader_.Peek();
  if (!format_ && first == static_cast<unsigned char>(kDumpMagic[0])) {
    format_ = LoadFormat::kBinary;
  }
  if (format_ == LoadFormat::kBinary) {
    ReadFrames();
  } else {
    ReadLines();
  }
}

bool Loader::HasLine(LineReader::Result result) {
  if (result == LineReader::Result::kEnd) reached_end_ = true;
  if (result == LineReader::Result::kError) {
    read_error_ = absl::UnknownError(absl::StrCat(
        "reading ", PlaceText(line_number_ + 1), ": ", std::strerror(errno)));
  }
  return result == LineReader::Result::kLine ||
         result == LineReader::Result::kTooLong;
}

void Loader::ReadLines() {
  std::string line;
  while (!failed_ && interrupts_ == 0) {
    const LineReader::Result result = reader_.Next(line);
    if (!HasLine(result)) return;
    ++line_number_;
    if (result == LineReader::Result::kTooLong) {
      ReportBad(
          line_number_,
          absl::StrCat("longer than ", SizeText(LineReader::kMaxLineBytes)));
    } else {
      Take(line);
    }
    absl::MutexLock lock(&mu_);
    bar_.Update(ProgressNow());
  }
}

// Behind damage nothing can be read.
void Loader::ReadFrames() {
  std::string bytes;
  if (reader_.NextBytes(kDumpMagic.size(), bytes) !=
          LineReader::Result::kLine ||
      bytes != kDumpMagic) {
    read_error_ = absl::InvalidArgumentError("not a binary dump");
    return;
  }
  while (!failed_ && interrupts_ == 0) {
    LineReader::Result result = reader_.NextBytes(kFrameHeadBytes, bytes);
    if (!HasLine(result)) return;
    absl::StatusOr<size_t> size = size_t{0};
    if (result == LineReader::Result::kLine) {
      size = FrameBytes(bytes);
      if (size.ok()) result = reader_.NextBytes(*size, bytes);
    }
    if (size.ok() && result != LineReader::Result::kLine) {
      // In its midst: the summary says that its end is missing.
      if (result != LineReader::Result::kTooLong) HasLine(result);
      reached_end_ = reached_end_ || result == LineReader::Result::kTooLong;
      return;
    }
    ++line_number_;
    const auto frame = size.ok() ? ParseFrame(bytes) : size.status();
    if (!frame.ok()) {
      read_error_ = absl::Status(frame.status().code(),
                                 absl::StrCat(PlaceText(line_number_), ": ",
                                              frame.status().message()));
      return;
    }
    if (const DumpMark* mark = std::get_if<DumpMark>(&*frame)) {
      TakeMark(*mark);
    } else {
      TakeEntry(std::get<LoadEntry>(*frame));
    }
    absl::MutexLock lock(&mu_);
    bar_.Update(ProgressNow());
  }
}

std::string Loader::PlaceText(uint64_t number) const {
  return absl::StrCat(format_ == LoadFormat::kBinary ? "record " : "line ",
                      number);
}

void Loader::Take(const std::string& line) {
  if (IsBlank(line, format_.value_or(LoadFormat::kTsv))) return;
  if (!format_) format_ = GuessFormat(line);
  if (*format_ == LoadFormat::kJson && TakeMarkLine(line)) return;
  TakeEntry(Parse(line));
}

void Loader::TakeEntry(const absl::StatusOr<LoadEntry>& entry) {
  ++dump_entries_;
  if (!entry.ok()) {
    ReportBad(line_number_, std::string(entry.status().message()));
    return;
  }
  const auto life = LifeOf(*entry);
  if (!life.ok()) return Answered(line_number_, life.status());
  if (life->is_over) {
    ++expired_;
    return;
  }
  const absl::Status taken =
      Store(*entry, *life,
            [this, number = line_number_](const OperationResult& result) {
              Answered(number, result.status);
            });
  if (!taken.ok()) Answered(line_number_, taken);
}

// Parts take the place of what is there one by one, in their order. If one is
// refused, so are all behind it but for a limit that has gone: then the entry
// has those that fit.
absl::Status Loader::Store(const LoadEntry& entry, const Life& life,
                           Pipeline::Done done) {
  // What becomes due on its way dies at once, with an event, as on time.
  const bool allow_past = life.expire_at.has_value();
  if (!entry.parts) {
    return pipeline_.Add(Operation::Put(entry.key, entry.value,
                                        {.ttl = life.ttl,
                                         .expire_at = life.expire_at,
                                         .allow_past = allow_past,
                                         .traceparent = entry.traceparent}),
                         std::move(done));
  }
  const GatherOptions options = {.expected_parts = entry.parts->expected_parts,
                                 .expected_names = entry.parts->expected_names,
                                 .ttl = life.ttl,
                                 .traceparent = entry.traceparent};
  std::vector<Operation> operations = {Operation::Remove(entry.key)};
  for (const GatheredPart& part : entry.parts->parts) {
    operations.push_back(
        Operation::Gather(entry.key, part.name, part.value, options));
  }
  if (life.expire_at) {
    operations.push_back(Operation::Touch(
        entry.key, {.expire_at = life.expire_at, .allow_past = allow_past}));
  }
  const auto refused = std::make_shared<absl::Status>();
  absl::Status taken;
  for (size_t i = 0; taken.ok() && i < operations.size(); ++i) {
    Pipeline::Done counted = [refused](const OperationResult& result) {
      refused->Update(result.status);
    };
    if (i + 1 == operations.size()) {
      counted = [refused, done](OperationResult result) {
        refused->Update(result.status);
        result.status = *refused;
        done(result);
      };
    }
    taken = pipeline_.Add(std::move(operations[i]), std::move(counted));
  }
  return taken;
}

bool Loader::TakeMarkLine(const std::string& line) {
  const auto mark = ParseDumpMark(line);
  if (!mark.ok()) {
    ReportBad(line_number_, std::string(mark.status().message()));
    return true;
  }
  if (!*mark) return false;
  TakeMark(**mark);
  return true;
}

void Loader::TakeMark(const DumpMark& mark) {
  if (mark.head) {
    head_ = mark.head;
    dump_ended_ = false;
    dump_entries_ = 0;
    WarnIfClockIsBehind();
  } else {
    dump_ended_ = true;
    dump_entries_said_ = mark.entries;
  }
}

// A server whose clock has not reached the time of the dump keeps another time:
// the user must decide what the deadlines mean there.
void Loader::WarnIfClockIsBehind() {
  if (arguments_.deadlines != Deadlines::kKeep) return;
  const auto now = clock_.Reached(kLoadClockAge);
  if (!now.ok() || *now >= head_->time) return;
  absl::MutexLock lock(&mu_);
  bar_.Wipe();
  Warn(absl::StrCat("the server's clock is ", DurationText(head_->time - *now),
                    " before the time of the dump, and entries live so much "
                    "longer: --deadlines pause counts from the dump on"));
}

absl::StatusOr<LoadEntry> Loader::Parse(const std::string& line) const {
  if (*format_ == LoadFormat::kJson) return ParseJsonLine(line);
  return ParseTsvLine(line, context_.encodings, *format_ == LoadFormat::kRaw);
}

absl::StatusOr<Loader::Life> Loader::LifeOf(const LoadEntry& entry) {
  if (entry.ttl) return Life{.ttl = entry.ttl};
  if (!entry.deadline || arguments_.deadlines == Deadlines::kIgnore) {
    return Life{.ttl = entry.own_ttl ? entry.own_ttl : arguments_.ttl};
  }
  const bool pause = arguments_.deadlines == Deadlines::kPause;
  if (pause && !head_) {
    return absl::InvalidArgumentError(
        "--deadlines pause needs a dump with its first line");
  }
  const auto now = clock_.Reached(kLoadClockAge);
  if (!now.ok()) return now.status();
  const absl::Time from = pause ? head_->time : *now;
  return Life{.ttl = entry.own_ttl,
              .expire_at = *entry.deadline + (*now - from),
              .is_over = *entry.deadline <= from};
}

// What the server finds malformed is a bad line as well; anything else would
// fail the lines that follow, too.
void Loader::Answered(uint64_t number, const absl::Status& status) {
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

void Loader::ReportBad(uint64_t number, const std::string& why) {
  absl::MutexLock lock(&mu_);
  ++bad_;
  if (bad_ > kMaxReportedLines) return;
  bar_.Wipe();
  Warn(absl::StrCat(PlaceText(number), ": ", why));
  if (bad_ == kMaxReportedLines) Warn("further bad lines are only counted");
}

std::string Loader::DumpDefect() const {
  if (!head_ || !reached_end_) return "";
  if (!dump_ended_) return "the dump is cut off: its last line is missing";
  if (dump_entries_ == *dump_entries_said_) return "";
  return absl::StrCat("the dump is incomplete: it has ", dump_entries_,
                      " entries, and says ", *dump_entries_said_);
}

Progress Loader::ProgressNow() const {
  return {.done = loaded_,
          .bytes_read = reader_.bytes_read(),
          .bytes_all = bytes_all_,
          .elapsed = absl::Now() - started_at_};
}

bool Loader::PrintSummary(bool is_whole) {
  absl::MutexLock lock(&mu_);
  bar_.Wipe();
  const Progress progress = ProgressNow();
  const uint64_t rate = RatePerSecond(progress.done, progress.elapsed);
  const double seconds = absl::ToDoubleSeconds(progress.elapsed);
  const bool interrupted = interrupts_ > 0;
  if (context_.json) {
    return WriteJson(Json{{"loaded", progress.done},
                          {"bad_lines", bad_},
                          {"expired", expired_},
                          {"complete", is_whole && !failed_ && !interrupted},
                          {"interrupted", interrupted},
                          {"lines", line_number_},
                          {"elapsed_ms", std::llround(seconds * 1000)},
                          {"entries_per_second", rate}});
  }
  std::string text = absl::StrFormat(
      "loaded %s entries in %.1f s (%s/s), %s bad lines",
      CountText(progress.done), seconds, CountText(rate), CountText(bad_));
  if (expired_ > 0) {
    absl::StrAppend(&text, ", ", CountText(expired_), " expired before");
  }
  if (failed_) {
    absl::StrAppend(&text, ", then gave up");
  } else if (interrupted) {
    absl::StrAppend(&text, ", then was interrupted");
  }
  return WriteLine(text);
}

int Loader::Summarize(const std::function<int()>& signal) {
  const std::string defect = DumpDefect();
  const bool is_whole = defect.empty() && read_error_.ok();
  if (!PrintSummary(is_whole) || !Flush()) return context_.FailToWrite();
  absl::MutexLock lock(&mu_);
  if (failed_) {
    Warn(absl::StrCat(PlaceText(failure_.first), " was not stored"));
    context_.Fail(failure_.second);
  }
  if (interrupts_ > 0) {
    if (!failed_) {
      Warn(line_number_ == 0
               ? "interrupted before the first line was loaded"
               : absl::StrCat(
                     "interrupted: all ",
                     format_ == LoadFormat::kBinary ? "records" : "lines",
                     " up to ", PlaceText(line_number_),
                     " were loaded, and none after it"));
    }
    return kExitInterrupted + signal();
  }
  if (failed_) return kExitError;
  if (!read_error_.ok()) return context_.Fail(read_error_);
  if (!defect.empty()) return context_.Fail(absl::DataLossError(defect));
  return bad_ > 0 && !arguments_.skip_bad ? kExitError : kExitDone;
}

}  // namespace timecache::cli
