#include "server/rpc/admin/reflection_service.h"

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"
#include "server/rpc/call/stream_reactor.h"

namespace timecache::server {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;

// Reads a request, writes its answer, reads the next. Lives until OnDone.
class ReflectionStream final
    : public CallStream<
          ReflectionStream,
          grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>,
      public Drainable {
 public:
  ReflectionStream(const CallGate& gate, const Method& method,
                   grpc::CallbackServerContext* context, OpenStreams* streams,
                   const ReflectionIndex* index)
      : CallStream(gate, method, context), streams_(streams), index_(index) {}

  static ReflectionStream* Start(std::shared_ptr<ReflectionStream> kept) {
    ReflectionStream* const stream = Keep(std::move(kept));
    absl::MutexLock lock(&stream->mu_);
    absl::Status status = stream->call_.Identify();
    if (status.ok()) status = stream->Authorize();
    if (status.ok()) status = stream->streams_->Add(stream->self());
    stream->Continue(std::move(status));
    return stream;
  }

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (ended()) return;
    if (!ok) return EndCall(absl::OkStatus());
    call_.CountReceived();
    if (request_.Length() > ReflectionService::kMaxRequestBytes) {
      return EndCall(ErrorWithReason(
          absl::StatusCode::kInvalidArgument, Reason::kRequestTooLarge,
          absl::StrCat("a request has at most ",
                       ReflectionService::kMaxRequestBytes, " bytes, not ",
                       request_.Length())));
    }
    ServerReflectionRequest request;
    if (absl::Status status = TakeRequest(request_, &request); !status.ok()) {
      return EndCall(status);
    }
    response_ = ToBytes(index_->Answer(request), account_.get(),
                        ResponseAccount::kCallBytes);
    writing_ = true;
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    response_.Clear();
    if (ok) call_.CountSent();
    if (!ok) end_.Update(absl::CancelledError("the client is gone"));
    Continue(end_);
  }

  void OnDrain() override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    EndSoon(OpenStreams::DrainingError());
  }

  void OnAccessChanged() override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (!ended()) EndSoon(CheckAccess());
  }

 private:
  void Leave() override { streams_->Remove(this); }
  absl::Status Authorize() override {
    return call_.Authorize(config::v1::VERB_ADMIN, kWholeServer);
  }

  // After the answer in flight.
  void EndSoon(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (status.ok() || ended()) return;
    if (writing_) {
      end_.Update(status);
    } else {
      EndCall(status);
    }
  }

  void Continue(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (ended()) return;
    if (status.ok()) status = CheckAccess();
    if (status.ok()) {
      StartRead(&request_);
    } else {
      EndCall(status);
    }
  }

  OpenStreams* const streams_;
  const ReflectionIndex* const index_;

  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // Why it ends after the answer in flight.
  absl::Status end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

ReflectionService::Stream* ReflectionService::Start(
    const CallGate& gate, const Method& method,
    grpc::CallbackServerContext* context, OpenStreams* streams,
    const ReflectionIndex* index) {
  return ReflectionStream::Start(std::make_shared<ReflectionStream>(
      gate, method, context, streams, index));
}

}  // namespace timecache::server
