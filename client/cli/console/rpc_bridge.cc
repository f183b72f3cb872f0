#include "client/cli/console/rpc_bridge.h"

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/console/read_only.h"
#include "client/cli/console/rpc_json.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace timecache::cli {
namespace {

std::string MethodPath(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// A stream of responses, of which one is read at a time. Used by one thread.
class RpcStream {
 public:
  RpcStream(Endpoint& endpoint, const RpcBridge::Rpc& rpc,
            const std::stop_token& gone)
      : cancel_(gone, [this] { context_.TryCancel(); }),
        call_(grpc::GenericStub(endpoint.channel)
                  .PrepareCall(&context_, MethodPath(*rpc.method), &queue_)) {
    call_->StartCall(nullptr);
    if (!Wait()) return;
    // The last: no more requests come.
    call_->WriteLast(BufferOf(rpc.request), grpc::WriteOptions(), nullptr);
    if (Wait()) Read();
  }

  ~RpcStream() {
    if (reading_) {
      context_.TryCancel();
      Wait();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  enum class Result { kMessage, kEnd, kNothing };

  // Waits for the next response, at most so long.
  Result Next(absl::Duration patience) {
    if (!reading_) return Result::kEnd;
    void* tag = nullptr;
    bool ok = false;
    const auto status =
        queue_.AsyncNext(&tag, &ok,
                         std::chrono::system_clock::now() +
                             absl::ToChronoMicroseconds(patience));
    if (status == grpc::CompletionQueue::TIMEOUT) return Result::kNothing;
    reading_ = false;
    return ok ? Result::kMessage : Result::kEnd;
  }

  // After a message. Until it is released, no further one is read.
  grpc::ByteBuffer* response() { return &response_; }
  void Release() {
    response_.Clear();
    Read();
  }

  // After the end, once.
  absl::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Wait();
    return FromGrpcStatus(status);
  }

 private:
  void Read() {
    call_->Read(&response_, nullptr);
    reading_ = true;
  }

  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    reading_ = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  const std::stop_callback<std::function<void()>> cancel_;
  grpc::CompletionQueue queue_;
  grpc::ByteBuffer response_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool reading_ = false;
};

}  // namespace

absl::StatusOr<RpcBridge::Rpc> RpcBridge::Parse(const std::string& name,
                                                const std::string& json) const {
  const auto* const method =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
          absl::StrReplaceAll(name, {{"/", "."}}));
  if (method == nullptr || MethodPath(*method) != absl::StrCat("/", name)) {
    return absl::UnimplementedError(absl::StrCat("there is no method ", name));
  }
  if (method->client_streaming()) {
    return absl::UnimplementedError(
        absl::StrCat(name, " has a stream of requests, which JSON cannot be"));
  }
  absl::StatusOr<std::string> request = BinaryOf(*method->input_type(), json);
  if (!request.ok()) return request.status();
  if (read_only_ && !ChangesNothing(*method, *request)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the console is read-only, and ", method->name(),
                     " may change something"));
  }
  return Rpc{method, *std::move(request)};
}

absl::StatusOr<std::string> RpcBridge::Call(const Rpc& rpc,
                                            std::stop_token gone) const {
  grpc::ByteBuffer response;
  const CallOptions call = {.timeout = timeout_,
                            .cancellation = std::move(gone)};
  const ClientOptions options = {.retry = {.max_attempts = 1}};
  absl::Status status =
      Attempt(Client::Core::Of(client_)->endpoints,
              CallPlan(options, call, Repeat::kUnsafe),
              [&](Endpoint& endpoint, grpc::ClientContext& context) {
                grpc::CompletionQueue queue;
                grpc::Status result;
                const auto reader =
                    grpc::GenericStub(endpoint.channel)
                        .PrepareUnaryCall(&context, MethodPath(*rpc.method),
                                          BufferOf(rpc.request), &queue);
                reader->StartCall();
                reader->Finish(&response, &result, nullptr);
                void* tag = nullptr;
                bool ok = false;
                queue.Next(&tag, &ok);
                return result;
              });
  std::string json;
  if (status.ok()) {
    status = AppendJson(*rpc.method->output_type(), &response, &json);
  }
  if (!status.ok()) return status;
  return json;
}

void RpcBridge::Stream(
    const Rpc& rpc, const std::stop_token& gone,
    absl::FunctionRef<bool(std::string_view lines)> write) const {
  Endpoints& endpoints = Client::Core::Of(client_)->endpoints;
  Endpoint& endpoint = endpoints.current();
  endpoint.connection.Await(SteadyAfter(timeout_));
  RpcStream stream(endpoint, rpc, gone);
  std::string lines;
  absl::Status status;
  bool ended = false;
  while (!ended && status.ok()) {
    // What is ready goes out together.
    const bool wait = lines.empty();
    const auto result = stream.Next(wait ? kSilence : absl::ZeroDuration());
    if (result == RpcStream::Result::kMessage) {
      lines += "{\"message\":";
      status =
          AppendJson(*rpc.method->output_type(), stream.response(), &lines);
      lines += status.ok() ? "}\n" : "\n";
    } else if (result == RpcStream::Result::kEnd) {
      ended = true;
      status = stream.Finish();
      if (!status.ok() && !gone.stop_requested()) {
        endpoints.MoveOn(endpoint, status);
      }
    } else if (wait) {
      lines += "\n";
    }
    if (ended && status.ok()) lines += "{\"end\":true}\n";
    if (!status.ok()) absl::StrAppend(&lines, ErrorJson(status), "\n");
    if (result != RpcStream::Result::kMessage || lines.size() >= kMaxLines) {
      if (!write(lines)) return;
      // It may be large, and the next one small.
      lines = std::string();
    }
    if (result == RpcStream::Result::kMessage) stream.Release();
  }
}

}  // namespace timecache::cli
