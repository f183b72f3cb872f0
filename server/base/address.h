// Addresses to listen on and to connect to, as people write them.

#ifndef TIMECACHED_SERVER_BASE_ADDRESS_H_
#define TIMECACHED_SERVER_BASE_ADDRESS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace timecache {

// The most bytes that a unix socket's path has room for.
inline constexpr size_t kMaxSocketPathBytes = 107;

// Checks an address to listen on: host:port with a port from 0 to 65535 (0
// takes a free one), [IPv6]:port, or unix:/path with at most
// kMaxSocketPathBytes. INVALID_ARGUMENT says what is wrong with it, without
// naming a field. Thread-safe.
absl::Status ValidateAddress(absl::string_view address);

// Whether it stays within this machine: a unix socket, localhost, 127.0.0.0/8
// or ::1. Thread-safe.
bool IsLocalAddress(absl::string_view address);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_ADDRESS_H_
