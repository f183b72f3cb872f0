// grpc.reflection.v1.ServerReflection and its older name v1alpha, behind the
// gate. (gRPC's own plugin answers every caller.)

#ifndef TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_SERVICE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/api/method.h"
#include "server/edge/response/open_streams.h"
#include "server/rpc/admin/reflection_index.h"
#include "server/rpc/call/call_gate.h"

namespace timecache::server {

// Thread-safe. One request of a stream at a time: the server does not read from
// a client that does not read its responses.
class ReflectionService final {
 public:
  // A longer request ends its stream.
  static constexpr size_t kMaxRequestBytes = 4096;

  // None is owned; all must outlive the service and its calls.
  ReflectionService(const CallGate* gate, OpenStreams* streams,
                    std::vector<std::string> services)
      : index_(std::move(services)),
        service_(*gate, methods::kReflection, streams, &index_),
        alpha_service_(*gate, methods::kReflectionAlpha, streams, &index_) {}

  // To a server that ends before this.
  void AddTo(grpc::ServerBuilder* builder) {
    builder->RegisterService(&service_);
    builder->RegisterService(&alpha_service_);
  }

 private:
  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;
  using V1 = grpc::reflection::v1::ServerReflection;
  using V1Alpha = grpc::reflection::v1alpha::ServerReflection;

  static Stream* Start(const CallGate& gate, const Method& method,
                       grpc::CallbackServerContext* context,
                       OpenStreams* streams, const ReflectionIndex* index);

  // One of the two. Their messages are the same bytes.
  template <typename Base>
  class Service final : public Base {
   public:
    Service(const CallGate& gate, const Method& method, OpenStreams* streams,
            const ReflectionIndex* index)
        : gate_(gate), method_(method), streams_(streams), index_(index) {}

    Stream* ServerReflectionInfo(
        grpc::CallbackServerContext* context) override {
      return Start(gate_, method_, context, streams_, index_);
    }

   private:
    const CallGate& gate_;
    const Method& method_;
    OpenStreams* const streams_;
    const ReflectionIndex* const index_;
  };

  const ReflectionIndex index_;
  Service<V1::WithRawCallbackMethod_ServerReflectionInfo<V1::Service>> service_;
  Service<V1Alpha::WithRawCallbackMethod_ServerReflectionInfo<V1Alpha::Service>>
      alpha_service_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_SERVICE_H_
