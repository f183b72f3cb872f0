#include "client/examples/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace timecache::sessionize {
namespace {

constexpr absl::Duration kDrawInterval = absl::Milliseconds(100);
constexpr char kWipe[] = "\r\x1b[K";  // To the line's begin, and erase it.

}  // namespace

std::string CountText(uint64_t count) {
  std::string text = absl::StrCat(count);
  for (size_t end = text.size(); end > 3; end -= 3) {
    text.insert(end - 3, 1, ',');
  }
  return text;
}

uint64_t RatePerSecond(uint64_t count, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  if (seconds <= 0) return 0;
  return static_cast<uint64_t>(
      std::llround(static_cast<double>(count) / seconds));
}

std::string Escape(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&safe, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      safe.push_back(c);
    }
  }
  return safe;
}

bool WriteLine(std::string_view line) {
  return std::fwrite(line.data(), 1, line.size(), stdout) == line.size() &&
         std::fputc('\n', stdout) != EOF;
}

bool Flush() { return std::fflush(stdout) == 0; }

ProgressLine::ProgressLine(uint64_t bytes_all)
    : bytes_all_(bytes_all), shown_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::Update(uint64_t lines, uint64_t bytes_read,
                          absl::Duration elapsed) {
  if (!shown_ || elapsed < draw_next_at_) return;
  draw_next_at_ = elapsed + kDrawInterval;
  drawn_ = true;
  if (bytes_all_ > 0) {
    absl::FPrintF(stderr, "%s%3d%%  ", kWipe,
                  std::min<uint64_t>(100 * bytes_read / bytes_all_, 100));
  } else {
    std::fputs(kWipe, stderr);
  }
  absl::FPrintF(stderr, "%s lines  %s/s", CountText(lines),
                CountText(RatePerSecond(lines, elapsed)));
}

void ProgressLine::Wipe() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs(kWipe, stderr);
}

}  // namespace timecache::sessionize
