// Why there is no connection, in words.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace timecache {

// What is behind an error of TLS, as far as gRPC's message tells: "the server's
// certificate is not signed by a root that this client trusts". Empty where it
// tells nothing.
std::string ExplainConnectError(absl::string_view grpc_message);

}  // namespace timecache
