// One run of `load`: lines of a file, or records, become puts.

#ifndef TIMECACHED_CLIENT_CLI_DUMP_LOADER_H_
#define TIMECACHED_CLIENT_CLI_DUMP_LOADER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cli/context.h"
#include "client/cli/dump/dump_format.h"
#include "client/cli/dump/load_line.h"
#include "client/cli/server_clock.h"
#include "client/cli/ui/line_reader.h"
#include "client/cli/ui/progress.h"
#include "timecache/pipeline.h"

namespace timecache::cli {

// What becomes of the deadlines that lines have.
enum class Deadlines {
  kKeep,    // The server's clock decides; what is past is not loaded.
  kPause,   // The time since the dump does not count.
  kIgnore,  // A fresh time to live.
};

struct LoadArguments {
  std::string file = "-";
  std::optional<LoadFormat> format = {};  // Unset: by the first line.
  std::optional<absl::Duration> ttl = {};
  Deadlines deadlines = Deadlines::kKeep;
  size_t puts_in_flight = 4096;
  bool skip_bad = false;
};

// Run by one thread; puts are answered on others. Memory is bounded by what is
// in flight and the longest line.
//
// An entry with a deadline is put with it, and with its own time to live, which
// a later renewal gives it.
class Loader {
 public:
  // All must outlive it; `fd` is not closed.
  Loader(const Context& context, const LoadArguments& arguments, int fd);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Loads all lines, prints a summary, and returns the exit code. `signal`
  // returns, after Interrupt, the number of the signal.
  int Run(const std::function<int()>& signal);

  // Reads no further and waits for what is in flight; the second time, does not
  // wait either. For any thread.
  void Interrupt();

 private:
  void Read();
  void ReadLines();
  void ReadFrames();
  // Takes what the reader returned; false if it is no line.
  bool HasLine(LineReader::Result result);
  void Take(const std::string& line);
  void TakeEntry(const absl::StatusOr<LoadEntry>& entry);
  // How long an entry is to live.
  struct Life {
    std::optional<absl::Duration> ttl = {};
    std::optional<absl::Time> expire_at = {};
    bool is_over = false;  // Its deadline has passed.
  };
  // Passes the entry to the pipeline, which calls `done` for the last
  // operation.
  absl::Status Store(const LoadEntry& entry, const Life& life,
                     Pipeline::Done done);
  // False if the line is no mark of a dump.
  bool TakeMarkLine(const std::string& line);
  void TakeMark(const DumpMark& mark);
  // "line 7".
  std::string PlaceText(uint64_t number) const;
  void WarnIfClockIsBehind();
  absl::StatusOr<LoadEntry> Parse(const std::string& line) const;
  absl::StatusOr<Life> LifeOf(const LoadEntry& entry);
  void Answered(uint64_t number, const absl::Status& status);
  void ReportBad(uint64_t number, const std::string& why);
  // Why the dump that was read is not whole; empty if it is, or is none.
  std::string DumpDefect() const;
  Progress ProgressNow() const;
  int Summarize(const std::function<int()>& signal);
  bool PrintSummary(bool is_whole);

  const Context& context_;
  const LoadArguments& arguments_;
  const uint64_t bytes_all_;
  const int stop_fd_;
  const absl::Time started_at_ = absl::Now();
  LineReader reader_;
  const Client client_;
  ServerClock clock_{client_};

  // Or of the record, where there are no lines.
  uint64_t line_number_ = 0;
  std::optional<LoadFormat> format_;  // Known from the first line on.
  std::optional<DumpHead> head_;      // Of the dump that is being read.
  uint64_t dump_entries_ = 0;         // Of it, so far.
  bool dump_ended_ = false;
  std::optional<uint64_t> dump_entries_said_;
  uint64_t expired_ = 0;
  bool reached_end_ = false;
  absl::Status read_error_;

  std::atomic<uint64_t> loaded_ = 0;
  std::atomic<bool> failed_ = false;
  std::atomic<int> interrupts_ = 0;

  absl::Mutex mu_;
  ProgressBar bar_ ABSL_GUARDED_BY(mu_);
  uint64_t bad_ ABSL_GUARDED_BY(mu_) = 0;
  std::pair<uint64_t, absl::Status> failure_ ABSL_GUARDED_BY(mu_);

  Pipeline pipeline_;  // Last: its answers use the rest.
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_DUMP_LOADER_H_
