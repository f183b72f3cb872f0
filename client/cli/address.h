// The address of a server as users write it.

#ifndef TIMECACHED_CLIENT_CLI_ADDRESS_H_
#define TIMECACHED_CLIENT_CLI_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace timecache::cli {

// The port of a server that was started without saying where it listens.
inline constexpr int kDefaultPort = 7171;

// "host", "host:port", "10.0.0.1", "::1", "[::1]", "[::1]:port" with the
// default port where there is none; "unix:/path" and gRPC's other schemes
// ("dns:///host:port") as they are. INVALID_ARGUMENT for a URL, an empty host,
// a port that is no port. Of several, separated by commas, each.
absl::StatusOr<std::string> CompleteAddress(std::string_view address);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_ADDRESS_H_
