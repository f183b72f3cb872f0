// What a line of the input of `load` says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bytes.h"

namespace timecache::cli {

enum class LoadFormat { kTsv, kJson };

struct LoadEntry {
  std::string key;
  std::string value;
  std::optional<absl::Duration> ttl = {};
};

// JSON if the first line with anything on it begins with a brace.
LoadFormat GuessFormat(std::string_view first_line);

// Nothing but spaces and tabs: not an entry, not an error.
bool IsBlank(std::string_view line);

// "key<TAB>value", each in the given encoding. The value goes on to the end of
// the line, further tabs included.
absl::StatusOr<LoadEntry> ParseTsvLine(std::string_view line,
                                       Encoding encoding);

// {"key":"k","value":"v","ttl":"30s"}. Bytes that are not text come as
// key_base64 or key_hex, value likewise; ttl may be left out. What `scan
// --json` prints is taken, too: its version and times mean nothing here.
// Another field is an error, because it is more likely a slip than meant.
absl::StatusOr<LoadEntry> ParseJsonLine(std::string_view line);

}  // namespace timecache::cli
