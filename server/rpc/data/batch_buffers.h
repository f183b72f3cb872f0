// The memory of a batch that runs.

#ifndef TIMECACHED_SERVER_RPC_DATA_BATCH_BUFFERS_H_
#define TIMECACHED_SERVER_RPC_DATA_BATCH_BUFFERS_H_

#include <memory>
#include <vector>

#include "server/engine/store/operation.h"
#include "server/rpc/data/batch_request.h"

namespace timecache::server {

// A request and its results. Batches use the same memory one after the other,
// and streams that wait for a request hold none: each thread keeps the buffers
// of the last batch that ended on it for the next one that begins there, up to
// some 4 MiB after 4096 operations.
struct BatchBuffers {
  // Results keep the memory of values up to this.
  static constexpr size_t kMaxKeptValueBytes = 512;

  BatchRequest request;
  std::vector<Result> results;

  // This thread's, or new ones.
  static std::unique_ptr<BatchBuffers> Take();
  // The batch has been answered: frees its request and its results.
  static void Give(std::unique_ptr<BatchBuffers> buffers);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_BATCH_BUFFERS_H_
