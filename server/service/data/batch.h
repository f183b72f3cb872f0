// One ExecuteRequest on its way: decoded, executed, answered.

#ifndef TIMECACHED_SERVER_SERVICE_DATA_BATCH_H_
#define TIMECACHED_SERVER_SERVICE_DATA_BATCH_H_

#include <grpcpp/support/byte_buffer.h>

#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/engine/map/operation.h"
#include "server/engine/store.h"
#include "server/service/call/call.h"
#include "server/service/data/batch_request.h"
#include "server/service/response/response_account.h"

namespace timecache::server {

// The memory of one request after the other: a stream that uses one Batch for
// all of them allocates no more than their answers.
//
// Not thread-safe; runs one request at a time.
class Batch {
 public:
  using Done = absl::AnyInvocable<void(absl::Status, grpc::ByteBuffer)>;

  // Runs an ExecuteRequest, as far as `call`'s caller may: an operation that it
  // may not do fails alone. It begins once `account` has room for the answer,
  // unless that is null. Both must live until `done` is called. `done`
  // gets its ExecuteResponse, or why none of its operations was tried; on which
  // thread, and whether before this returns, is the store's to say. The batch
  // may be used again, and destroyed, from there.
  void Run(Call* call, Store* store, const grpc::ByteBuffer& request,
           ResponseAccount* account, Done done);

  // As what a small answer counts in the account, see ResponseAccount. For
  // those that no call counts: not of unary calls.
  void set_small_bytes(int64_t bytes) { small_bytes_ = bytes; }

 private:
  void Deny(Verbs has, Call* call);
  void Execute();
  void Finish(absl::Status status);

  // Of the request that runs.
  Call* call_ = nullptr;
  Store* store_ = nullptr;
  ResponseAccount* account_ = nullptr;
  int64_t small_bytes_ = 0;
  BatchRequest request_;
  std::vector<Result> results_;
  Done done_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_DATA_BATCH_H_
