#include "client/cpp/src/shared/shared_calls.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "timecache/error_reason.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// As the server takes it.
constexpr size_t kRequestIdBytesMax = 128;

bool IsGraphic(std::string_view text) {
  return !text.empty() && text.size() <= kRequestIdBytesMax &&
         std::ranges::all_of(
             text, [](unsigned char c) { return absl::ascii_isgraph(c); });
}

}  // namespace

SharedCalls::~SharedCalls() {
  absl::MutexLock lock(&mu_);
  for (const auto& [ns, stream] : driven_) stream->Close();
}

bool SharedCalls::Takes(const ClientOptions& client, const CallOptions& call,
                        SharedCall& shared) {
  if (!client.batching || !call.batching) return false;
  shared.bytes = shared.operation->ByteSizeLong();
  if (shared.bytes > kSharedCallBytesMax) return false;
  for (const auto& [key, value] : call.metadata) {
    if (!IsGraphic(value)) return false;
    if (key == "x-request-id" && shared.operation->request_id().empty()) {
      shared.operation->set_request_id(value);
    } else if (key == "traceparent" &&
               shared.operation->traceparent().empty()) {
      shared.operation->set_traceparent(value);
    } else {
      return false;
    }
  }
  return true;
}

Attempted SharedCalls::AttemptOnce(const CallPlan& plan, const std::string& ns,
                                   SharedCall& shared, UnaryAttempt unary,
                                   bool& is_shared) {
  shared.deadline = plan.deadline();
  while (is_shared) {
    const std::shared_ptr<CallStream> stream = Find(ns, /*is_async=*/false);
    if (stream == nullptr) break;
    const bool connected =
        stream->IsOpen() ||
        endpoints_.current().connection.Await(plan.deadline());
    if (!stream->Run(shared, plan.call().cancellation)) break;
    if (shared.end == SharedCall::End::kAgain) continue;
    std::optional<absl::Status> status = Take(shared, plan);
    if (!status) break;
    return {*std::move(status), connected};
  }
  is_shared = false;
  return timecache::AttemptOnce(endpoints_, plan, unary);
}

std::optional<absl::Status> SharedCalls::Take(SharedCall& shared,
                                              const CallPlan& plan) {
  if (shared.end == SharedCall::End::kAnswered) {
    if (!shared.answer.has_error()) return absl::OkStatus();
    absl::Status error = FromRpcStatus(shared.answer.error());
    if (HasReason(error, ErrorReason::kMaxResponseBytes)) return std::nullopt;
    endpoints_.MoveOn(*shared.endpoint, error);
    return error;
  }
  const absl::Status& why = shared.status;
  if (absl::IsUnimplemented(why)) {
    is_off_.store(true, std::memory_order_relaxed);
    return std::nullopt;
  }
  if (IsMessageTooLarge(why)) {
    is_off_.store(true, std::memory_order_relaxed);
    if (plan.is_repeatable() || !MaybeApplied(why)) return std::nullopt;
  }
  return why;
}

std::shared_ptr<CallStream> SharedCalls::Find(const std::string& ns,
                                              bool is_async) {
  if (is_off_.load(std::memory_order_relaxed)) return nullptr;
  absl::MutexLock lock(&mu_);
  Streams& streams = is_async ? driven_ : blocking_;
  const auto found = streams.find(ns);
  if (found != streams.end()) return found->second;
  if (streams.size() >= kSharedStreamsMax && !Evict(streams)) return nullptr;
  CallDriver* const driver = is_async ? &driver_.Get() : nullptr;
  auto stream = std::make_shared<CallStream>(endpoints_, ns, driver);
  if (driver != nullptr) driver->Add(stream);
  streams.emplace(ns, stream);
  return stream;
}

bool SharedCalls::Evict(Streams& streams) {
  auto idle = streams.end();
  for (auto it = streams.begin(); it != streams.end(); ++it) {
    const auto& stream = it->second;
    if (stream.use_count() > 1 + stream->kept()) continue;
    if (idle == streams.end() || stream->used_at() < idle->second->used_at()) {
      idle = it;
    }
  }
  if (idle == streams.end()) return false;
  idle->second->Close();
  streams.erase(idle);
  return true;
}

}  // namespace timecache
