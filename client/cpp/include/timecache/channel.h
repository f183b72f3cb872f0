// The connection to a server, with the settings that timecached's clients want.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timecache/export.h"

// In "grpcpp/channel.h" and "grpcpp/support/channel_arguments.h", for those who
// do more than hand them on.
namespace grpc {
class Channel;
class ChannelArguments;
}  // namespace grpc

namespace timecache {

// Largest message taken: a value of 16 MiB (the most that a namespace allows)
// with its key, or a list of the server's most namespaces.
inline constexpr int kMaxMessageBytes = 64 << 20;
// What gRPC's channels take unless they are set otherwise.
inline constexpr int kGrpcMaxMessageBytes = 4 << 20;
// How often an idle connection with a call on it is checked, and how long the
// answer may take: a server that is gone without a word is noticed after their
// sum.
inline constexpr int kKeepaliveIntervalMs = 30'000;
inline constexpr int kKeepaliveTimeoutMs = 10'000;
// Pauses between attempts to connect, growing from the one to the other: a
// client is back about a second after its server.
inline constexpr int kMinConnectPauseMs = 100;
inline constexpr int kMaxConnectPauseMs = 1'000;
// How often the files of a secured channel are looked at.
inline constexpr int kFileCheckIntervalSeconds = 10;

// How a channel is secured, and the credentials that it sends. Files are PEM.
// They may be replaced while the channel lives: what they hold then counts from
// the next connection on, a token from the next call on, within
// kFileCheckIntervalSeconds.
struct ChannelOptions {
  // TLS. The files and the name below ask for it, too.
  bool tls = false;
  // Roots that the server's certificate must lead to. Empty: the system's.
  std::string ca_file = {};
  // The client's own certificate, with its chain, and its private key, for
  // mutual TLS. Both or none. Replace them together, by a rename or a symbolic
  // link: between one and the other no new connection succeeds.
  std::string certificate_file = {};
  std::string key_file = {};
  // The name that the server's certificate must have. Empty: the address's
  // host.
  std::string server_name = {};
  // Holds a bearer token, which each call shows to the server.
  std::string token_file = {};
  // Show the token over plain text also to another machine: for a proxy that
  // encrypts.
  bool allow_plaintext_token = false;

  bool wants_tls() const {
    return tls || !ca_file.empty() || !certificate_file.empty() ||
           !key_file.empty() || !server_name.empty();
  }
};

// A channel to `address` ("host:port" or "unix:/path"), in plain text. Connects
// at its first call, and again by itself whenever the connection breaks.
// Thread-safe; share one among all clients of a server.
TIMECACHED_EXPORT std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address);

// The same, secured. INVALID_ARGUMENT, or what the system says, for files that
// are missing or hold something else; for a token that would go over plain text
// to another machine. RESOURCE_EXHAUSTED for files of more than 1 MiB. Whether
// server and client trust each other is told by the first call. A channel with
// TLS files costs a thread.
TIMECACHED_EXPORT absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const ChannelOptions& options);
// With other settings.
TIMECACHED_EXPORT absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const ChannelOptions& options,
    grpc::ChannelArguments arguments);

}  // namespace timecache
