// The largest message that the client of a stream accepts.

#ifndef TIMECACHED_SERVER_RPC_CALL_MESSAGE_LIMIT_H_
#define TIMECACHED_SERVER_RPC_CALL_MESSAGE_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {

// The default limit of gRPC's clients. Messages of streams are always below it,
// except for single large values.
inline constexpr size_t kDefaultMaxMessageBytes = size_t{4} << 20;

// A request's max_message_bytes. INVALID_ARGUMENT if that is out of its range.
template <typename Request>
absl::StatusOr<size_t> ToMaxMessageBytes(const Request& request) {
  if (!request.has_max_message_bytes()) return kDefaultMaxMessageBytes;
  const uint32_t bytes = request.max_message_bytes();
  if (bytes < kDefaultMaxMessageBytes ||
      bytes > uint32_t{std::numeric_limits<int32_t>::max()}) {
    return InvalidField(
        "max_message_bytes",
        absl::StrCat("must be 4 MiB to 2 GiB - 1, not ", bytes, " bytes"));
  }
  return bytes;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_MESSAGE_LIMIT_H_
