#include "server/service/admin/reflection_service.h"

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/error.h"
#include "server/service/call/call.h"
#include "server/service/call/request.h"
#include "server/service/call/response_account.h"

namespace timecache::server {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;

// Reads a request, writes its answer, reads the next. Lives until OnDone.
class ReflectionStream final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public Drainable {
 public:
  ReflectionStream(const CallGate& gate, const Method& method,
                   grpc::CallbackServerContext* context, OpenStreams* streams,
                   const ReflectionIndex* index)
      : streams_(streams),
        index_(index),
        account_(gate.AccountOf(context->peer())),
        call_(gate, method, context) {}

  static ReflectionStream* Start(std::shared_ptr<ReflectionStream> stream) {
    stream->self_ = stream;
    absl::MutexLock lock(&stream->mu_);
    absl::Status status = stream->Authorize();
    if (status.ok()) status = stream->streams_->Add(stream);
    stream->Continue(std::move(status));
    return stream.get();
  }

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (ended_) return;
    if (!ok) {
      End(absl::OkStatus());
      return;
    }
    call_.CountReceived();
    if (request_.Length() > ReflectionService::kMaxRequestBytes) {
      End(ErrorWithReason(absl::StatusCode::kInvalidArgument,
                          Reason::kRequestTooLarge,
                          absl::StrCat("a request has at most ",
                                       ReflectionService::kMaxRequestBytes,
                                       " bytes, not ", request_.Length())));
      return;
    }
    ServerReflectionRequest request;
    if (absl::Status status = ParseRequest(request_, &request); !status.ok()) {
      End(status);
      return;
    }
    response_ = ToBytes(index_->Answer(request), account_.get());
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
    if (!ended_ && call_.stale()) EndSoon(Authorize());
  }

  void OnDone() override ABSL_LOCKS_EXCLUDED(mu_) {
    streams_->Remove(this);
    // Whoever ended the call may still hold the lock.
    { absl::MutexLock lock(&mu_); }
    self_.reset();
  }

 private:
  absl::Status Authorize() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    absl::Status status = call_.Renew();
    if (!status.ok()) return status;
    return call_.Authorize(config::v1::VERB_ADMIN, kWholeServer);
  }

  // Behind the answer that is in flight.
  void EndSoon(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (status.ok() || ended_) return;
    if (writing_) {
      end_.Update(status);
    } else {
      End(status);
    }
  }

  void Continue(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (ended_) return;
    if (status.ok() && call_.stale()) status = Authorize();
    if (status.ok()) {
      StartRead(&request_);
    } else {
      End(status);
    }
  }

  // A read that is in flight ends with the call.
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ended_ = true;
    Finish(call_.End(status));
  }

  OpenStreams* const streams_;
  const ReflectionIndex* const index_;
  const ResponseAccountRef account_;
  std::shared_ptr<ReflectionStream> self_;

  absl::Mutex mu_;
  Call call_ ABSL_GUARDED_BY(mu_);
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  // Why it ends behind the answer that is in flight.
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
