// The lines of a dump. What `load` makes of them is in load_line.h.

#ifndef TIMECACHED_CLIENT_CLI_DUMP_DUMP_FORMAT_H_
#define TIMECACHED_CLIENT_CLI_DUMP_DUMP_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {

// A later form that this one cannot read counts on. Of version 1 no entry says
// its own time to live, of version 2 none its traceparent.
inline constexpr int kDumpVersion = 3;

// What a dump says of itself, before its entries.
struct DumpHead {
  std::string ns = {};
  // The server's clock, to which the deadlines belong, when the dump began.
  absl::Time time = {};
};

// {"dump":{"version":3,"namespace":"a","time":"..."}}
Json DumpBegin(const DumpHead& head);
// {"key":..,"value":..,"deadline":"..","own_ttl":"..","traceparent":".."}, the
// last two if it has them, with parts in place of a value where the key collects
// these: nothing that is another one after it was loaded, so that two dumps of
// the same entries have the same lines.
Json DumpEntry(const Entry& entry, const Encodings& encodings);
// {"dump_end":{"entries":2}}
Json DumpEnd(uint64_t entries);

// The first or the last line of a dump.
struct DumpMark {
  std::optional<DumpHead> head = {};
  uint64_t entries = 0;  // Of the last line.
};

// None for a line that is neither. INVALID_ARGUMENT if it is malformed, or of a
// later version.
absl::StatusOr<std::optional<DumpMark>> ParseDumpMark(std::string_view line);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_DUMP_DUMP_FORMAT_H_
