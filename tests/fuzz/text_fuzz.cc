// Durations, sizes, enums' names and UTF-8 as operators write them: what is
// read comes back the same when it is written.

#include <string>

#include "absl/strings/str_cat.h"
#include "server/api/enum_names.h"
#include "server/base/units.h"
#include "server/base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {
namespace {

using fuzz::Require;

void CheckDuration(const std::string& text) {
  const auto duration = ParseDuration(text);
  if (!duration.ok()) {
    return Require(absl::IsInvalidArgument(duration.status()), text);
  }
  Require(*duration >= absl::ZeroDuration(), text);
  const std::string written = DurationText(*duration);
  const auto again = ParseDuration(written);
  Require(again.ok() && *again == *duration, text + " came back as " + written);
}

void CheckSize(const std::string& text) {
  const auto size = ParseSize(text);
  if (!size.ok()) {
    return Require(absl::IsInvalidArgument(size.status()), text);
  }
  Require(ParseSize(absl::StrCat(*size)).value() == *size, text);
  // Four digits may be more than 64 bits hold.
  if (*size <= INT64_MAX) Require(ParseSize(SizeText(*size)).ok(), text);
}

// RFC 3629, section 4, as it stands there.
size_t LengthOfUtf8(std::string_view text) {
  const auto in = [&](size_t i, int least, int most) {
    const int byte = i < text.size() ? static_cast<uint8_t>(text[i]) : -1;
    return byte >= least && byte <= most;
  };
  const auto tail = [&](size_t i) { return in(i, 0x80, 0xbf); };
  if (in(0, 0x00, 0x7f)) return 1;
  if (in(0, 0xc2, 0xdf) && tail(1)) return 2;
  if (((in(0, 0xe0, 0xe0) && in(1, 0xa0, 0xbf)) ||
       (in(0, 0xe1, 0xec) && tail(1)) ||
       (in(0, 0xed, 0xed) && in(1, 0x80, 0x9f)) ||
       (in(0, 0xee, 0xef) && tail(1))) &&
      tail(2)) {
    return 3;
  }
  if (((in(0, 0xf0, 0xf0) && in(1, 0x90, 0xbf)) ||
       (in(0, 0xf1, 0xf3) && tail(1)) ||
       (in(0, 0xf4, 0xf4) && in(1, 0x80, 0x8f))) &&
      tail(2) && tail(3)) {
    return 4;
  }
  return 0;
}

void CheckUtf8(const std::string& text) {
  size_t valid = 0;
  while (valid < text.size()) {
    const size_t length = LengthOfUtf8(std::string_view(text).substr(valid));
    if (length == 0) break;
    valid += length;
  }
  const bool whole = valid == text.size();
  Require(FindInvalidUtf8(text) == (whole ? absl::string_view::npos : valid),
          "the first byte that is not UTF-8");
}

void CheckEnum(const std::string& text) {
  for (const auto* type :
       {config::v1::LogLevel_descriptor(), v1::LimitPolicy_descriptor()}) {
    const auto* value = FindEnumValue(*type, text);
    Require(value == nullptr || EnumName(*value) == text, text);
  }
}

}  // namespace
}  // namespace timecache::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = timecache::fuzz::Bytes(data, size);
  timecache::server::CheckDuration(text);
  timecache::server::CheckSize(text);
  timecache::server::CheckUtf8(text);
  timecache::server::CheckEnum(text);
  return 0;
}
