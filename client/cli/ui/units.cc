#include "client/cli/ui/units.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace timecache::cli {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kMaxDuration = absl::Hours(10'000 * 365 * 24);

struct DurationUnit {
  std::string_view name;
  absl::Duration unit;
};

const DurationUnit kDurationUnits[] = {{"ns", absl::Nanoseconds(1)},
                                       {"us", absl::Microseconds(1)},
                                       {"ms", absl::Milliseconds(1)},
                                       {"s", absl::Seconds(1)},
                                       {"m", absl::Minutes(1)},
                                       {"h", absl::Hours(1)},
                                       {"d", kDay}};

struct SizeUnit {
  std::string_view name;
  double bytes;
};

constexpr SizeUnit kSizeUnits[] = {{"", 1},
                                   {"B", 1},
                                   {"kB", 1e3},
                                   {"MB", 1e6},
                                   {"GB", 1e9},
                                   {"TB", 1e12},
                                   {"KiB", 1024.0},
                                   {"MiB", 1024.0 * 1024},
                                   {"GiB", 1024.0 * 1024 * 1024},
                                   {"TiB", 1024.0 * 1024 * 1024 * 1024}};

// Takes a number without sign or exponent from the front.
std::optional<double> TakeNumber(std::string_view& text) {
  const size_t length =
      std::min(text.find_first_not_of("0123456789."), text.size());
  double number;
  if (!absl::SimpleAtod(absl::string_view(text.data(), length), &number)) {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return number;
}

// Takes a word from the front.
std::string_view TakeUnit(std::string_view& text) {
  const size_t length =
      std::min(text.find_first_of("0123456789."), text.size());
  const std::string_view unit = text.substr(0, length);
  text.remove_prefix(length);
  return unit;
}

absl::Status NoDuration(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(text),
                   "\" is not a duration: write 500ms, 30s, 5m, 24h or 7d"));
}

absl::Status NoSize(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(text),
                   "\" is not a size: write a number of bytes, or 64MiB"));
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  if (text == "0") return absl::ZeroDuration();
  absl::Duration sum;
  std::string_view rest = text;
  do {
    const std::optional<double> number = TakeNumber(rest);
    const std::string_view name = TakeUnit(rest);
    const DurationUnit* found = nullptr;
    for (const DurationUnit& unit : kDurationUnits) {
      if (unit.name == name) found = &unit;
    }
    if (!number || found == nullptr) return NoDuration(text);
    sum += *number * found->unit;
  } while (!rest.empty());
  if (sum > kMaxDuration) return NoDuration(text);
  return sum;
}

std::string DurationText(absl::Duration duration) {
  if (duration >= kDay && duration % kDay == absl::ZeroDuration()) {
    return absl::StrCat(duration / kDay, "d");
  }
  return absl::FormatDuration(duration);
}

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  std::string_view rest = text;
  uint64_t bytes;
  if (absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &bytes)) {
    return bytes;
  }
  const std::optional<double> number = TakeNumber(rest);
  if (!number) return NoSize(text);
  for (const SizeUnit& unit : kSizeUnits) {
    if (unit.name != rest || rest.empty()) continue;
    const double result = *number * unit.bytes;
    if (result >= 0x1p63) return NoSize(text);
    return static_cast<uint64_t>(std::llround(result));
  }
  return NoSize(text);
}

absl::StatusOr<uint64_t> ParseCount(std::string_view text) {
  uint64_t count;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" is not a whole number"));
  }
  return count;
}

std::string SizeText(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  const char* const kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (number >= 1024 && unit < 3) {
    number /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.4g %s", number, kUnits[unit]);
}

absl::StatusOr<absl::Time> ParseTime(std::string_view text) {
  std::string_view rest = text;
  const std::optional<double> seconds = TakeNumber(rest);
  if (seconds && rest.empty()) {
    return absl::UnixEpoch() + absl::Seconds(*seconds);
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full,
                       absl::string_view(text.data(), text.size()), &time,
                       &error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text),
        "\" is not a time: write 2025-01-31T12:00:00Z, or seconds since 1970"));
  }
  return time;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

std::string ExactTimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

}  // namespace timecache::cli
