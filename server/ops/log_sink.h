// Writes log lines without waiting for their reader.

#ifndef TIMECACHED_SERVER_OPS_LOG_SINK_H_
#define TIMECACHED_SERVER_OPS_LOG_SINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// Writes lines to a file descriptor. A server must outlive its log: one whose
// reader is slow, stuck or gone, or whose disk is full, costs lines and no
// call. Beyond what the kernel keeps for a pipe (64 KiB) or a socket, lines
// are dropped whole and counted, and a line with their number
// (log_lines_dropped) precedes the next line that is accepted.
//
// Thread-safe; lines do not mix. A line costs a poll and a write, and never
// waits, but for a file's disk or network.
class LogSink {
 public:
  // `describe` makes the line that says how many were dropped.
  LogSink(int fd, std::function<std::string(uint64_t dropped)> describe)
      : fd_(fd), describe_(std::move(describe)) {}

  // Without its end.
  void Write(std::string line) ABSL_LOCKS_EXCLUDED(mu_);

  // Lines so far that could not be written.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  bool WriteRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WriteLine(std::string line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int fd_;
  const std::function<std::string(uint64_t)> describe_;
  std::atomic<uint64_t> dropped_{0};

  absl::Mutex mu_;
  // The part of dropped_ that a line has reported.
  uint64_t reported_ ABSL_GUARDED_BY(mu_) = 0;
  // The rest of a line that was written in part; goes first.
  std::string rest_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_LOG_SINK_H_
