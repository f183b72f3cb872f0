// The binary form of a dump: smaller than its lines, and quicker to make and to
// read.
//
// A file is kMagic and then frames: u32 bytes | a body of so many | u32 CRC-32C
// of the body. A body begins with a byte for its kind. All numbers are
// little-endian, times are microseconds since 1970 on the server's clock.
//
//   head:  'h' | u32 version | i64 time | the namespace
//   entry: 'e' | a timecache.v1.Entry: key, value or parts, deadline, own_ttl,
//          traceparent
//   end:   'z' | u64 entries

#ifndef TIMECACHED_CLIENT_CLI_DUMP_DUMP_BINARY_H_
#define TIMECACHED_CLIENT_CLI_DUMP_DUMP_BINARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "client/cli/dump/dump_format.h"
#include "client/cli/dump/load_line.h"

namespace timecache::cli {

// Of no text: its first byte is not UTF-8, nor a tab or a brace.
inline constexpr std::string_view kDumpMagic = "\x89TCDUMP\n";
// Before a body, and behind it.
inline constexpr size_t kFrameHeadBytes = 4;
inline constexpr size_t kFrameTailBytes = 4;
// The largest key and value, and what is around them, also where the value is
// of 1,024 parts.
inline constexpr size_t kMaxFrameBytes = (16 << 20) + (64 << 10);

// Frames.
std::string BinaryBegin(const DumpHead& head);
std::string BinaryEntry(const Entry& entry);
std::string BinaryEnd(uint64_t entries);

// How many bytes follow a frame's head. DATA_LOSS: more than one can have.
absl::StatusOr<size_t> FrameBytes(const std::string& head);
// What these say. DATA_LOSS: damaged. INVALID_ARGUMENT: of a later version.
absl::StatusOr<std::variant<DumpMark, LoadEntry>> ParseFrame(
    const std::string& bytes);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_DUMP_DUMP_BINARY_H_
