#include "client/cli/ui/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "server/base/units.h"

namespace timecache::cli {
namespace {

constexpr absl::Duration kDrawInterval = absl::Milliseconds(100);
constexpr int kBarColumns = 30;
constexpr char kWipe[] = "\r\x1b[K";  // To the line's begin, and erase it.

}  // namespace

std::string RateText(double per_second) {
  if (per_second < 10) return absl::StrFormat("%.1f", per_second);
  return CountText(static_cast<uint64_t>(std::llround(per_second)));
}

std::string CountText(uint64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

uint64_t RatePerSecond(uint64_t done, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  if (seconds <= 0) return 0;
  return static_cast<uint64_t>(
      std::llround(static_cast<double>(done) / seconds));
}

std::string RenderProgress(const Progress& progress) {
  std::string line;
  if (progress.bytes_all > 0) {
    const double part = std::min(static_cast<double>(progress.bytes_read) /
                                     static_cast<double>(progress.bytes_all),
                                 1.0);
    const int filled = static_cast<int>(part * kBarColumns);
    std::string bar(filled, '=');
    if (filled < kBarColumns) bar += '>';
    bar.resize(kBarColumns, ' ');
    line = absl::StrFormat("[%s] %3d%%  ", bar, static_cast<int>(part * 100));
  }
  const uint64_t rate = RatePerSecond(progress.done, progress.elapsed);
  if (progress.is_size) {
    return absl::StrCat(line, SizeText(progress.done), "  ", SizeText(rate),
                        "/s");
  }
  return absl::StrCat(line, CountText(progress.done), " ", progress.unit, "  ",
                      CountText(rate), "/s");
}

ProgressBar::ProgressBar() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { Wipe(); }

void ProgressBar::Update(const Progress& progress) {
  if (!shown_) return;
  const absl::Time now = absl::Now();
  if (now < draw_next_at_) return;
  draw_next_at_ = now + kDrawInterval;
  drawn_ = true;
  absl::FPrintF(stderr, "%s%s", kWipe, RenderProgress(progress));
}

void ProgressBar::Wipe() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs(kWipe, stderr);
}

}  // namespace timecache::cli
