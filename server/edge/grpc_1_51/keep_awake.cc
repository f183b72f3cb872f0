#include "server/edge/grpc_1_51/keep_awake.h"

#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"

namespace timecache::server {

KeepAwake::KeepAwake(grpc::Server* server)
    : channel_(server->InProcessChannel(grpc::ChannelArguments())),
      thread_([this] { Run(); }) {}

KeepAwake::~KeepAwake() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void KeepAwake::Run() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    mu_.Unlock();
    Call();
    mu_.Lock();
    // An early wake-up only costs one more call.
    if (!stopping_) wake_.WaitFor(&mu_, kInterval);
  }
}

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
