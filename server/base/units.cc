#include "server/base/units.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace timecache {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kMaxDuration = absl::Seconds(315'576'000'000);
constexpr char kDigits[] = "0123456789.";

struct SizeUnit {
  absl::string_view name;
  uint64_t bytes;
};

constexpr SizeUnit kSizeUnits[] = {
    {"B", 1},
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"PB", 1'000'000'000'000'000},
    {"EB", 1'000'000'000'000'000'000},
    {"KiB", uint64_t{1} << 10},
    {"MiB", uint64_t{1} << 20},
    {"GiB", uint64_t{1} << 30},
    {"TiB", uint64_t{1} << 40},
    {"PiB", uint64_t{1} << 50},
    {"EiB", uint64_t{1} << 60},
};

// As much of a text as an error repeats, on one line.
std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxQuotedBytes = 64;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuotedBytes)),
                      text.size() > kMaxQuotedBytes ? "...\"" : "\"");
}

absl::Status Wrong(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " ", what));
}

// Takes what is before `end` from the front of the text.
absl::string_view Take(size_t end, absl::string_view* text) {
  const absl::string_view taken = text->substr(0, end);
  text->remove_prefix(taken.size());
  return taken;
}

// Exact, which a product with a fraction is not.
bool ParsePart(absl::string_view number, absl::string_view unit,
               absl::Duration* part) {
  // Abseil knows no days.
  const bool days = unit == "d";
  if (number.empty() ||
      !absl::ParseDuration(absl::StrCat(number, days ? "h" : unit), part)) {
    return false;
  }
  if (days) *part *= 24;
  return true;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  if (text == "0") return absl::ZeroDuration();
  if (absl::StartsWith(text, "-")) return Wrong(text, "is negative");
  absl::Duration sum;
  absl::string_view rest = text;
  do {
    const absl::string_view number =
        Take(rest.find_first_not_of(kDigits), &rest);
    const absl::string_view unit = Take(rest.find_first_of(kDigits), &rest);
    absl::Duration part;
    if (!ParsePart(number, unit, &part)) {
      return Wrong(text, "is not a duration: write 500ms, 30s, 5m, 24h or 7d");
    }
    sum += part;
  } while (!rest.empty());
  if (sum > kMaxDuration) return Wrong(text, "is longer than 10,000 years");
  return sum;
}

std::string DurationText(absl::Duration duration) {
  if (duration >= kDay && duration % kDay == absl::ZeroDuration()) {
    return absl::StrCat(duration / kDay, "d");
  }
  return duration == absl::ZeroDuration() ? "0s"
                                          : absl::FormatDuration(duration);
}

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  const auto wrong = [text] {
    return Wrong(text, "is not a size: write a number of bytes, or 64MiB");
  };
  absl::string_view rest = text;
  const absl::string_view number = Take(rest.find_first_not_of(kDigits), &rest);
  const absl::string_view unit = absl::StripLeadingAsciiWhitespace(rest);
  const bool whole = !absl::StrContains(number, '.');
  uint64_t factor = 1;
  if (!rest.empty() || !whole) {
    const auto* const found = std::find_if(
        std::begin(kSizeUnits), std::end(kSizeUnits),
        [unit](const SizeUnit& each) { return each.name == unit; });
    if (found == std::end(kSizeUnits)) return wrong();
    factor = found->bytes;
  }
  if (whole) {
    uint64_t count;
    if (!absl::SimpleAtoi(number, &count)) return wrong();
    if (count > std::numeric_limits<uint64_t>::max() / factor) {
      return Wrong(text, "is more than 64 bits hold");
    }
    return count * factor;
  }
  double count;
  if (!absl::SimpleAtod(number, &count)) return wrong();
  const double bytes = count * static_cast<double>(factor);
  if (bytes >= 0x1p64) return Wrong(text, "is more than 64 bits hold");
  return static_cast<uint64_t>(std::round(bytes));
}

std::string SizeText(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  const char* const kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (number >= 1024) {
    number /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.4g %s", number, kUnits[unit]);
}

}  // namespace timecache
