// The data calls without a thread that waits for each.
//
//   const timecache::AsyncClient async(client);
//   async.Get("session:7", [](absl::StatusOr<std::optional<timecache::Entry>>
//                                 entry) { ... });

#ifndef TIMECACHE_ASYNC_CLIENT_H_
#define TIMECACHE_ASYNC_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "timecache/batch.h"
#include "timecache/call_options.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/operation.h"
#include "timecache/types.h"

namespace timecache {

// Each call returns at once, and passes the result of the Client's call of the
// same name to `done`, exactly once, on a thread of the client's or gRPC's or, if
// the call cannot start, before it returns. `done` must be quick and must not
// block: with ClientOptions::batching one thread runs them all, and what they
// begin goes together.
//
// Thread-safe. Shares the client's connection. Calls are not ordered: a caller
// that needs the effect of another call waits for its response. The client's
// RetryPolicy applies, too; but these calls do not wait for a connection, and
// one that starts without a connection is retried only if a server refused it.
// Holds a request until its response arrives, and does not bound the number of
// calls: for many operations timecache/pipeline.h does, and is faster.
class TIMECACHED_EXPORT AsyncClient {
 public:
  template <typename Result>
  using Done = std::function<void(absl::StatusOr<Result> result)>;

  // Calls the client's server, in the client's namespace.
  explicit AsyncClient(const Client& client);
  // Waits for the end of all calls, with their attempts, which their timeouts
  // bound. Not from `done`.
  ~AsyncClient();

  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  void Put(std::string_view key, std::string_view value, Done<PutResult> done,
           const PutOptions& options = {}, const CallOptions& call = {}) const;
  void Get(std::string_view key, Done<std::optional<Entry>> done,
           const GetOptions& options = {}, const CallOptions& call = {}) const;
  void Remove(std::string_view key, Done<RemoveResult> done,
              const RemoveOptions& options = {},
              const CallOptions& call = {}) const;
  void Contains(std::string_view key, Done<bool> done,
                const ContainsOptions& options = {},
                const CallOptions& call = {}) const;
  void Size(Done<SizeResult> done, const CallOptions& call = {}) const;
  void Touch(std::string_view key, Done<std::optional<uint64_t>> done,
             const TouchOptions& options = {},
             const CallOptions& call = {}) const;
  void Append(std::string_view key, std::string_view value,
              Done<AppendResult> done, const AppendOptions& options = {},
              const CallOptions& call = {}) const;
  void Combine(std::string_view key, Combination combination, int64_t operand,
               Done<CombineResult> done, const CombineOptions& options = {},
               const CallOptions& call = {}) const;
  void Gather(std::string_view key, std::string_view part,
              std::string_view value, Done<GatherResult> done,
              const GatherOptions& options, const CallOptions& call = {}) const;
  void Execute(const Batch& batch, Done<std::vector<OperationResult>> done,
               const CallOptions& call = {}) const;

 private:
  class State;

  const std::unique_ptr<State> state_;  // Never null.
};

}  // namespace timecache

#endif  // TIMECACHE_ASYNC_CLIENT_H_
