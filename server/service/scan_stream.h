// One Scan call.

#ifndef TIMECACHED_SERVER_SERVICE_SCAN_STREAM_H_
#define TIMECACHED_SERVER_SERVICE_SCAN_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "server/engine/store.h"
#include "timecache/v1/timecache.pb.h"

namespace timecache {

// Walks the store a step at a time and writes pages, one in flight: a slow
// reader is waited for, and holds no more than one step's entries. Deletes
// itself when done.
class ScanStream final : public grpc::ServerWriteReactor<v1::ScanResponse> {
 public:
  static constexpr int kMaxPageEntries = 1000;
  static constexpr int64_t kMaxPageBytes = int64_t{1} << 20;

  // `store` is not owned and must outlive the call.
  ScanStream(grpc::CallbackServerContext* context, Store* store,
             const v1::ScanRequest& request);

  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  void Continue();
  bool Step();
  void TakePage();

  grpc::CallbackServerContext* const context_;
  Store* const store_;
  const v1::ScanRequest request_;
  TimeCacheMap::ScanPlace place_;
  bool more_ = true;
  absl::Status status_;
  // Found, but not written yet.
  std::deque<v1::Entry> found_;
  v1::ScanResponse page_;

  // A step's completion may come before or after the call that began it
  // returns.
  enum StepState { kBegun, kReturned, kCompleted };
  std::atomic<StepState> step_{kBegun};
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_SCAN_STREAM_H_
