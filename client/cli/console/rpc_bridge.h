// RPCs whose messages are JSON, for the page.

#ifndef TIMECACHED_CLIENT_CLI_CONSOLE_RPC_BRIDGE_H_
#define TIMECACHED_CLIENT_CLI_CONSOLE_RPC_BRIDGE_H_

#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "timecache/client.h"

namespace timecache::cli {

// Calls methods by their names, of all services that this program has the
// descriptors of: no list of them is kept. Thread-safe.
class RpcBridge {
 public:
  // A call that may be made.
  struct Rpc {
    const google::protobuf::MethodDescriptor* method;
    std::string request;
  };

  // Lines of so many bytes do not wait for more.
  static constexpr size_t kMaxLines = 64 << 10;
  // A stream that is silent gets an empty line, which shows whether the browser
  // is still there.
  static constexpr absl::Duration kSilence = absl::Seconds(5);

  // `timeout` is that of unary calls. `read_only`: only methods that change
  // nothing are called.
  RpcBridge(Client client, absl::Duration timeout, bool read_only)
      : client_(std::move(client)), timeout_(timeout), read_only_(read_only) {}

  // `name`: "timecache.v1.TimeCacheService/Get"; `json`: its request, as proto3
  // JSON. UNIMPLEMENTED for a method that there is not, or that has a stream of
  // requests; INVALID_ARGUMENT that names the field; PERMISSION_DENIED for one
  // that is not read only, if the console is.
  absl::StatusOr<Rpc> Parse(const std::string& name,
                            const std::string& json) const;

  // Makes a unary call. The response as JSON, or the server's error. Blocks;
  // `gone` cancels it.
  absl::StatusOr<std::string> Call(const Rpc& rpc, std::stop_token gone) const;

  // Makes a call that the server answers by a stream: passes lines to `write`,
  // each {"message":...}, until the stream ends, and then {"end":true} or
  // {"error":...}. Reads no further while `write` blocks, so that flow control
  // slows the server. Returns once the stream has ended, `gone` is requested,
  // or `write` returns false.
  void Stream(const Rpc& rpc, const std::stop_token& gone,
              absl::FunctionRef<bool(std::string_view lines)> write) const;

 private:
  const Client client_;
  const absl::Duration timeout_;
  const bool read_only_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONSOLE_RPC_BRIDGE_H_
