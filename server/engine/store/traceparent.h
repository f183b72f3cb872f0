// The W3C traceparent that an entry may keep for its event.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_TRACEPARENT_H_
#define TIMECACHED_SERVER_ENGINE_STORE_TRACEPARENT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace timecache::server {

// A traceparent of version 00 is a text,
//   00-<32 hex digits: trace>-<16: span>-<2: flags>
// or is packed: the bytes of the three numbers. Which one a view has, its size
// says. An empty view is none.
inline constexpr size_t kTraceTextBytes = 55;
inline constexpr size_t kTraceBytes = 25;

// Whether `text` is exactly of that form: in lower case, and neither trace nor
// span all zeros.
bool IsTraceparent(absl::string_view text);

// Write kTraceBytes or kTraceTextBytes to `to`, which may be where the trace is
// if it has that form already. `trace` has either form.
void PackTrace(absl::string_view trace, char* to);
void FormatTrace(absl::string_view trace, char* to);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_TRACEPARENT_H_
