// The reason for a failed connection, in words.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CONNECT_ERROR_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CONNECT_ERROR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace timecache {

// The cause of a TLS error, as far as gRPC's message shows it: "the server's
// certificate is not signed by a root that this client trusts". Empty if it
// does not.
std::string ExplainConnectError(absl::string_view grpc_message);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CONNECT_ERROR_H_
