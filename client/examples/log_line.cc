#include "client/examples/log_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace timecache::sessionize {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun",
    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr int kMaxLeapSecond = 60;

bool Skip(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Takes a number of exactly `digits` digits, at most `max`.
bool TakeDigits(size_t digits, int max, std::string_view& text, int& number) {
  if (text.size() < digits) return false;
  number = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return number <= max;
}

bool TakeMonth(std::string_view& text, int& month) {
  const auto found =
      std::find(kMonths.begin(), kMonths.end(), text.substr(0, 3));
  if (found == kMonths.end()) return false;
  month = static_cast<int>(found - kMonths.begin()) + 1;
  text.remove_prefix(3);
  return true;
}

// "+0200": how far local time is ahead of UTC.
bool TakeOffset(std::string_view& text, absl::Duration& offset) {
  if (text.empty() || (text.front() != '+' && text.front() != '-')) {
    return false;
  }
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  int hours;
  int minutes;
  if (!TakeDigits(2, 23, text, hours) || !TakeDigits(2, 59, text, minutes)) {
    return false;
  }
  offset = sign * (absl::Hours(hours) + absl::Minutes(minutes));
  return true;
}

// "17/May/2015:10:05:03 +0200". A leap second is the first of the next minute.
std::optional<absl::Time> TakeTime(std::string_view& text) {
  int day, month, year, hour, minute, second;
  absl::Duration offset;
  const bool taken = TakeDigits(2, 31, text, day) && Skip("/", text) &&
                     TakeMonth(text, month) && Skip("/", text) &&
                     TakeDigits(4, kMaxYear, text, year) && Skip(":", text) &&
                     TakeDigits(2, 23, text, hour) && Skip(":", text) &&
                     TakeDigits(2, 59, text, minute) && Skip(":", text) &&
                     TakeDigits(2, kMaxLeapSecond, text, second) &&
                     Skip(" ", text) && TakeOffset(text, offset);
  if (!taken || year < kMinYear) return std::nullopt;
  const absl::CivilMinute civil(year, month, day, hour, minute);
  if (civil.day() != day) return std::nullopt;  // The 30th of February.
  return absl::FromCivil(civil, absl::UTCTimeZone()) + absl::Seconds(second) -
         offset;
}

// "..." with \" inside.
bool SkipQuoted(std::string_view& text) {
  if (!Skip("\"", text)) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

// The number of bytes, to the end of the line or of the field.
std::optional<uint64_t> TakeBytes(std::string_view text) {
  const std::string_view field = text.substr(0, text.find(' '));
  if (field == "-") return 0;
  uint64_t bytes;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, bytes);
  if (error != std::errc() || stop != end) return std::nullopt;
  return bytes;
}

bool IsVisitor(std::string_view text) {
  return !text.empty() && text.size() <= kMaxVisitorBytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~'; });
}

// Two fields or more: a user's name may hold spaces.
bool IsIdentAndUser(std::string_view text) {
  return Skip(" ", text) && text.find(' ', 1) < text.size() - 1;
}

}  // namespace

absl::StatusOr<LogLine> ParseLogLine(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty()) return absl::InvalidArgumentError("it is empty");
  const std::string_view visitor = text.substr(0, text.find(' '));
  if (!IsVisitor(visitor)) {
    return absl::InvalidArgumentError("it begins with no address or host name");
  }
  text.remove_prefix(visitor.size());
  const size_t date = text.find(" [");
  if (date == text.npos || !IsIdentAndUser(text.substr(0, date))) {
    return absl::InvalidArgumentError("HOST IDENT USER [TIME] is missing");
  }
  text.remove_prefix(date + 2);
  const std::optional<absl::Time> time = TakeTime(text);
  if (!time || !Skip("] ", text)) {
    return absl::InvalidArgumentError(
        "no time such as [17/May/2015:10:05:03 +0000]");
  }
  if (!SkipQuoted(text) || !Skip(" ", text)) {
    return absl::InvalidArgumentError("no \"REQUEST\" in quotes");
  }
  int status;
  if (!TakeDigits(3, 999, text, status) || !Skip(" ", text)) {
    return absl::InvalidArgumentError("no status of three digits");
  }
  const std::optional<uint64_t> bytes = TakeBytes(text);
  if (!bytes) return absl::InvalidArgumentError("no number of bytes");
  return LogLine{
      .visitor = std::string(visitor), .time = *time, .bytes = *bytes};
}

}  // namespace timecache::sessionize
