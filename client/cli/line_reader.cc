#include "client/cli/line_reader.h"

#include <algorithm>

namespace timecache::cli {
namespace {

constexpr size_t kBlockBytes = 64 << 10;

}  // namespace

LineReader::LineReader(std::FILE* file, size_t line_bytes_max)
    : file_(file), line_bytes_max_(line_bytes_max), block_(kBlockBytes) {}

bool LineReader::Fill() {
  begin_ = 0;
  end_ = std::fread(block_.data(), 1, block_.size(), file_);
  return end_ > 0;
}

LineReader::Result LineReader::Next(std::string& line) {
  line.clear();
  bool any = false;
  bool too_long = false;
  while (begin_ < end_ || Fill()) {
    any = true;
    const auto from = block_.begin() + begin_;
    const auto to = std::find(from, block_.begin() + end_, '\n');
    const size_t length = to - from;
    const bool ended = begin_ + length < end_;
    too_long = too_long || line.size() + length > line_bytes_max_;
    if (!too_long) line.append(from, to);
    begin_ += length + ended;
    bytes_read_ += length + ended;
    if (ended) break;
  }
  if (std::ferror(file_)) return Result::kError;
  if (!any) return Result::kEnd;
  return too_long ? Result::kTooLong : Result::kLine;
}

}  // namespace timecache::cli
