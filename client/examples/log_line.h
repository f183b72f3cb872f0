// A line of a web server's access log.

#ifndef TIMECACHED_CLIENT_EXAMPLES_LOG_LINE_H_
#define TIMECACHED_CLIENT_EXAMPLES_LOG_LINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace timecache::sessionize {

// Longest visitor taken: a host name's most characters.
inline constexpr size_t kMaxVisitorBytes = 255;
// Years taken: those that a server's clock can show, and can still go on from.
inline constexpr int kMinYear = 1970;
inline constexpr int kMaxYear = 9900;

// What a line says that matters here.
struct LogLine {
  std::string visitor;  // The address or host name, printable ASCII.
  absl::Time time;      // Whole seconds.
  uint64_t bytes = 0;   // Of the answer; "-" in the log is 0.
};

// Reads a line of the Common Log Format,
//   HOST IDENT USER [17/May/2015:10:05:03 +0200] "REQUEST" STATUS BYTES
// or of a format that only adds to its end, as the Combined one does; what is
// added is not looked at. Quotes in REQUEST are escaped with a backslash. The
// end of the line, "\n" or "\r\n", may be there or not. INVALID_ARGUMENT says
// what is wrong.
absl::StatusOr<LogLine> ParseLogLine(std::string_view text);

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_LOG_LINE_H_
