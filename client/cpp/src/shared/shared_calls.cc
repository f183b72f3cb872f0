#include "client/cpp/src/shared/shared_calls.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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

// Polls for all streams of calls that do not block.
class SharedCalls::Driver final : public StreamDriver {
 public:
  explicit Driver(SharedCalls& calls)
      : calls_(calls), thread_([this] { Run(); }) {}
  ~Driver() override {
    queue_.Shutdown();
    thread_.join();
  }

  grpc::CompletionQueue& queue() override { return queue_; }

  void ExpireAt(SteadyTime time) override {
    SteadyTime next = expire_at_.load();
    while (time < next) {
      if (!expire_at_.compare_exchange_weak(next, time)) continue;
      return QueueWake::Send(queue_);
    }
  }

 private:
  void Run() {
    void* tag = nullptr;
    bool ok = false;
    while (true) {
      const auto status =
          queue_.AsyncNext(&tag, &ok, ToGrpcDeadline(expire_at_.load()));
      if (status == grpc::CompletionQueue::SHUTDOWN) return;
      if (status == grpc::CompletionQueue::GOT_EVENT) {
        static_cast<QueueEvent*>(tag)->Happened(ok);
      }
      if (SteadyNow() >= expire_at_.load()) Expire();
    }
  }

  void Expire() {
    // What comes from here on wakes this thread.
    expire_at_.store(kSteadyNever);
    std::vector<std::shared_ptr<CallStream>> streams;
    {
      absl::MutexLock lock(&calls_.mu_);
      for (const auto& [ns, stream] : calls_.driven_) streams.push_back(stream);
    }
    SteadyTime next = kSteadyNever;
    for (const auto& stream : streams) next = std::min(next, stream->Expire());
    SteadyTime other = kSteadyNever;
    while (next < other && !expire_at_.compare_exchange_weak(other, next)) {
    }
  }

  SharedCalls& calls_;
  grpc::CompletionQueue queue_;
  std::atomic<SteadyTime> expire_at_{kSteadyNever};
  std::thread thread_;  // Last: it works with the rest.
};

SharedCalls::SharedCalls(Endpoints& endpoints) : endpoints_(endpoints) {}

SharedCalls::~SharedCalls() {
  std::unique_ptr<Driver> driver;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [ns, stream] : driven_) stream->Close();
    driven_.clear();
    driver = std::move(driver_);
  }
}

bool SharedCalls::Takes(const ClientOptions& client, const CallOptions& call,
                        SharedCall& shared) const {
  if (!client.batching || !call.batching ||
      is_off_.load(std::memory_order_relaxed)) {
    return false;
  }
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

absl::Status SharedCalls::Do(const CallPlan& plan, const std::string& ns,
                             SharedCall& shared, UnaryAttempt unary,
                             bool& answered) {
  bool is_alone = false;
  shared.deadline = plan.deadline();
  answered = false;
  return AttemptEach(endpoints_, plan, [&]() -> Attempted {
    while (!is_alone) {
      const std::shared_ptr<CallStream> stream = Find(ns, /*is_async=*/false);
      if (stream == nullptr) break;
      const bool connected =
          stream->IsOpen() ||
          endpoints_.current().connection.Await(plan.deadline());
      if (!stream->Run(shared, plan.call().cancellation)) break;
      if (shared.end == SharedCall::End::kAgain) continue;
      std::optional<absl::Status> status = Take(shared, plan);
      if (!status) break;
      answered = status->ok();
      return {*std::move(status), connected};
    }
    is_alone = true;
    return AttemptOnce(endpoints_, plan, unary);
  });
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
  absl::MutexLock lock(&mu_);
  Streams& streams = is_async ? driven_ : blocking_;
  const auto found = streams.find(ns);
  if (found != streams.end()) return found->second;
  if (streams.size() >= kSharedStreamsMax && !Evict(streams)) return nullptr;
  if (is_async && !driver_) driver_ = std::make_unique<Driver>(*this);
  auto stream = std::make_shared<CallStream>(
      endpoints_, ns, is_async ? driver_.get() : nullptr);
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
