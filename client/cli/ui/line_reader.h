// Lines of a file, one at a time and no longer than allowed; or its bytes.

#ifndef TIMECACHED_CLIENT_CLI_UI_LINE_READER_H_
#define TIMECACHED_CLIENT_CLI_UI_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace timecache::cli {

// Reads lines that end with '\n', the last one perhaps without. A line that a
// slow pipe has brought is there at once. Not thread-safe. Holds one block and
// what the caller keeps of a line.
class LineReader {
 public:
  // Longest line taken: a value of 16 MiB with each byte escaped as \u00XX.
  static constexpr size_t kMaxLineBytes = 100 << 20;

  enum class Result { kLine, kTooLong, kEnd, kError, kStopped };

  // Neither is closed. `stop_fd`: once this can be read from, the next line is
  // not waited for any more; -1: none.
  explicit LineReader(int fd, size_t line_bytes_max = kMaxLineBytes,
                      int stop_fd = -1);

  // The next line, without its end. kTooLong: it was skipped. kError: see
  // errno. kStopped: requested by stop_fd.
  Result Next(std::string& line);

  // The next byte, which stays; -1 where Next would not give a line.
  int Peek();
  // The next so many bytes. kEnd: there is none; kTooLong: fewer than that.
  Result NextBytes(size_t count, std::string& bytes);

  // Bytes of all lines so far.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  enum class State { kReading, kEnd, kError, kStopped };

  bool Fill();

  const int fd_;
  const size_t line_bytes_max_;
  const int stop_fd_;
  State state_ = State::kReading;
  std::vector<char> block_;
  size_t begin_ = 0;  // Of what is unread in the block.
  size_t end_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_LINE_READER_H_
