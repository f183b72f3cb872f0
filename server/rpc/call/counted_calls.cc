#include "server/rpc/call/counted_calls.h"

#include "google/protobuf/descriptor.h"
#include "server/base/check.h"

namespace timecache::server {

int MethodNumber(const std::string& full_name) {
  const auto* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
          full_name);
  TIMECACHED_CHECK(descriptor != nullptr);
  return descriptor->index();
}

}  // namespace timecache::server
