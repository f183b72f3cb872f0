// Lines of a file, one at a time and no longer than allowed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace timecache::cli {

// Reads lines that end with '\n', the last one perhaps without. Not
// thread-safe. Holds one block and what the caller keeps of a line.
class LineReader {
 public:
  // Longest line taken: a value of 16 MiB with each byte escaped as \u00XX.
  static constexpr size_t kMaxLineBytes = 100 << 20;

  enum class Result { kLine, kTooLong, kEnd, kError };

  // `file` must outlive it and is not closed.
  explicit LineReader(std::FILE* file, size_t line_bytes_max = kMaxLineBytes);

  // The next line, without its end. kTooLong: it was skipped. kError: errno
  // tells.
  Result Next(std::string& line);

  // Bytes of all lines so far.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  bool Fill();

  std::FILE* const file_;
  const size_t line_bytes_max_;
  std::vector<char> block_;
  size_t begin_ = 0;  // Of what is unread in the block.
  size_t end_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace timecache::cli
