// The connection to a server, with the settings that timecached's clients want.

#ifndef TIMECACHE_CHANNEL_H_
#define TIMECACHE_CHANNEL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timecache/export.h"

// In "grpcpp/channel.h" and "grpcpp/support/channel_arguments.h", for code that
// does more than pass them on.
namespace grpc {
class Channel;
class ChannelArguments;
}  // namespace grpc

namespace timecache {

// Largest message accepted: a value of 16 MiB (the most that a namespace
// allows) with its key, or a list of the server's most namespaces.
inline constexpr int kMaxMessageBytes = 64 << 20;
// The largest message that gRPC's channels accept by default.
inline constexpr int kGrpcMaxMessageBytes = 4 << 20;
// How often an idle connection with a call on it is checked, and how long the
// answer may take: a server that vanished without closing the connection is
// detected after their sum.
inline constexpr int kKeepaliveIntervalMs = 30'000;
inline constexpr int kKeepaliveTimeoutMs = 10'000;
// Pauses between attempts to connect, growing from the first to the second: a
// client reconnects about a second after its server is back.
inline constexpr int kMinConnectPauseMs = 100;
inline constexpr int kMaxConnectPauseMs = 1'000;
// How often the files of a secured channel are checked for changes.
inline constexpr int kFileCheckIntervalSeconds = 10;

// Most addresses of one client, and how long it tries to connect to one of
// several.
inline constexpr size_t kMaxAddresses = 16;
inline constexpr int kMaxConnectMs = 1'000;

// How a channel is secured, and the credentials that it sends. Files are PEM.
// They may be replaced while the channel exists: the new content takes effect
// within kFileCheckIntervalSeconds, from the next connection on, a token from
// the next call on.
struct ChannelOptions {
  // Use TLS. Implied by the files and the name below.
  bool tls = false;
  // Root certificates for verifying the server's certificate. Empty: the
  // system's.
  std::string ca_file = {};
  // The client's own certificate, with its chain, and its private key, for
  // mutual TLS. Both or none. Replace them together, by a rename or a symbolic
  // link: while they do not match, no new connection succeeds.
  std::string certificate_file = {};
  std::string key_file = {};
  // The name that the server's certificate must have. Empty: the address's
  // host.
  std::string server_name = {};
  // Holds a bearer token, which each call sends to the server.
  std::string token_file = {};
  // Send the token in plain text to other machines, too: for a proxy that
  // encrypts.
  bool allow_plaintext_token = false;

  bool wants_tls() const {
    return tls || !ca_file.empty() || !certificate_file.empty() ||
           !key_file.empty() || !server_name.empty();
  }
};

// A channel to `address` ("host:port" or "unix:/path"), in plain text. Connects
// at its first call, and reconnects whenever the connection breaks.
// Thread-safe; share one among all clients of a server.
TIMECACHED_EXPORT std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address);

// The same, secured. INVALID_ARGUMENT, or the system's error, for files that
// are missing or invalid, and for a token that would be sent in plain text to
// another machine. RESOURCE_EXHAUSTED for files of more than 1 MiB. The first
// call shows whether server and client trust each other. A channel with TLS
// files costs a thread.
TIMECACHED_EXPORT absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const ChannelOptions& options);
// With other settings.
TIMECACHED_EXPORT absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const ChannelOptions& options,
    grpc::ChannelArguments arguments);

}  // namespace timecache

#endif  // TIMECACHE_CHANNEL_H_
