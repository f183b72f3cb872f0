// Many operations without waiting for each answer: the fastest way to the
// server.
//
//   timecache::Pipeline pipeline(client);
//   for (const auto& [key, value] : entries) {
//     absl::Status status = pipeline.Add(
//         timecache::Operation::Put(key, value),
//         [](const timecache::OperationResult& result) {
//           if (!result.status.ok()) std::cerr << result.status << "\n";
//         });
//     if (!status.ok()) break;  // The stream has ended: status says why.
//   }
//   absl::Status status = pipeline.Close();
//
// For a few operations whose results are needed at once, timecache/batch.h.

#ifndef TIMECACHE_PIPELINE_H_
#define TIMECACHE_PIPELINE_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/operation.h"

namespace timecache {

// An operation is in flight from Add until its callback has returned.
struct PipelineOptions {
  // Most operations of one request: 1 to kMaxRequestOperations.
  size_t batch_operations_max = 256;
  // Most bytes of them; a larger operation is sent alone. The server holds a
  // whole request in memory while it arrives, as it does for other clients.
  size_t batch_bytes_max = 1 << 20;
  // Most requests that were sent and are not answered yet. At least 1.
  size_t requests_in_flight_max = 16;
  // Most operations in flight. At least 1.
  size_t operations_in_flight_max = 8192;
  // Most bytes of operations in flight; a larger one is sent alone.
  size_t bytes_in_flight_max = 8 << 20;
};

// A stream of operations on one namespace, and of their results.
//
// Operations are applied in the order in which they were added, each succeeds
// or fails by itself, and their callbacks run in that order. They are grouped
// into requests: added operations are sent when none is in flight, when they
// fill a request, or by Flush. So a single operation does not wait for others,
// and many share the cost of a message.
//
// The callback of every accepted operation is called exactly once: with its
// result, or, if the stream ends before, with the stream's error; MaybeApplied
// (timecache/status.h) says whether the operation may have been applied. The
// pipeline ends by Close, by Cancel, or by an error of its stream: when the server
// stops (UNAVAILABLE), when the namespace does not exist (NOT_FOUND), when the
// connection breaks: to continue, create a new Pipeline. A stream that ends while
// nothing is in flight is opened again by the next Add. Another is opened, as
// often as the client's RetryPolicy says without an answer in between, if
// operations were sent that are not answered, and all of these are safe to repeat:
// then they are sent again, in the same order.
// Where a node of a cluster is not the owner, or is no longer, the stream
// continues at the owner.
//
// Callbacks run one at a time, on one of gRPC's threads. They must be quick,
// and may call TryAdd, Flush, Cancel and status, but no function that waits.
//
// Thread-safe. The options bound the memory: Add waits while the operations in
// flight leave no room. If no response arrives within the client's timeout
// while a caller waits, the stream ends with DEADLINE_EXCEEDED. An operation of
// 64 B costs the client about a microsecond of CPU.
class TIMECACHED_EXPORT Pipeline {
 public:
  using Done = std::function<void(const OperationResult& result)>;

  // On the client's namespace. Starts the stream; the first operations fail if
  // the server is unreachable.
  explicit Pipeline(const Client& client, const PipelineOptions& options = {});
  // Closes it. No other call may be in progress or be made by a callback.
  ~Pipeline();

  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Adds an operation; waits for room. On an error it was not added, and `done`
  // is not called: INVALID_ARGUMENT (larger than kMaxRequestBytes: the pipeline
  // goes on), FAILED_PRECONDITION (after Close), or why the stream has ended.
  absl::Status Add(Operation operation, Done done);

  // The same, but does not wait: false if there is no room now. Arguments that
  // were not accepted are unchanged.
  absl::StatusOr<bool> TryAdd(Operation&& operation, Done&& done);

  // Sends the added operations.
  void Flush();

  // Sends the added operations, and waits until all their callbacks have run.
  // Returns the stream's error, if it has ended.
  absl::Status Wait();

  // Ends the stream gracefully: accepts no more operations, waits as Wait does,
  // and for the server to end the stream. Returns how it ended: OK if each
  // operation was answered. May be called again.
  absl::Status Close();

  // Ends the stream at once: operations in flight end with CANCELLED. Does not
  // wait.
  void Cancel();

  // Why the stream has ended; OK while it has not, or if it ended by Close.
  absl::Status status() const;

 private:
  class Stream;

  std::unique_ptr<Stream> stream_;  // Never null.
};

}  // namespace timecache

#endif  // TIMECACHE_PIPELINE_H_
