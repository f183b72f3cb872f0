#include "server/rpc/admin/health_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/status.h"
#include "server/base/error.h"
#include "server/edge/response/open_streams.h"
#include "server/rpc/call/request.h"
#include "server/rpc/call/stream_reactor.h"

namespace timecache::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

using ServingStatus = HealthCheckResponse::ServingStatus;

ServingStatus StatusOf(bool serving) {
  return serving ? HealthCheckResponse::SERVING
                 : HealthCheckResponse::NOT_SERVING;
}

absl::Status Read(const grpc::ByteBuffer& bytes, HealthCheckRequest* request) {
  const size_t size = bytes.Valid() ? bytes.Length() : 0;
  if (size > HealthService::kMaxRequestBytes) {
    return ErrorWithReason(
        absl::StatusCode::kInvalidArgument, Reason::kRequestTooLarge,
        absl::StrCat("a request has at most ", HealthService::kMaxRequestBytes,
                     " bytes, not ", size));
  }
  return ParseRequest(bytes, request);
}

}  // namespace

// Sends the status, and each one after it; of those that arrive while one is
// being sent, only the last. Thread-safe. Lives until OnDone.
class HealthService::WatchReactor final
    : public StreamReactor<WatchReactor,
                           grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  // `account` is its connection's. `known`: whether there is such a service;
  // otherwise the client receives only SERVICE_UNKNOWN.
  WatchReactor(HealthService* service, grpc::CallbackServerContext* context,
               ResponseAccountRef account, bool known)
      : StreamReactor(context),
        service_(service),
        account_(std::move(account)),
        known_(known) {
    account_->BeginCall();
  }
  ~WatchReactor() override { account_->EndCall(/*answered=*/false); }

  // Ends at once if `status` is an error.
  static WatchReactor* Start(std::shared_ptr<WatchReactor> watch,
                             absl::Status status) {
    WatchReactor* const kept = Keep(std::move(watch));
    if (status.ok()) status = kept->service_->Add(kept->self());
    if (!status.ok()) kept->End(status, /*wait=*/true);
    return kept;
  }

  void Send(bool serving) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    due_ = known_ ? StatusOf(serving) : HealthCheckResponse::SERVICE_UNKNOWN;
    Continue();
  }

  // Ends after the message in flight, or without waiting for a client that does
  // not read it.
  void End(const absl::Status& status, bool wait) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (!end_.has_value()) end_ = status;
    if (writing_ && !wait) context_->TryCancel();
    Continue();
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    if (!ok && !end_.has_value()) end_ = Gone();
    Continue();
  }
  void OnCancel() override { End(Gone(), /*wait=*/true); }

 private:
  static absl::Status Gone() {
    return absl::CancelledError("the client is gone");
  }
  void Leave() override { service_->Remove(this); }

  // Writes the due status, or ends.
  void Continue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || ended()) return;
    if (end_.has_value()) return Finish(ToGrpcStatus(*end_));
    if (due_ == sent_) return;
    sent_ = due_;
    HealthCheckResponse response;
    response.set_status(*due_);
    message_ = ToBytes(response);
    writing_ = true;
    StartWrite(&message_);
  }

  HealthService* const service_;
  const ResponseAccountRef account_;
  const bool known_;

  std::optional<ServingStatus> due_ ABSL_GUARDED_BY(mu_);
  std::optional<ServingStatus> sent_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
};

HealthService::HealthService(PeerGuard* guard, ResponseLedger* ledger,
                             CountedCalls* counted)
    : RawService(counted), guard_(guard), ledger_(ledger) {
  Serve<UnaryHandler>(
      "grpc.health.v1.Health.Check",
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerCheck(context, request, response);
      });
  Serve<WriteHandler>("grpc.health.v1.Health.Watch",
                      [this](Context* context, const Bytes* request) {
                        HealthCheckRequest from;
                        absl::Status status = Admit(*context);
                        if (status.ok()) status = Read(*request, &from);
                        return WatchReactor::Start(
                            std::make_shared<WatchReactor>(
                                this, context, ledger_->Find(context->peer()),
                                from.service().empty()),
                            std::move(status));
                      });
}

absl::Status HealthService::Admit(
    const grpc::CallbackServerContext& context) const {
  if (guard_->IsGone(context)) return PeerGuard::GoneError();
  guard_->CountAnonymous(context);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* HealthService::AnswerCheck(Context* context,
                                                     const Bytes* request,
                                                     Bytes* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  CountedCall* const counted = CountedCall::Of(context);
  counted->Begin(*context);
  HealthCheckRequest from;
  absl::Status status = Admit(*context);
  if (status.ok()) status = Read(*request, &from);
  if (status.ok() && !from.service().empty()) {
    status =
        ErrorWithReason(absl::StatusCode::kNotFound, Reason::kUnknownService,
                        "health is that of the whole server: ask for service "
                        "\"\"");
  }
  if (status.ok()) {
    HealthCheckResponse to;
    {
      absl::MutexLock lock(&mu_);
      to.set_status(StatusOf(serving_));
    }
    *response = ToBytes(to);
  }
  counted->Answer();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

absl::Status HealthService::Add(const std::shared_ptr<WatchReactor>& watch) {
  absl::MutexLock lock(&mu_);
  if (ended_) return OpenStreams::DrainingError();
  watches_.emplace(watch.get(), watch);
  // Under the lock: a later change is sent after it.
  watch->Send(serving_);
  return absl::OkStatus();
}

void HealthService::Remove(const WatchReactor* watch) {
  // Not destroyed under the lock.
  std::shared_ptr<WatchReactor> last;
  absl::MutexLock lock(&mu_);
  const auto it = watches_.find(watch);
  if (it == watches_.end()) return;
  last = std::move(it->second);
  watches_.erase(it);
}

void HealthService::SetServing(bool serving) {
  absl::MutexLock lock(&mu_);
  serving_ = serving;
  for (const auto& [key, watch] : watches_) watch->Send(serving);
}

void HealthService::EndWatches() {
  std::vector<std::shared_ptr<WatchReactor>> watches;
  {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    for (const auto& [key, watch] : watches_) watches.push_back(watch);
  }
  for (const auto& watch : watches) {
    watch->End(OpenStreams::DrainingError(), /*wait=*/false);
  }
}

}  // namespace timecache::server
