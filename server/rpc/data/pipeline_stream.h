// One Pipeline call.

#ifndef TIMECACHED_SERVER_RPC_DATA_PIPELINE_STREAM_H_
#define TIMECACHED_SERVER_RPC_DATA_PIPELINE_STREAM_H_

#include <cstddef>
#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/edge/response/open_streams.h"
#include "server/rpc/call/stream_reactor.h"
#include "server/rpc/data/batch.h"

namespace timecache::server {

// Reads a request, runs it, reads the next: one at a time, so that they apply
// in order. Answers wait for the one write in flight; while kMaxAnswers or
// kMaxAnswerBytes of them wait no request is read, and HTTP/2's flow control
// stops the client. A request waits while its connection has no room for an
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
  // The bytes that a small answer counts.
  static constexpr int64_t kMinAnswerCost = ResponseAccount::kMinCountedBytes;

  // Starts a stream, which lives until its call is done. None is owned; all
  // must outlive it.
  static PipelineStream* Start(const CallGate& gate,
                               grpc::CallbackServerContext* context,
                               const Batch::Parts& parts, OpenStreams* streams);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnDrain() override ABSL_LOCKS_EXCLUDED(mu_);
  // Ends if its caller is no longer known, or has lost every permission in the
  // namespace of the last batch; otherwise it continues, and the next batch is
  // checked like any other.
  void OnAccessChanged() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PipelineStream(const CallGate& gate, grpc::CallbackServerContext* context,
                 const Batch::Parts& parts, OpenStreams* streams)
      : CallStream(gate, methods::kPipeline, context),
        parts_(parts),
        streams_(streams) {
    batch_.set_small_bytes(kMinAnswerCost);
  }

  void Leave() override { streams_->Remove(this); }
  absl::Status Authorize() override;
  void OnExecuted(const absl::Status& status, const grpc::ByteBuffer& answer)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndWithoutAccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Batch::Parts parts_;
  OpenStreams* const streams_;

  // Used by the one read or run in flight.
  grpc::ByteBuffer request_;
  // Has call_ while it runs.
  Batch batch_;

  // The front one is being written while writing_.
  std::deque<grpc::ByteBuffer> answers_ ABSL_GUARDED_BY(mu_);
  size_t answer_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  enum class Input { kIdle, kReading, kRunning };
  Input input_ ABSL_GUARDED_BY(mu_) = Input::kIdle;
  // Set once no more is read or run: the status of the stream after its
  // answers.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_PIPELINE_STREAM_H_
