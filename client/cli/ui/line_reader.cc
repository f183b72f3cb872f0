#include "client/cli/ui/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace timecache::cli {
namespace {

constexpr size_t kBlockBytes = 64 << 10;

}  // namespace

LineReader::LineReader(int fd, size_t line_bytes_max, int stop_fd)
    : fd_(fd),
      line_bytes_max_(line_bytes_max),
      stop_fd_(stop_fd),
      block_(kBlockBytes) {}

bool LineReader::Fill() {
  begin_ = 0;
  end_ = 0;
  while (state_ == State::kReading) {
    // poll passes over a negative descriptor.
    pollfd fds[] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) {
      if (errno != EINTR) state_ = State::kError;
      continue;
    }
    if (fds[1].revents != 0) {
      state_ = State::kStopped;
      continue;
    }
    const ssize_t length = read(fd_, block_.data(), block_.size());
    if (length > 0) {
      end_ = static_cast<size_t>(length);
      return true;
    }
    if (length == 0) state_ = State::kEnd;
    if (length < 0 && errno != EINTR && errno != EAGAIN) {
      state_ = State::kError;
    }
  }
  return false;
}

int LineReader::Peek() {
  if (begin_ == end_ && !Fill()) return -1;
  return static_cast<unsigned char>(block_[begin_]);
}

LineReader::Result LineReader::NextBytes(size_t count, std::string& bytes) {
  bytes.clear();
  while (bytes.size() < count && (begin_ < end_ || Fill())) {
    const size_t taken = std::min(count - bytes.size(), end_ - begin_);
    bytes.append(block_.data() + begin_, taken);
    begin_ += taken;
    bytes_read_ += taken;
  }
  if (bytes.size() == count) return Result::kLine;
  if (state_ == State::kError) return Result::kError;
  if (state_ == State::kStopped) return Result::kStopped;
  return bytes.empty() ? Result::kEnd : Result::kTooLong;
}

LineReader::Result LineReader::Next(std::string& line) {
  line.clear();
  bool any = false;
  bool too_long = false;
  while (begin_ < end_ || Fill()) {
    any = true;
    const char* const from = block_.data() + begin_;
    const char* const to = std::find(from, from + (end_ - begin_), '\n');
    const auto length = static_cast<size_t>(to - from);
    const bool ended = begin_ + length < end_;
    too_long = too_long || line.size() + length > line_bytes_max_;
    if (!too_long) line.append(from, to);
    begin_ += length + ended;
    bytes_read_ += length + ended;
    if (ended) return too_long ? Result::kTooLong : Result::kLine;
  }
  if (state_ == State::kError) return Result::kError;
  if (state_ == State::kStopped) return Result::kStopped;
  if (!any) return Result::kEnd;
  return too_long ? Result::kTooLong : Result::kLine;
}

}  // namespace timecache::cli
