// Lines of a log, each as soon as it is there.

#ifndef TIMECACHED_CLIENT_EXAMPLES_LOG_READER_H_
#define TIMECACHED_CLIENT_EXAMPLES_LOG_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace timecache::sessionize {

// Reads lines from a file descriptor, the last one perhaps without its end. A
// line of a pipe ("tail -f log |") is handed on when it has come, not when a
// block is full.
//
// Not thread-safe. Holds one block and one line.
class LogReader {
 public:
  // Longest line taken. Web servers bound a request's line to far less.
  static constexpr size_t kMaxLineBytes = 64 << 10;

  // `fd` must stay open as long as the reader is used, and is not closed.
  explicit LogReader(int fd);

  // Reads the next line, without its "\n". False at the end. A line that is
  // longer than kMaxLineBytes is cut there, which cut() tells.
  absl::StatusOr<bool> Next(std::string& line);

  // Whether the next line is here already, so that Next does not wait for it.
  bool HasLine() const;

  // Whether the last line was cut.
  bool cut() const { return cut_; }
  // Of all lines so far.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  // False at the end.
  absl::StatusOr<bool> Fill();

  const int fd_;
  std::vector<char> block_;
  size_t begin_ = 0;  // Of what is unread in the block.
  size_t end_ = 0;
  bool cut_ = false;
  uint64_t bytes_read_ = 0;
};

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_LOG_READER_H_
