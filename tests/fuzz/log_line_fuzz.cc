// A log line is one line of printable ASCII whatever is logged, and as JSON it
// says what was logged.

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <string>

#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "server/base/utf8.h"
#include "server/ops/log.h"
#include "tests/fuzz/fuzz.h"

namespace timecache::server {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fuzz::Require;
  FuzzedDataProvider input(data, size);
  const auto number = input.ConsumeIntegral<int64_t>();
  const auto fraction = input.ConsumeFloatingPoint<double>();
  const absl::Time time =
      absl::FromUnixMicros(input.ConsumeIntegral<int64_t>());
  const std::string first = input.ConsumeRandomLengthString();
  const std::string second = input.ConsumeRemainingBytesAsString();
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line =
        FormatLogLine(format, time, LogLevel::kWarning, "fuzzed",
                      {{"first", first},
                       {"number", number},
                       {"fraction", fraction},
                       {"second", second}});
    Require(std::all_of(line.begin(), line.end(),
                        [](char c) { return c >= ' ' && c <= '~'; }),
            line);
    if (format == LogFormat::kText) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    Require(json.is_object() && json.size() == 7, line);
    Require(json["event"] == "fuzzed" && json["number"] == number, line);
    if (first.size() <= kMaxLogValueBytes &&
        FindInvalidUtf8(first) == absl::string_view::npos) {
      Require(json["first"] == first, line);
    }
  }
  return 0;
}

}  // namespace timecache::server
