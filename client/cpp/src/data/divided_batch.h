// Batches that go to the owners of their keys. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_DATA_DIVIDED_BATCH_H_
#define TIMECACHED_CLIENT_CPP_SRC_DATA_DIVIDED_BATCH_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/src/owners/route.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "timecache/batch.h"
#include "timecache/operation.h"
#include "timecache/types.h"
#include "timecache/v1/data.pb.h"

namespace timecache {

// What goes to one node of a batch that goes to several.
struct BatchPart {
  Route route;
  v1::ExecuteRequest request;
  std::vector<size_t> places;  // Of its operations, in the batch.

  // Of its last attempt; not OK before it.
  absl::Status status = absl::UnknownError("not sent");
  bool maybe_applied = false;  // By an attempt before it.
  v1::ExecuteResponse response = {};
};

// Either `whole`, or at least two parts, which are copies.
struct BatchRoutes {
  Route whole;
  std::vector<BatchPart> parts = {};
};

// Where a batch is to go. Of an atomic one that is to its owner, if all keys are
// in one partition. The options outlive the routes.
BatchRoutes RoutesOf(Client::Core& core, const ClientOptions& options,
                     const Batch& batch);

// The results of a batch whose parts have been sent, in the order of the
// operations. Those of a part that failed have its status, but where all have
// failed, or one was cancelled, the batch has.
absl::StatusOr<std::vector<OperationResult>> JoinResults(
    std::vector<BatchPart>& parts);

// Sends all parts at the same time, and again those that may be, all within the
// retries of one call.
absl::StatusOr<std::vector<OperationResult>> ExecuteParts(
    Endpoints& home, const CallPlan& plan, std::vector<BatchPart>& parts);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_DATA_DIVIDED_BATCH_H_
