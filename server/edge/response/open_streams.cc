#include "server/edge/response/open_streams.h"

#include <utility>
#include <vector>

#include "server/base/error.h"

namespace timecache::server {

absl::Status OpenStreams::DrainingError() {
  return ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kDraining,
                         "the server is stopping: retry");
}

absl::Status OpenStreams::Add(const std::shared_ptr<Drainable>& stream) {
  absl::MutexLock lock(&mu_);
  if (started_) return DrainingError();
  streams_.emplace(stream.get(), stream);
  return absl::OkStatus();
}

void OpenStreams::Remove(Drainable* stream) {
  std::shared_ptr<Drainable> last;
  absl::MutexLock lock(&mu_);
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  // Not destroyed under the lock.
  last = std::move(it->second);
  streams_.erase(it);
  removed_.Signal();
}

void OpenStreams::AccessChanged() {
  std::vector<std::shared_ptr<Drainable>> streams;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [key, stream] : streams_) streams.push_back(stream);
  }
  for (const auto& stream : streams) stream->OnAccessChanged();
}

OpenStreams::Drained OpenStreams::Drain() {
  std::vector<std::shared_ptr<Drainable>> streams;
  {
    absl::MutexLock lock(&mu_);
    started_ = true;
    for (const auto& [key, stream] : streams_) streams.push_back(stream);
  }
  Drained drained;
  drained.streams = streams.size();
  for (const auto& stream : streams) drained.read_late += stream->OnDrain();
  return drained;
}

size_t OpenStreams::WaitForNone(
    std::chrono::steady_clock::time_point deadline) {
  absl::MutexLock lock(&mu_);
  while (!streams_.empty() && std::chrono::steady_clock::now() < deadline) {
    removed_.WaitUntil(&mu_, deadline);
  }
  return streams_.size();
}

}  // namespace timecache::server
