#include "server/rpc/admin/health_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/status.h"
#include "server/base/error.h"
#include "server/edge/response/open_streams.h"
#include "server/rpc/admin/health_watch.h"
#include "server/rpc/call/request.h"

namespace timecache::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

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

absl::Status TooManyWatches(size_t max) {
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kMaxHealthWatches,
      absl::StrCat("there are at most ", max,
                   " watches of health: use Check, or try again later"),
      {{"max_health_watches", absl::StrCat(max)}});
}

}  // namespace

absl::Status HealthService::Admit(
    const grpc::CallbackServerContext& context) const {
  if (guard_ == nullptr) return absl::OkStatus();
  if (guard_->IsGone(context)) return PeerGuard::GoneError();
  guard_->CountAnonymous(context);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* HealthService::Check(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  CountedCall* const counted = CountedCall::Of(context);
  if (counted != nullptr) counted->Begin(*context);
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
      to.set_status(serving_ ? HealthCheckResponse::SERVING
                             : HealthCheckResponse::NOT_SERVING);
    }
    *response = ToBytes(to);
  }
  if (counted != nullptr) counted->Answer();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* HealthService::Watch(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  HealthCheckRequest from;
  absl::Status status = Admit(*context);
  if (status.ok()) status = Read(*request, &from);
  auto watch = std::make_shared<HealthWatch>(
      this, context,
      ledger_ == nullptr ? ResponseAccountRef()
                         : ledger_->Find(context->peer()),
      from.service().empty());
  return status.ok() ? HealthWatch::Start(std::move(watch))
                     : HealthWatch::Refuse(std::move(watch), status);
}

absl::Status HealthService::Add(const std::shared_ptr<HealthWatch>& watch,
                                const PeerAddress& from) {
  std::shared_ptr<HealthWatch> given_up;
  {
    absl::MutexLock lock(&mu_);
    if (ended_) return OpenStreams::DrainingError();
    if (count_ >= max_watches_) {
      ++refused_;
      given_up = TakeFromLargest(from);
      if (given_up == nullptr) return TooManyWatches(max_watches_);
    }
    watches_[from].push_back(watch);
    ++count_;
    // Under the lock: a later change is sent after it.
    watch->Send(serving_);
  }
  if (given_up != nullptr) {
    given_up->End(TooManyWatches(max_watches_), /*wait=*/false);
  }
  return absl::OkStatus();
}

std::shared_ptr<HealthWatch> HealthService::TakeFromLargest(
    const PeerAddress& from) {
  const auto largest = std::max_element(
      watches_.begin(), watches_.end(), [](const auto& a, const auto& b) {
        return a.second.size() < b.second.size();
      });
  const auto own = watches_.find(from);
  const size_t has = own == watches_.end() ? 0 : own->second.size();
  // This address would then have no more than its share.
  if (largest == watches_.end() || largest->second.size() <= has + 1) {
    return nullptr;
  }
  std::shared_ptr<HealthWatch> newest = std::move(largest->second.back());
  largest->second.pop_back();
  --count_;
  return newest;
}

void HealthService::Remove(const HealthWatch* watch, const PeerAddress& from) {
  // Not destroyed under the lock.
  std::shared_ptr<HealthWatch> last;
  absl::MutexLock lock(&mu_);
  const auto it = watches_.find(from);
  if (it == watches_.end()) return;
  Watches& own = it->second;
  const auto at =
      std::find_if(own.begin(), own.end(),
                   [watch](const auto& each) { return each.get() == watch; });
  if (at != own.end()) {
    last = std::move(*at);
    own.erase(at);
    --count_;
  }
  if (own.empty()) watches_.erase(it);
}

void HealthService::SetServing(bool serving) {
  absl::MutexLock lock(&mu_);
  serving_ = serving;
  for (const auto& watch : All()) watch->Send(serving);
}

void HealthService::EndWatches() {
  Watches watches;
  {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    watches = All();
  }
  for (const auto& watch : watches) {
    watch->End(OpenStreams::DrainingError(), /*wait=*/false);
  }
}

size_t HealthService::watches() const {
  absl::MutexLock lock(&mu_);
  return count_;
}

uint64_t HealthService::refused_watches() const {
  absl::MutexLock lock(&mu_);
  return refused_;
}

HealthService::Watches HealthService::All() const {
  Watches all;
  for (const auto& [from, watches] : watches_) {
    all.insert(all.end(), watches.begin(), watches.end());
  }
  return all;
}

}  // namespace timecache::server
