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
  const char* const end = block_.data() + end_;
  return std::find(block_.data() + begin_, end, '\n') != end;
}

absl::StatusOr<bool> LogReader::Next(std::string& line) {
  line.clear();
  cut_ = false;
  for (bool any = false;; any = true) {
    if (begin_ == end_) {
      absl::StatusOr<bool> filled = Fill();
      if (!filled.ok()) return filled;
      if (!*filled) return any;
    }
    const char* const from = block_.data() + begin_;
    const char* const end = block_.data() + end_;
    const char* const to = std::find(from, end, '\n');
    const auto length = static_cast<size_t>(to - from);
    const size_t room = kMaxLineBytes - line.size();
    cut_ = cut_ || length > room;
    line.append(from, std::min(length, room));
    const bool ended = begin_ + length < end_;
    begin_ += length + ended;
    bytes_read_ += length + ended;
    if (ended) return true;
  }
}

}  // namespace timecache::sessionize
