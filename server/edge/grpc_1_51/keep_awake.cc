#include "server/edge/grpc_1_51/keep_awake.h"

#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"

namespace timecache::server {

KeepAwake::KeepAwake(grpc::Server* server)
    : channel_(server->InProcessChannel(grpc::ChannelArguments())),
      calls_(housekeeping_.Every(kInterval, [this] { Call(); })) {}

// Its response does not matter: its completion is the event.
void KeepAwake::Call() {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  const grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer response;
  absl::Notification done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(),
                 &request, &response,
                 [&done](const grpc::Status& /*status*/) { done.Notify(); });
  done.WaitForNotification();
}

}  // namespace timecache::server
