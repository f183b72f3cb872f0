// The memory of a batch that runs.

#ifndef TIMECACHED_SERVER_RPC_DATA_BATCH_BUFFERS_H_
#define TIMECACHED_SERVER_RPC_DATA_BATCH_BUFFERS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/store/operation.h"
#include "server/rpc/data/batch_request.h"

namespace timecache::server {

// A request, which is a BatchRequest or what another node sent in its place, and its
// results. Batches use the same memory one after the other, and streams that wait for a
// request hold none: each thread keeps the buffers of the batches that ended on it last
// for those that begin there, of up to 4096 operations together: some 4 MiB.
template <typename Request>
struct BatchBuffers {
  // Results keep the memory of values up to this.
  static constexpr size_t kMaxKeptValueBytes = 512;
  // Of a thread.
  static constexpr size_t kMaxKeptOperations = BatchRequest::kMaxOperations;
  static constexpr size_t kMaxKept = 64;

  Request request;
  std::vector<Result> results;

  // One of this thread's, or new ones.
  static std::unique_ptr<BatchBuffers> Take() {
    Kept& kept = OfThread();
    if (kept.all.empty()) return std::make_unique<BatchBuffers>();
    std::unique_ptr<BatchBuffers> taken = std::move(kept.all.back());
    kept.all.pop_back();
    kept.operations -= taken->results.size();
    return taken;
  }

  // The batch has been answered: frees its request and its results.
  static void Give(std::unique_ptr<BatchBuffers> buffers) {
    buffers->request.Clear();
    for (Result& result : buffers->results) {
      result.status = absl::OkStatus();
      std::string& value = result.entry.value;
      if (value.capacity() > kMaxKeptValueBytes) std::string().swap(value);
    }
    Kept& kept = OfThread();
    kept.operations += buffers->results.size();
    kept.all.push_back(std::move(buffers));
    // The first ones were not used for longest.
    size_t drop = 0;
    while (kept.operations > kMaxKeptOperations ||
           kept.all.size() - drop > kMaxKept) {
      kept.operations -= kept.all[drop++]->results.size();
    }
    kept.all.erase(kept.all.begin(),
                   kept.all.begin() + static_cast<ptrdiff_t>(drop));
  }

 private:
  struct Kept {
    std::vector<std::unique_ptr<BatchBuffers>> all;
    // That they have room for.
    size_t operations = 0;
  };
  static Kept& OfThread() {
    thread_local Kept kept;
    return kept;
  }
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_BATCH_BUFFERS_H_
