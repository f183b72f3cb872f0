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
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/operation.h"

namespace timecache {

// What is in flight has been added, and its callback has not returned.
struct PipelineOptions {
  // Most operations of one request: 1 to kMaxRequestOperations.
  size_t batch_operations_max = 256;
  // Most bytes of them; a larger operation goes alone. The server holds a
  // request as a whole while it arrives, beside those of others.
  size_t batch_bytes_max = 1 << 20;
  // Most requests that were sent and are not answered. At least 1.
  size_t requests_in_flight_max = 16;
  // Most operations in flight. At least 1.
  size_t operations_in_flight_max = 8192;
  // Most bytes of them in flight; a larger one goes alone.
  size_t bytes_in_flight_max = 8 << 20;
};

// A stream of operations on one namespace, and of their results.
//
// Operations are done in the order in which they were added, each succeeds or
// fails by itself, and their callbacks come in that order. They are grouped
// into requests: what has been added is sent when nothing is in flight, when it
// makes a full request, or by Flush. So a single operation waits for nobody,
// and many share the cost of a message.
//
// Every operation that was taken is told to its callback exactly once: with its
// result, or, when the stream ends before, with the stream's error; whether it
// was done is then unknown. The stream ends by Close, by Cancel, or by itself:
// when the server stops (UNAVAILABLE), when the namespace does not exist
// (NOT_FOUND), when the connection breaks. It does not come back: whoever wants
// to go on makes a new Pipeline.
//
// Callbacks run one at a time, on a thread of gRPC's. They must be quick, and
// may call TryAdd, Flush, Cancel and status, but nothing that waits.
//
// Thread-safe. Memory is bounded by the options: Add waits while what is in
// flight leaves no room. Whoever waits does so for at most the client's timeout
// without any answer; then the stream ends with DEADLINE_EXCEEDED. Costs about
// a microsecond of CPU for an operation, of 64 B, here.
class TIMECACHED_EXPORT Pipeline {
 public:
  using Done = std::function<void(const OperationResult& result)>;

  // On the client's namespace. Begins the stream; that there is no server is
  // told to the first operations.
  explicit Pipeline(const Client& client, const PipelineOptions& options = {});
  // Closes it. No other call may be under way, and none come from a callback.
  ~Pipeline();

  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Takes an operation; waits for room. On an error it was not taken, and
  // `done` is not called: INVALID_ARGUMENT (larger than kMaxRequestBytes: the
  // pipeline goes on), FAILED_PRECONDITION (after Close), or why the stream has
  // ended.
  absl::Status Add(Operation operation, Done done);

  // The same, but does not wait: false if there is no room now. What was not
  // taken stays as it was.
  absl::StatusOr<bool> TryAdd(Operation&& operation, Done&& done);

  // Sends what has been added.
  void Flush();

  // Sends what has been added, and waits until all of it was told. Returns why
  // the stream has ended, if it has.
  absl::Status Wait();

  // Ends the stream in good order: takes no more, waits as Wait does, and for
  // the server's word. Returns how it ended: OK if each operation was answered.
  // May be called again.
  absl::Status Close();

  // Ends the stream at once: what is in flight is told CANCELLED. Does not
  // wait.
  void Cancel();

  // Why the stream has ended; OK while it has not, or if it ended by Close.
  absl::Status status() const;

 private:
  class Stream;

  std::unique_ptr<Stream> stream_;  // Never null.
};

}  // namespace timecache
