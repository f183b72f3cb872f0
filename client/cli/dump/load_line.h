// What a line of the input of `load` says.

#ifndef TIMECACHED_CLIENT_CLI_DUMP_LOAD_LINE_H_
#define TIMECACHED_CLIENT_CLI_DUMP_LOAD_LINE_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/ui/bytes.h"
#include "timecache/gathered_parts.h"

namespace timecache::cli {

enum class LoadFormat {
  kTsv,     // As `scan` prints it.
  kRaw,     // The same without escapes.
  kJson,    // As `dump`, and `scan --json`, print it.
  kBinary,  // As `dump --format binary` writes it: no lines.
};

struct LoadEntry {
  std::string key = {};
  std::string value = {};
  // In place of a value: at least one, and less than it expects.
  std::optional<GatheredParts> parts = {};
  // At most one of these two.
  std::optional<absl::Duration> ttl = {};
  std::optional<absl::Time> deadline = {};  // On the server's clock.
  // What a renewal gives it, whatever the deadline. Not beside a ttl, which is
  // the same without a deadline.
  std::optional<absl::Duration> own_ttl = {};
  std::string traceparent = {};
};

// JSON if the first line with anything on it begins with a brace, and is no
// TSV; else TSV.
LoadFormat GuessFormat(std::string_view first_line);

// Nothing but spaces (in JSON, tabs, too): not an entry, not an error.
bool IsBlank(std::string_view line, LoadFormat format);

// "key<TAB>value", each in the given encoding. The value goes on to the end of
// the line, further tabs included. Text is as Escape writes it, or, raw, as it
// stands there.
absl::StatusOr<LoadEntry> ParseTsvLine(std::string_view line,
                                       const Encodings& encodings,
                                       bool is_raw = false);

// {"key":"k","value":"v","ttl":"30s"}. Bytes that are not text come as
// key_base64 or key_hex, value likewise; in place of ttl there may be a
// deadline, with an own_ttl if the entry has one, or neither. It may have a
// traceparent. What `scan --json`
// prints is taken, too: its version, put_time, create_time and left_ms mean
// nothing here; so are the parts that a key collects.
// Another field is an error, because it is more likely a slip than meant.
absl::StatusOr<LoadEntry> ParseJsonLine(std::string_view line);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_DUMP_LOAD_LINE_H_
