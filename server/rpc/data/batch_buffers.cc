#include "server/rpc/data/batch_buffers.h"

#include <string>
#include <utility>

namespace timecache::server {
namespace {

std::unique_ptr<BatchBuffers>& Spare() {
  thread_local std::unique_ptr<BatchBuffers> spare;
  return spare;
}

}  // namespace

std::unique_ptr<BatchBuffers> BatchBuffers::Take() {
  std::unique_ptr<BatchBuffers> spare = std::move(Spare());
  return spare != nullptr ? std::move(spare) : std::make_unique<BatchBuffers>();
}

void BatchBuffers::Give(std::unique_ptr<BatchBuffers> buffers) {
  buffers->request.Clear();
  for (Result& result : buffers->results) {
    result.status = absl::OkStatus();
    std::string& value = result.entry.value;
    if (value.capacity() > kMaxKeptValueBytes) std::string().swap(value);
  }
  Spare() = std::move(buffers);
}

}  // namespace timecache::server
