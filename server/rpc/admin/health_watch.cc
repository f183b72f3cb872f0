#include "server/rpc/admin/health_watch.h"

#include <utility>

#include "server/api/status.h"
#include "server/rpc/admin/health_service.h"
#include "server/rpc/call/request.h"

namespace timecache::server {

using grpc::health::v1::HealthCheckResponse;

HealthWatch* HealthWatch::Start(std::shared_ptr<HealthWatch> watch) {
  HealthWatch* const kept = Keep(std::move(watch));
  const absl::Status status = kept->service_->Add(kept->self(), kept->from_);
  if (!status.ok()) kept->End(status, /*wait=*/true);
  return kept;
}

HealthWatch* HealthWatch::Refuse(std::shared_ptr<HealthWatch> watch,
                                 const absl::Status& status) {
  HealthWatch* const kept = Keep(std::move(watch));
  kept->End(status, /*wait=*/true);
  return kept;
}

void HealthWatch::Send(bool serving) {
  absl::MutexLock lock(&mu_);
  due_ = !known_   ? HealthCheckResponse::SERVICE_UNKNOWN
         : serving ? HealthCheckResponse::SERVING
                   : HealthCheckResponse::NOT_SERVING;
  Continue();
}

void HealthWatch::End(const absl::Status& status, bool wait) {
  absl::MutexLock lock(&mu_);
  if (!end_.has_value()) end_ = status;
  if (writing_ && !wait) context_->TryCancel();
  Continue();
}

void HealthWatch::Continue() {
  if (writing_ || ended()) return;
  if (end_.has_value()) {
    Finish(ToGrpcStatus(*end_));
    return;
  }
  if (due_ == told_) return;
  told_ = due_;
  HealthCheckResponse response;
  response.set_status(*due_);
  message_ = ToBytes(response);
  writing_ = true;
  StartWrite(&message_);
}

void HealthWatch::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  if (!ok && !end_.has_value()) {
    end_ = absl::CancelledError("the client is gone");
  }
  Continue();
}

void HealthWatch::OnCancel() {
  End(absl::CancelledError("the client is gone"), /*wait=*/true);
}

void HealthWatch::Leave() { service_->Remove(this, from_); }

}  // namespace timecache::server
