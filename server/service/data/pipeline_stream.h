// One Pipeline call.

#ifndef TIMECACHED_SERVER_SERVICE_DATA_PIPELINE_STREAM_H_
#define TIMECACHED_SERVER_SERVICE_DATA_PIPELINE_STREAM_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/engine/store.h"
#include "server/service/call/open_streams.h"
#include "server/service/call/stream_reactor.h"
#include "server/service/data/batch.h"

namespace timecache::server {

// Reads a request, runs it, reads the next: one at a time, so that they apply
// in order. Answers wait for the one write in flight; while kMaxAnswers or
// kMaxAnswerBytes of them wait nothing is read, and HTTP/2's flow control holds
// the client up. A request waits while its connection has no room for an
// answer.
//
// Thread-safe: gRPC calls it from several threads. Lives until OnDone.
class PipelineStream final
    : public CallStream<
          PipelineStream,
          grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>,
      public Drainable {
 public:
  static constexpr size_t kMaxAnswers = 16;
  static constexpr size_t kMaxAnswerBytes = size_t{8} << 20;
  // As what a small answer counts.
  static constexpr int64_t kMinAnswerCost = ResponseAccount::kMinCountedBytes;

  // Starts a stream, which lives until its call is done. None is owned; all
  // must outlive it.
  static PipelineStream* Start(const CallGate& gate,
                               grpc::CallbackServerContext* context,
                               Store* store, OpenStreams* streams);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnDrain() override ABSL_LOCKS_EXCLUDED(mu_);
  // Ends without a caller, or one that has lost every right in the namespace of
  // the last batch; else it goes on, and the next batch is checked as every
  // one.
  void OnAccessChanged() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PipelineStream(const CallGate& gate, grpc::CallbackServerContext* context,
                 Store* store, OpenStreams* streams)
      : CallStream(gate, methods::kPipeline, context),
        store_(store),
        streams_(streams) {
    batch_.set_small_bytes(kMinAnswerCost);
  }

  void Leave() override { streams_->Remove(this); }
  absl::Status Authorize() override;
  void OnExecuted(absl::Status status, grpc::ByteBuffer answer)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndWithoutAccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Store* const store_;
  OpenStreams* const streams_;

  // Used by the one read or run that is in flight.
  grpc::ByteBuffer request_;
  // Has call_ while it runs.
  Batch batch_;

  // The front one is being written while writing_.
  std::deque<grpc::ByteBuffer> answers_ ABSL_GUARDED_BY(mu_);
  size_t answer_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  enum class Input { kIdle, kReading, kRunning };
  Input input_ ABSL_GUARDED_BY(mu_) = Input::kIdle;
  // Nothing is read or run any more: behind its answers the stream ends so.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_DATA_PIPELINE_STREAM_H_
