#include "client/cpp/src/shared/call_driver.h"

#include <algorithm>

#include "client/cpp/src/shared/queue_event.h"

namespace timecache {

CallDriver::~CallDriver() {
  queue_.Shutdown();
  thread_.join();
}

void CallDriver::Add(const std::shared_ptr<CallStream>& stream) {
  absl::MutexLock lock(&mu_);
  std::erase_if(streams_, [](const auto& each) { return each.expired(); });
  streams_.push_back(stream);
}

void CallDriver::ExpireAt(SteadyTime time) {
  SteadyTime next = expire_at_.load();
  while (time < next) {
    if (!expire_at_.compare_exchange_weak(next, time)) continue;
    return QueueWake::Send(queue_);
  }
}

void CallDriver::Run() {
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

void CallDriver::Expire() {
  // What comes from here on wakes this thread.
  expire_at_.store(kSteadyNever);
  std::vector<std::shared_ptr<CallStream>> streams;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& each : streams_) {
      if (auto stream = each.lock()) streams.push_back(std::move(stream));
    }
  }
  SteadyTime next = kSteadyNever;
  for (const auto& stream : streams) next = std::min(next, stream->Expire());
  SteadyTime other = kSteadyNever;
  while (next < other && !expire_at_.compare_exchange_weak(other, next)) {
  }
}

}  // namespace timecache
