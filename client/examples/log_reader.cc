#include "client/examples/log_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace timecache::sessionize {

LogReader::LogReader(int fd) : fd_(fd), block_(kMaxLineBytes) {}

absl::StatusOr<bool> LogReader::Fill() {
  ssize_t length;
  do {
    length = read(fd_, block_.data(), block_.size());
  } while (length < 0 && errno == EINTR);
  if (length < 0) {
    return absl::UnknownError(
        absl::StrCat("the log cannot be read: ", std::strerror(errno)));
  }
  begin_ = 0;
  end_ = length;
  return length > 0;
}

bool LogReader::HasLine() const {
  const auto end = block_.begin() + end_;
  return std::find(block_.begin() + begin_, end, '\n') != end;
}

absl::StatusOr<bool> LogReader::Next(std::string& line) {
  line.clear();
  cut_ = false;
  for (bool any = false;; any = true) {
    if (begin_ == end_) {
      const absl::StatusOr<bool> filled = Fill();
      if (!filled.ok()) return filled;
      if (!*filled) return any;
    }
    const auto from = block_.begin() + begin_;
    const auto to = std::find(from, block_.begin() + end_, '\n');
    const size_t length = to - from;
    const size_t room = kMaxLineBytes - line.size();
    cut_ = cut_ || length > room;
    line.append(from, from + std::min(length, room));
    const bool ended = begin_ + length < end_;
    begin_ += length + ended;
    bytes_read_ += length + ended;
    if (ended) return true;
  }
}

}  // namespace timecache::sessionize
