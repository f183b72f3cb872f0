// One Scan call.

#ifndef TIMECACHED_SERVER_RPC_DATA_SCAN_STREAM_H_
#define TIMECACHED_SERVER_RPC_DATA_SCAN_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/edge/response/open_streams.h"
#include "server/edge/response/response_account.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/call/message_limit.h"
#include "server/rpc/call/stream_reactor.h"
#include "server/rpc/data/scan_token.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {

// Walks the store a step at a time, in turns with other scans, and writes
// pages, one in flight, each with the position behind it. It lasts as long as
// the client reads, and holds at most one step's entries; a step waits while
// its connection has no room for a page. A client that does not read a page
// for the longest duration of a call gets DEADLINE_EXCEEDED, past what it has
// not read. Lives until OnDone.
class ScanStream final
    : public CallStream<ScanStream, grpc::ServerWriteReactor<grpc::ByteBuffer>>,
      public Drainable,
      public FairExecutor::Task {
 public:
  static constexpr size_t kMaxPageEntries = 1000;
  // A larger entry has a page of its own.
  static constexpr size_t kMaxPageBytes = size_t{1} << 20;
  // The bytes that a small page counts: it holds its call.
  static constexpr int64_t kMinPageCost = ResponseAccount::kCallBytes;

  // Starts a stream, which lives until its call is done. None is owned; all
  // must outlive it.
  static ScanStream* Start(const CallGate& gate,
                           grpc::CallbackServerContext* context, Store* store,
                           OpenStreams* streams, FairExecutor* executor,
                           const ScanTokens* tokens,
                           absl::Duration max_duration,
                           const grpc::ByteBuffer& request);

  bool TakeTurn() override ABSL_LOCKS_EXCLUDED(mu_);

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  // It has an end, and is waited for.
  bool OnDrain() override { return true; }
  // It checks before each step and each page.
  void OnAccessChanged() override {}

 private:
  ScanStream(const CallGate& gate, grpc::CallbackServerContext* context,
             Store* store, OpenStreams* streams, FairExecutor* executor,
             const ScanTokens* tokens, absl::Duration max_duration)
      : CallStream(gate, methods::kScan, context),
        ready_(gate.AccountOf(context->peer())),
        store_(store),
        streams_(streams),
        executor_(executor),
        tokens_(*tokens),
        max_duration_(max_duration) {}

  void Leave() override;
  absl::Status Authorize() override;
  absl::Status Open(const grpc::ByteBuffer& request);
  void BeginWrite() ABSL_LOCKS_EXCLUDED(mu_);
  void EndWrite() ABSL_LOCKS_EXCLUDED(mu_);
  void OnTimer(uint64_t write) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status TooSlow() const;
  void Continue();
  bool HasRoom();
  void Step();
  void TakePage();
  void Add(const ScannedEntry& entry);

  // An entry as a page has it, and the position behind it.
  struct Found {
    absl::string_view bytes() const {
      return {buffer.get() + begin, size - begin};
    }
    int64_t Cost() const { return static_cast<int64_t>(size + sizeof(*this)); }

    std::unique_ptr<char[]> buffer;
    size_t begin;
    size_t size;
    ScanPosition next;
  };

  // Of what is in found_.
  ResponseCharge ready_;
  int64_t found_bytes_ = 0;
  Store* const store_;
  OpenStreams* const streams_;
  FairExecutor* const executor_;
  const ScanTokens& tokens_;
  const absl::Duration max_duration_;
  v1::ScanRequest request_;
  size_t max_message_bytes_ = kDefaultMaxMessageBytes;
  ScanPosition position_;
  bool more_ = true;
  absl::Status status_;
  // Not written yet.
  std::deque<Found> found_;
  grpc::ByteBuffer page_;

  // A step's completion may run before or after the call that started it
  // returns.
  enum StepState { kBegun, kReturned, kCompleted };
  std::atomic<StepState> step_{kBegun};

  // Of the write in progress.
  std::unique_ptr<grpc::Alarm> timer_ ABSL_GUARDED_BY(mu_);
  uint64_t writes_ ABSL_GUARDED_BY(mu_) = 0;
  bool too_slow_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_SCAN_STREAM_H_
