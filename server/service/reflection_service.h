// grpc.reflection.v1alpha.ServerReflection, behind the gate. (gRPC's own plugin
// answers everybody.)

#ifndef TIMECACHED_SERVER_SERVICE_REFLECTION_SERVICE_H_
#define TIMECACHED_SERVER_SERVICE_REFLECTION_SERVICE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/service/call_gate.h"
#include "server/service/open_streams.h"
#include "server/service/reflection_index.h"

namespace timecache {

// Thread-safe. One request of a stream at a time: who does not read its answers
// is not read either.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  // A longer request ends its stream.
  static constexpr size_t kMaxRequestBytes = 4096;

  // None is owned; all must outlive the service and its calls.
  ReflectionService(const CallGate* gate, OpenStreams* streams,
                    std::vector<std::string> services)
      : gate_(*gate), streams_(streams), index_(std::move(services)) {}

  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  const CallGate& gate_;
  OpenStreams* const streams_;
  const ReflectionIndex index_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_REFLECTION_SERVICE_H_
