// Decodes, executes and answers an ExecuteRequest.

#ifndef TIMECACHED_SERVER_RPC_DATA_BATCH_H_
#define TIMECACHED_SERVER_RPC_DATA_BATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/edge/response/response_account.h"
#include "server/engine/store/operation.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/call.h"
#include "server/rpc/call/call_tails.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/data/batch_buffers.h"

namespace timecache::server {

// Runs one request at a time, and holds memory only meanwhile. Not thread-safe.
class Batch {
 public:
  using Done =
      absl::AnyInvocable<void(const absl::Status&, const grpc::ByteBuffer&)>;

  // What batches work with. Not owned.
  struct Parts {
    Store* store;
    FairExecutor* executor;
    // Null: nobody may read a sample of the operations.
    CallTails* tails = nullptr;
  };

  // Runs an ExecuteRequest with the permissions of `call`'s caller: a denied
  // operation fails alone. It starts once `account` has room for the response,
  // unless that is null. Both must live until `done` is called. `done` gets the
  // ExecuteResponse, or the error that prevented all operations; the store
  // decides on which thread, and whether before this returns. `done` may use
  // the batch again, or destroy it.
  //
  // Long work is done in turns with other namespaces' on the executor's thread.
  // A call that is cancelled ends after a turn, with the operations that it has
  // done.
  void Run(Call* call, const Parts& parts, const grpc::ByteBuffer& request,
           ResponseAccount* account, Done done);

  // The bytes that a small response counts in the account, see ResponseAccount.
  // For responses that no call counts: not those of unary calls.
  void set_small_bytes(int64_t bytes) { small_bytes_ = bytes; }

  // As a Pipeline has them: an error of an independent request becomes that of
  // each of its operations, which are reported as calls of their own.
  void set_answers_independent(bool answers) { answers_independent_ = answers; }
  // Whether the last request was so.
  bool ran_independent() const { return ran_independent_; }
  // Called, unless null, where `done` has to wait for what is applied to be
  // stored: from here on the call may run another batch. Never once `done` is
  // called, and on the thread of Run or the executor's.
  void set_on_applied(std::function<void()> on_applied) {
    on_applied_ = std::move(on_applied);
  }

 private:
  void Deny(Verbs has, Call* call);
  void Execute();
  void ExecuteAtomic();
  void EndTurn(const absl::Status& status);
  void Finish(absl::Status status);
  grpc::ByteBuffer Answer();

  // Of the request that runs.
  Call* call_ = nullptr;
  Parts parts_ = {};
  ResponseAccount* account_ = nullptr;
  int64_t small_bytes_ = 0;
  bool answers_independent_ = false;
  bool ran_independent_ = false;
  std::function<void()> on_applied_;
  int64_t began_ns_ = 0;
  std::unique_ptr<BatchBuffers<BatchRequest>> buffers_;
  BatchProgress progress_;
  Done done_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_BATCH_H_
