// The watches of FakeService: all three kinds say what they were told to say.
#include <utility>

#include "tests/client/fake_service.h"

namespace timecache {
namespace {

// As much of the message as there is in one of this kind.
template <typename Response>
Response As(const v1::WatchExpiredResponse& message) {
  Response response;
  response.set_namespace_(message.namespace_());
  *response.mutable_events() = message.events();
  *response.mutable_watermark() = message.watermark();
  if constexpr (requires { response.lost(); }) {
    response.set_lost(message.lost());
  }
  if constexpr (requires { response.resume_token(); }) {
    response.set_resume_token(message.resume_token());
  }
  return response;
}

}  // namespace

void FakeService::AddWatch(WatchScript script) {
  absl::MutexLock lock(&mu_);
  watches_.push_back(std::move(script));
}

std::vector<v1::WatchExpiredRequest> FakeService::watch_requests() const {
  absl::MutexLock lock(&mu_);
  return watch_requests_;
}

std::vector<v1::ConsumeExpiredRequest> FakeService::consume_requests() const {
  absl::MutexLock lock(&mu_);
  return consume_requests_;
}

std::vector<v1::WatchExpiringRequest> FakeService::expiring_requests() const {
  absl::MutexLock lock(&mu_);
  return expiring_requests_;
}

template <typename Request, typename Response>
grpc::Status FakeService::PlayWatch(grpc::ServerContext* context,
                                    const Request& request,
                                    std::vector<Request> FakeService::*requests,
                                    grpc::ServerWriter<Response>* writer) {
  WatchScript script;
  {
    absl::MutexLock lock(&mu_);
    (this->*requests).push_back(request);
    if (watches_.empty()) return NamespaceNotFound(request.namespaces(0));
    script = std::move(watches_.front());
    watches_.erase(watches_.begin());
  }
  for (size_t i = 0; i < script.messages.size(); ++i) {
    if (script.before) script.before(i);
    writer->Write(As<Response>(script.messages[i]));
  }
  if (script.before) script.before(script.messages.size());
  absl::MutexLock lock(&mu_);
  AwaitLeave(*context, script.hang);
  return script.end;
}

grpc::Status FakeService::WatchExpired(
    grpc::ServerContext* context, const v1::WatchExpiredRequest* request,
    grpc::ServerWriter<v1::WatchExpiredResponse>* writer) {
  return PlayWatch(context, *request, &FakeService::watch_requests_, writer);
}

grpc::Status FakeService::ConsumeExpired(
    grpc::ServerContext* context, const v1::ConsumeExpiredRequest* request,
    grpc::ServerWriter<v1::ConsumeExpiredResponse>* writer) {
  return PlayWatch(context, *request, &FakeService::consume_requests_, writer);
}

grpc::Status FakeService::WatchExpiring(
    grpc::ServerContext* context, const v1::WatchExpiringRequest* request,
    grpc::ServerWriter<v1::WatchExpiringResponse>* writer) {
  return PlayWatch(context, *request, &FakeService::expiring_requests_, writer);
}

}  // namespace timecache
