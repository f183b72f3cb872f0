#include "server/config/duration_text.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace timecache {
namespace {

// The most that google.protobuf.Duration holds: 10,000 years.
constexpr int64_t kMaxSeconds = 315'576'000'000;

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr std::pair<const char*, int64_t> kLargeUnits[] = {
    {"d", 86'400}, {"h", 3600}, {"m", 60}, {"s", 1}};
constexpr std::pair<const char*, int64_t> kSmallUnits[] = {
    {"ms", 1000}, {"us", 1'000'000}, {"ns", kNanosPerSecond}};

// As much of a text as an error repeats, on one line.
std::string Shown(absl::string_view text) {
  return absl::CHexEscape(text.substr(0, 64));
}

// Reads what stands before the first 'd', and removes it: "1d12h" becomes
// "12h".
bool ConsumeDays(absl::string_view* text, absl::Duration* days) {
  const size_t end = text->find('d');
  if (end == absl::string_view::npos) return true;
  const absl::string_view digits = text->substr(0, end);
  uint32_t count = 0;
  for (const char c : digits) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  if (!absl::SimpleAtoi(digits, &count)) return false;
  *days = absl::Hours(24) * static_cast<int64_t>(count);
  text->remove_prefix(end + 1);
  return true;
}

}  // namespace

absl::StatusOr<google::protobuf::Duration> ParseDurationText(
    absl::string_view text) {
  absl::string_view rest = text;
  absl::Duration days;
  absl::Duration time;
  if (!ConsumeDays(&rest, &days) || (rest.empty() && text.empty()) ||
      (!rest.empty() && !absl::ParseDuration(rest, &time)) ||
      time == absl::InfiniteDuration() || time == -absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a duration with a unit, as 500ms, 30s, 5m, 24h or 7d, "
        "got \"",
        Shown(text), "\""));
  }
  if (time < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("must not be negative, got \"", Shown(text), "\""));
  }
  const absl::Duration total = days + time;
  if (total > absl::Seconds(kMaxSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("longer than 10,000 years: \"", Shown(text), "\""));
  }
  google::protobuf::Duration duration;
  duration.set_seconds(absl::ToInt64Seconds(total));
  duration.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(total - absl::Seconds(duration.seconds()))));
  return duration;
}

std::string FormatDurationText(const google::protobuf::Duration& duration) {
  const int64_t seconds = duration.seconds();
  const int64_t nanos = duration.nanos();
  if (nanos == 0) {
    if (seconds == 0) return "0s";
    for (const auto& [unit, factor] : kLargeUnits) {
      if (seconds % factor == 0) return absl::StrCat(seconds / factor, unit);
    }
  }
  for (const auto& [unit, per_second] : kSmallUnits) {
    const int64_t in_nanos = kNanosPerSecond / per_second;
    // More than the unit can count: seconds and the rest.
    if (seconds > std::numeric_limits<int64_t>::max() / per_second - 1) break;
    if (nanos % in_nanos == 0) {
      return absl::StrCat(seconds * per_second + nanos / in_nanos, unit);
    }
  }
  return absl::StrCat(seconds, "s", nanos, "ns");
}

}  // namespace timecache
