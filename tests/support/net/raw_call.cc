#include "tests/support/net/raw_call.h"

#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/support/rpc.h"

namespace timecache::test {
namespace {

// Whether the only operation that is under way has succeeded.
bool AwaitTag(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue->Next(&tag, &ok));
  return ok;
}

}  // namespace

grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& path,
                     const std::optional<std::string>& request,
                     const std::string& authorization) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(&context);
  if (!authorization.empty()) {
    context.AddMetadata("authorization", authorization);
  }
  const auto call =
      grpc::GenericStub(channel).PrepareCall(&context, path, &queue);
  call->StartCall(nullptr);
  AwaitTag(&queue);
  bool sent = true;
  if (request.has_value()) {
    const grpc::Slice slice(*request);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    sent = AwaitTag(&queue);
  }
  // A call that was refused takes no request.
  if (sent) {
    call->WritesDone(nullptr);
    AwaitTag(&queue);
  }
  grpc::ByteBuffer response;
  do {
    call->Read(&response, nullptr);
  } while (AwaitTag(&queue));
  grpc::Status status;
  call->Finish(&status, nullptr);
  AwaitTag(&queue);
  return status;
}

}  // namespace timecache::test
