// One Scan call.

#ifndef TIMECACHED_SERVER_SERVICE_SCAN_STREAM_H_
#define TIMECACHED_SERVER_SERVICE_SCAN_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "server/engine/store.h"
#include "server/service/call.h"
#include "server/service/open_streams.h"
#include "timecache/v1/timecache.pb.h"

namespace timecache {

// Walks the store a step at a time and writes pages, one in flight: a slow
// reader is waited for, and holds no more than one step's entries. Lives until
// OnDone.
class ScanStream final : public grpc::ServerWriteReactor<v1::ScanResponse>,
                         public Drainable {
 public:
  static constexpr int kMaxPageEntries = 1000;
  static constexpr int64_t kMaxPageBytes = int64_t{1} << 20;

  // Starts a stream, which lives until its call is done. None is owned; all
  // must outlive it.
  static ScanStream* Start(const CallGate& gate,
                           grpc::CallbackServerContext* context, Store* store,
                           OpenStreams* streams,
                           const v1::ScanRequest& request);

  void OnWriteDone(bool ok) override;
  void OnDone() override;
  // It has an end, and is waited for.
  void OnDrain() override {}
  // It asks before each step and each page.
  void OnAccessChanged() override {}

 private:
  ScanStream(const CallGate& gate, grpc::CallbackServerContext* context,
             Store* store, OpenStreams* streams, const v1::ScanRequest& request)
      : call_(gate, methods::kScan, context),
        context_(context),
        store_(store),
        streams_(streams),
        request_(request) {}

  absl::Status Open();
  absl::Status CheckAccess();
  void Continue();
  bool Step();
  void TakePage();

  Call call_;
  grpc::CallbackServerContext* const context_;
  Store* const store_;
  OpenStreams* const streams_;
  const v1::ScanRequest request_;
  std::shared_ptr<ScanStream> self_;
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
