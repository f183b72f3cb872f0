// What observers learn of one of a stream's batches.

#ifndef TIMECACHED_SERVER_RPC_DATA_BATCH_DETAILS_H_
#define TIMECACHED_SERVER_RPC_DATA_BATCH_DETAILS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/api/call_observer.h"
#include "server/rpc/call/call.h"
#include "server/rpc/data/batch_request.h"

namespace timecache::server {

// The details of a batch, or of one of its operations: those of its call may be
// of a later batch by now. Refers to its arguments. Thread-compatible.
class BatchDetails final : public CallDetails {
 public:
  // `ids`: null, or what an operation says of its call.
  BatchDetails(const Call& call, absl::string_view name, uint64_t operations,
               const BatchRequest::CallIds* ids = nullptr)
      : call_(call), name_(name), operations_(operations), ids_(ids) {}

  std::string RequestId() const override {
    return ids_ != nullptr && IsRequestId(ids_->request_id)
               ? std::string(ids_->request_id)
               : call_.RequestId();
  }
  std::string TraceParent() const override {
    return ids_ != nullptr && IsTraceParent(ids_->traceparent)
               ? std::string(ids_->traceparent)
               : call_.TraceParent();
  }
  std::string Peer() const override { return call_.Peer(); }
  std::string Principal() const override { return call_.Principal(); }
  absl::string_view Namespace() const override { return Call::Shown(name_); }
  uint64_t Operations() const override { return operations_; }

 private:
  const Call& call_;
  const absl::string_view name_;
  const uint64_t operations_;
  const BatchRequest::CallIds* const ids_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_BATCH_DETAILS_H_
