#include "client/cli/bench/bench_scan.h"

#include "server/base/wire_format.h"

namespace timecache::cli {
namespace {

// Tags of length-delimited fields: ExecuteResponse.results, and what an
// OperationResult has in it.
using server::kLengthDelimited;
using server::WireTag;
constexpr uint8_t kResultsTag = WireTag(1, kLengthDelimited);
constexpr uint8_t kErrorTag = WireTag(1, kLengthDelimited);
constexpr uint8_t kPutTag = WireTag(2, kLengthDelimited);
constexpr uint8_t kTouchTag = WireTag(6, kLengthDelimited);
constexpr uint8_t kAppendTag = WireTag(7, kLengthDelimited);
constexpr uint8_t kGatherTag = WireTag(9, kLengthDelimited);  // The last one.
constexpr uint8_t kTagMask = 0x07;

// Reads a length, and moves on to behind it. False if it is not within what is
// left.
bool TakeLength(const uint8_t*& at, const uint8_t* end, size_t& length) {
  length = 0;
  for (int shift = 0; at < end && shift <= 28; shift += 7) {
    const uint8_t byte = *at++;
    length |= static_cast<size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return length <= static_cast<size_t>(end - at);
  }
  return false;
}

}  // namespace

std::optional<BenchCounts> ScanResults(std::string_view response) {
  BenchCounts counts;
  const auto* at = reinterpret_cast<const uint8_t*>(response.data());
  const uint8_t* const end = at + response.size();
  while (at < end) {
    size_t length;
    if (*at++ != kResultsTag || !TakeLength(at, end, length) || length < 2) {
      return std::nullopt;
    }
    const uint8_t* const result_end = at + length;
    const uint8_t tag = *at++;
    // One field, and nothing behind it: its own length says so.
    if (!TakeLength(at, result_end, length) || at + length != result_end) {
      return std::nullopt;
    }
    ++counts.results;
    if (tag == kErrorTag) {
      ++counts.errors;
    } else if (tag > kPutTag && tag <= kTouchTag &&
               (tag & kTagMask) == kLengthDelimited) {
      // An empty response is a miss: nothing found, not there.
      ++(length > 0 ? counts.hits : counts.misses);
    } else if (tag != kPutTag && (tag < kAppendTag || tag > kGatherTag ||
                                  (tag & kTagMask) != kLengthDelimited)) {
      return std::nullopt;
    }
    at = result_end;
  }
  return counts;
}

BenchCounts ScanUnary(BenchKind kind, std::string_view response) {
  BenchCounts counts = {.results = 1};
  if (kind >= BenchKind::kGet && kind <= BenchKind::kTouch) {
    ++(response.empty() ? counts.misses : counts.hits);
  }
  return counts;
}

}  // namespace timecache::cli
