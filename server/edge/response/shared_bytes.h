// Bytes that the messages of several streams refer to.

#ifndef TIMECACHED_SERVER_EDGE_RESPONSE_SHARED_BYTES_H_
#define TIMECACHED_SERVER_EDGE_RESPONSE_SHARED_BYTES_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/slice.h"
#include "server/edge/response/response_account.h"

namespace timecache::server {

// Counted once, however many messages refer to them: in the account of the
// oldest reference, and when gRPC has freed that, in the account of the next.
// So a client is charged neither for bytes that another one holds nor for bytes
// that no client holds.
//
// Thread-safe. A reference costs two allocations and a lock.
class SharedBytes {
 public:
  // `bytes` lie in `owner`, and cost `cost_bytes`.
  SharedBytes(std::shared_ptr<const void> owner, absl::string_view bytes,
              int64_t cost_bytes)
      : owner_(std::move(owner)), bytes_(bytes), cost_bytes_(cost_bytes) {}
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  // A slice of all of `shared`, which it keeps. `account` may be null. Its
  // reader has no time limit.
  static grpc::Slice Share(std::shared_ptr<SharedBytes> shared,
                           ResponseAccount* account);

 private:
  class Reference;
  using Holders = std::list<ResponseAccountRef>;

  Holders::iterator Add(ResponseAccountRef holder) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(Holders::iterator holder) ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<const void> owner_;
  const absl::string_view bytes_;
  const int64_t cost_bytes_;

  // gRPC takes it under its own locks; before ResponseAccount::mu_.
  absl::Mutex mu_;
  // Of each reference, the oldest first, and what that one counts.
  Holders holders_ ABSL_GUARDED_BY(mu_);
  std::optional<HeldResponse> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_RESPONSE_SHARED_BYTES_H_
