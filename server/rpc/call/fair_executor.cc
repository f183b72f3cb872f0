#include "server/rpc/call/fair_executor.h"

#include <string>
#include <utility>

namespace timecache::server {

FairExecutor::~FairExecutor() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void FairExecutor::Add(absl::string_view flow, std::shared_ptr<Task> task) {
  absl::MutexLock lock(&mu_);
  queue_.Push(flow, {std::string(flow), std::move(task)});
  wake_.Signal();
}

void FairExecutor::Run() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    if (queue_.empty()) {
      wake_.Wait(&mu_);
      continue;
    }
    Turn turn = queue_.Pop();
    mu_.Unlock();
    const bool more = turn.second->TakeTurn();
    if (!more) turn.second.reset();
    mu_.Lock();
    if (!more) continue;
    const std::string flow = turn.first;
    queue_.Push(flow, std::move(turn));
  }
}

}  // namespace timecache::server
