#include "client/cpp/src/rpc/connect_error.h"

#include "absl/strings/match.h"

namespace timecache {
namespace {

struct Explanation {
  // In the words of gRPC 1.51 and OpenSSL 3.
  const char* part;
  const char* meaning;
};

// The first that is found counts.
constexpr Explanation kExplanations[] = {
    {"certificate verify failed",
     "the server's certificate is not signed by a root that this client "
     "trusts, or has expired"},
    {"Hostname Verification Check failed",
     "the server's certificate is not for the name that this client asked for"},
    {"wrong version number", "this client speaks TLS, and the server does not"},
    {"Failed to create security handshaker",
     "the client's private key does not fit its certificate"},
    {"alert certificate required",
     "the server wants a client's certificate, and this client shows none"},
    {"alert certificate expired", "the client's certificate has expired"},
    {"alert unknown ca",
     "the client's certificate is not signed by a root that the server trusts"},
    {"alert bad certificate", "the server refuses the client's certificate"},
    {"alert handshake failure",
     "the server refuses the client's certificate, or wants one"},
    {"alert protocol version", "the server wants another version of TLS"},
};

}  // namespace

std::string ExplainConnectError(absl::string_view grpc_message) {
  for (const Explanation& each : kExplanations) {
    if (absl::StrContains(grpc_message, each.part)) return each.meaning;
  }
  return "";
}

}  // namespace timecache
