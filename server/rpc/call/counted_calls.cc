#include "server/rpc/call/counted_calls.h"

#include "google/protobuf/descriptor.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "server/base/check.h"

namespace timecache::server {

void CountUnaryCalls(
    const char* service, CountedCalls* counted,
    const std::function<grpc::internal::MethodHandler*(int)>& handler_of) {
  using Handler =
      grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
  const auto* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
          service);
  TIMECACHED_CHECK(descriptor != nullptr);
  for (int i = 0; i < descriptor->method_count(); ++i) {
    const auto* const method = descriptor->method(i);
    if (method->client_streaming() || method->server_streaming()) continue;
    auto* const handler = dynamic_cast<Handler*>(handler_of(i));
    TIMECACHED_CHECK(handler != nullptr);
    handler->SetMessageAllocator(counted);
  }
}

}  // namespace timecache::server
