// Channels of a client that has several addresses. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_BOUNDED_CHANNEL_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_BOUNDED_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timecache/channel.h"

namespace timecache {

// As MakeChannel, but an attempt to connect ends after kMaxConnectMs: gRPC
// allows 20 s, for which calls would wait where another address may do.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeBoundedChannel(
    const std::string& address, const ChannelOptions& options);

// INVALID_ARGUMENT for a token that would be sent in plain text to another
// machine.
absl::Status CheckTokenTo(const std::string& address,
                          const ChannelOptions& options);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_BOUNDED_CHANNEL_H_
