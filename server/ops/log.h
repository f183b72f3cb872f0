#ifndef TIMECACHED_SERVER_OPS_LOG_H_
#define TIMECACHED_SERVER_OPS_LOG_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace timecache::server {

// Structured logs on standard error: one line per event, an event's name in
// snake_case and its fields.
//
//   Log(LogLevel::kInfo, "server_started", {{"address", address},
//   {"namespaces", 3}});
//
//   2026-01-01T00:00:00.000Z info  server_started address=127.0.0.1:7171
//   namespaces=3
//   {"time":"2026-01-01T00:00:00.000Z","level":"info","event":"server_started",
//    "address":"127.0.0.1:7171","namespaces":3}                        (on one
//    line)
//
// A line is printable ASCII whatever the values hold: others are escaped as in
// JSON, invalid UTF-8 is replaced, and a string is cut after kMaxLogValueBytes.
// A field's key is not to be time, level or event, and never to carry a
// secret's value.

inline constexpr size_t kMaxLogValueBytes = 1024;

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// A field's value that is a JSON object; in a line of text, too. What is none
// is logged as a string.
struct LogJson {
  std::string_view text;
};

// A field's value; numbers stay numbers. Refers to a string, and does not keep
// it: it lives as long as the call that it is made for.
class LogValue {
 public:
  LogValue(bool value) : value_(value) {}              // NOLINT
  LogValue(std::string_view value) : value_(value) {}  // NOLINT
  // Debian's absl::string_view is a type of its own.
  LogValue(absl::string_view value)  // NOLINT
      : value_(std::string_view(value.data(), value.size())) {}
  LogValue(const std::string& value) : value_(value) {}  // NOLINT
  LogValue(const char* value)                            // NOLINT
      : value_(std::string_view(value)) {}
  LogValue(LogJson value) : value_(value) {}  // NOLINT
  LogValue(std::floating_point auto value)    // NOLINT
      : value_(static_cast<double>(value)) {}
  LogValue(std::signed_integral auto value)  // NOLINT
      : value_(static_cast<int64_t>(value)) {}
  LogValue(std::unsigned_integral auto value)  // NOLINT
      : value_(static_cast<uint64_t>(value)) {}

  const auto& value() const { return value_; }

 private:
  std::variant<bool, int64_t, uint64_t, double, std::string_view, LogJson>
      value_;
};

struct LogField {
  std::string_view key;
  LogValue value;
};
using LogFields = absl::Span<const LogField>;

// Sets what is logged from now on. Without it: kInfo and up, as text.
// Thread-safe.
void SetLogging(LogLevel least_level, LogFormat format);

// Writes the event, if its level is logged. Thread-safe; lines of several
// threads do not mix. Never waits for a reader of standard error: what it does
// not take is dropped, see log_sink.h. Never throws.
void Log(LogLevel level, std::string_view event, LogFields fields = {});

// Lines so far that standard error did not take. Thread-safe.
uint64_t DroppedLogLines();

// The line that Log writes, without its end.
std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          std::string_view event, LogFields fields);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_LOG_H_
