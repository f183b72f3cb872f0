// The connection to a server, with the settings that timecached's clients want.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace timecache::inline client {

// Largest message taken: a value of 16 MiB (the most that a namespace allows)
// with its key, or a list of the server's most namespaces.
inline constexpr int kMaxMessageBytes = 64 << 20;
// How often an idle connection with a call on it is checked, and how long the
// answer may take: a server that is gone without a word is noticed after their
// sum.
inline constexpr int kKeepaliveIntervalMs = 30'000;
inline constexpr int kKeepaliveTimeoutMs = 10'000;
// Pauses between attempts to connect, growing from the one to the other.
inline constexpr int kMinConnectPauseMs = 100;
inline constexpr int kMaxConnectPauseMs = 5'000;

// A channel to `address` ("host:port" or "unix:/path"), in plain text. Connects
// at its first call, and again by itself whenever the connection breaks.
// Thread-safe; share one among all clients of a server.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

}  // namespace timecache::inline client
