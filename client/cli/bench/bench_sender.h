// One connection, or one unary call at a time on it, of the benchmark.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_SENDER_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_SENDER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/bench_message.h"
#include "client/cli/bench/bench_options.h"
#include "client/cli/bench/bench_tally.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"

namespace timecache::cli {

class BenchSender;

// Receives a sender's events, on the thread that polls the completion queue.
class BenchListener {
 public:
  virtual ~BenchListener() = default;

  // A message of the sender was answered; `due_ns` as it was given to Send. May
  // send the next one.
  virtual void Answered(BenchSender& sender, int64_t due_ns,
                        const BenchCounts& counts) = 0;
  // An operation of the next message to be reported was answered by an error.
  virtual void OperationFailed(const absl::Status& error) = 0;
  // The sender can send no more, for this reason.
  virtual void Failed(const absl::Status& why) = 0;
};

// What a completion queue gives back: whose event it is.
class BenchEvent {
 public:
  virtual ~BenchEvent() = default;
  virtual void Happened(bool ok) = 0;
};

// Sends messages and reports their answers. Not thread-safe: all of it is done
// by the one thread that polls the completion queue. At most its depth of
// messages are in flight.
class BenchSender {
 public:
  virtual ~BenchSender() = default;

  // Begins; events come from here on.
  virtual void Start() = 0;
  // Whether it has begun, and has room for a message.
  virtual bool CanSend() const = 0;
  // Sends the next message, which is due at this time.
  virtual void Send(int64_t due_ns) = 0;
  virtual size_t in_flight() const = 0;
  // Ends: in good order if nothing is in flight.
  virtual void Close() = 0;
  virtual void Cancel() = 0;
  // Whether no event will come any more; only then may it be destroyed.
  virtual bool is_finished() const = 0;
};

// A sender on the channel, of its own stream or of unary calls as the options
// say. What is not the options must outlive it.
std::unique_ptr<BenchSender> MakeBenchStream(
    const BenchOptions& options, std::shared_ptr<grpc::Channel> channel,
    grpc::CompletionQueue& queue, BenchKeys& keys, BenchListener& listener);
std::unique_ptr<BenchSender> MakeBenchCalls(
    const BenchOptions& options, std::shared_ptr<grpc::Channel> channel,
    grpc::CompletionQueue& queue, BenchKeys& keys, BenchListener& listener);

// Whether an error is about the operation, and not about the server, the
// namespace or the connection.
bool IsOfOperation(const absl::Status& status);

// What the results of an ExecuteResponse say; errors of operations are reported
// to the listener. INTERNAL if there are not as many results as operations. A
// few nanoseconds for a result.
absl::StatusOr<BenchCounts> ReadResults(grpc::ByteBuffer& response,
                                        size_t operations,
                                        BenchListener& listener);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_SENDER_H_
