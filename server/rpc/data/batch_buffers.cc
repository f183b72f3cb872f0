#include "server/rpc/data/batch_buffers.h"

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {
namespace {

// Of large batches none are shared: 64 times some 100 KiB.
constexpr size_t kMaxShared = 64;
constexpr size_t kMaxSharedOperations = 256;

std::unique_ptr<BatchBuffers>& Spare() {
  thread_local std::unique_ptr<BatchBuffers> spare;
  return spare;
}

// Of batches that end on another thread than they began on: those that have
// waited for the journal.
class SharedBuffers {
 public:
  static SharedBuffers& Get() {
    static auto* const shared = new SharedBuffers;
    return *shared;
  }

  std::unique_ptr<BatchBuffers> Take() {
    absl::MutexLock lock(&mu_);
    if (spares_.empty()) return nullptr;
    std::unique_ptr<BatchBuffers> spare = std::move(spares_.back());
    spares_.pop_back();
    return spare;
  }

  void Give(std::unique_ptr<BatchBuffers> buffers) {
    if (buffers->results.capacity() > kMaxSharedOperations) return;
    absl::MutexLock lock(&mu_);
    if (spares_.size() < kMaxShared) spares_.push_back(std::move(buffers));
  }

 private:
  absl::Mutex mu_;
  std::vector<std::unique_ptr<BatchBuffers>> spares_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<BatchBuffers> BatchBuffers::Take() {
  std::unique_ptr<BatchBuffers> spare = std::move(Spare());
  if (spare == nullptr) spare = SharedBuffers::Get().Take();
  return spare != nullptr ? std::move(spare) : std::make_unique<BatchBuffers>();
}

void BatchBuffers::Give(std::unique_ptr<BatchBuffers> buffers) {
  buffers->request.Clear();
  for (Result& result : buffers->results) {
    result.status = absl::OkStatus();
    std::string& value = result.entry.value;
    if (value.capacity() > kMaxKeptValueBytes) std::string().swap(value);
  }
  if (Spare() != nullptr) return SharedBuffers::Get().Give(std::move(buffers));
  Spare() = std::move(buffers);
}

}  // namespace timecache::server
