// One Pipeline call.

#ifndef TIMECACHED_SERVER_RPC_DATA_PIPELINE_STREAM_H_
#define TIMECACHED_SERVER_RPC_DATA_PIPELINE_STREAM_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/edge/response/open_streams.h"
#include "server/rpc/call/stream_reactor.h"
#include "server/rpc/data/batch.h"

namespace timecache::server {

// Reads a request, applies it, reads the next: one at a time, so that they apply
// in order. Where it then has to be stored, the next ones are applied meanwhile.
// Answers wait for those before them and for the one write in flight; while
// kMaxAnswers or kMaxAnswerBytes of them wait, or kMaxRunning requests, none is
// read, and HTTP/2's flow control stops the client. A request waits while its
// connection has no room for an answer.
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
  // Requests that are not answered: each holds some 4 MiB at most.
  static constexpr int kMaxRunning = 4;
  // The bytes that a small answer counts.
  static constexpr int64_t kMinAnswerCost = ResponseAccount::kMinCountedBytes;

  // Starts a stream, which lives until its call is done. None is owned; all
  // must outlive it. Once its connection is older than `max_connection_age`,
  // unless that is 0, the stream ends behind its next answer: gRPC would cut it
  // in the middle of a request.
  static PipelineStream* Start(const CallGate& gate,
                               grpc::CallbackServerContext* context,
                               const Batch::Parts& parts, OpenStreams* streams,
                               absl::Duration max_connection_age);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  bool OnDrain() override ABSL_LOCKS_EXCLUDED(mu_);
  // Ends if its caller is no longer known, or has lost every permission in the
  // namespace of the last batch, unless that was an independent one; otherwise it
  // continues, and the next batch is checked like any other.
  void OnAccessChanged() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PipelineStream(const CallGate& gate, grpc::CallbackServerContext* context,
                 const Batch::Parts& parts, OpenStreams* streams,
                 absl::Duration max_connection_age)
      : CallStream(gate, methods::kPipeline, context),
        parts_(parts),
        streams_(streams),
        max_connection_age_(max_connection_age) {}

  // Of one request; in the order of requests.
  struct Answer {
    // Null: it is ready.
    std::unique_ptr<Batch> batch;
    grpc::ByteBuffer bytes;
  };

  void Leave() override { streams_->Remove(this); }
  absl::Status Authorize() override;
  void Run(Answer* answer) ABSL_LOCKS_EXCLUDED(mu_);
  void OnApplied() ABSL_LOCKS_EXCLUDED(mu_);
  void OnExecuted(Answer* answer, const absl::Status& status,
                  const grpc::ByteBuffer& bytes) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsOld() const;
  std::unique_ptr<Batch> TakeBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Applied(const Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndWithoutAccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PopAnswer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Answer* Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Batch::Parts parts_;
  OpenStreams* const streams_;
  const absl::Duration max_connection_age_;

  // Used by the one read in flight, or by what is being applied, which has
  // call_, too.
  grpc::ByteBuffer request_;

  // The front one is being written while writing_; the back one is of the
  // request that is being applied.
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mu_);
  // Of those that are ready.
  size_t answer_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Those that are not. While there are any, the caller is not looked up again.
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  // The next request's; null: a new one.
  std::unique_ptr<Batch> spare_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // The client cannot read any more.
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
  // Whether the last request was independent. Under mu_, as call_ is in Authorize.
  bool independent_ = false;
  // Who makes plain calls waits for their answers.
  bool has_batches_ ABSL_GUARDED_BY(mu_) = false;
  // kHeld: there is a request, which is not begun.
  enum class Input { kIdle, kReading, kHeld, kApplying };
  Input input_ ABSL_GUARDED_BY(mu_) = Input::kIdle;
  // Set once no more is read or run: the status of the stream after its
  // answers.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_PIPELINE_STREAM_H_
