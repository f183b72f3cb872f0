#include "tests/fuzz/rpc_world.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/impl/codegen/client_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/sync_stream.h"
#include "server/main/config/config.h"
#include "tests/fuzz/fuzz.h"
#include "timecache/v1/errors.pb.h"

namespace timecache::fuzz {
namespace {

using google::protobuf::Descriptor;

constexpr int64_t kStartUs = 1'000 * server::kMicrosPerSecond;
// No call takes longer: one that would, hangs.
constexpr std::chrono::seconds kCallTimeout{20};

server::RegistryLimits SmallLimits() {
  server::RegistryLimits limits;
  limits.max_namespaces = RpcWorld::kMaxNamespaces;
  limits.max_entries = 10'000;
  limits.max_bytes = 4 << 20;
  return limits;
}

server::ServerOptions Options(server::Access* access) {
  server::ServerOptions options;
  options.access = access;
  options.limits = server::DefaultConfig().limits();
  options.limits.set_max_watchers(8);
  options.observer = [](const server::AdminChange& change) {
    Require(!change.event.empty() && !change.name.empty(),
            "what is observed goes into a line of the log");
  };
  return options;
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

bool Parses(const Descriptor* type, const std::string& bytes) {
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(type)
          ->New());
  return message->ParseFromString(bytes);
}

void CheckResponse(const google::protobuf::MethodDescriptor& method,
                   const grpc::ByteBuffer& response) {
  grpc::Slice slice;
  Require(response.DumpToSingleSlice(&slice).ok(), "a response has bytes");
  Require(Parses(method.output_type(),
                 std::string(reinterpret_cast<const char*>(slice.begin()),
                             slice.size())),
          "a response is a " + method.output_type()->full_name());
}

// `well_formed`: all messages that were sent are what the method takes.
void CheckStatus(const google::protobuf::MethodDescriptor& method,
                 const grpc::Status& status, bool well_formed) {
  const std::string what =
      absl::StrCat(method.full_name(), ": ", status.error_code(), " ",
                   status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return Require(well_formed, what);
    case grpc::StatusCode::CANCELLED:
      // By this client, which has seen enough.
      return Require(method.server_streaming(), what);
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      break;
    default:
      Require(false, what);
  }
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  Require(details.ParseFromString(status.error_details()) &&
              details.details_size() > 0 &&
              details.details(0).UnpackTo(&info) &&
              info.domain() == "timecached",
          what + ": no ErrorInfo");
  v1::ErrorReason reason;
  Require(v1::ErrorReason_Parse(info.reason(), &reason),
          what + ": no reason of errors.proto: " + info.reason());
}

grpc::internal::RpcMethod ToRpcMethod(const std::string& path,
                                      grpc::internal::RpcMethod::RpcType type) {
  return grpc::internal::RpcMethod(path.c_str(), type);
}

std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

}  // namespace

RpcWorld::RpcWorld(server::Access* access)
    : clock_(kStartUs),
      reaper_(&clock_),
      registry_(&clock_, &reaper_, SmallLimits()),
      server_(&store_, &clock_, Options(access)) {
  const absl::Status started = server_.Start();
  Require(started.ok(), started.ToString());
  channel_ = server_.InProcessChannel();
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const char* name :
       {"timecache.v1.TimeCacheService", "timecache.v1.NamespaceService",
        "timecache.v1.GroupService", "timecache.v1.ServerService"}) {
    const auto* service = pool->FindServiceByName(name);
    Require(service != nullptr, name);
    for (int i = 0; i < service->method_count(); ++i) {
      methods_.push_back(service->method(i));
    }
  }
}

void RpcWorld::Reset() {
  metadata_.clear();
  for (const auto& map : registry_.List()) {
    Require(registry_.Delete(map->name()).ok(), "a namespace is deleted");
  }
  server::NamespaceOptions options;
  options.num_buckets = 2;
  options.num_shards = 1;
  auto map = registry_.Create("default", options);
  Require(map.ok(), map.status().ToString());
  map_ = *std::move(map);
  const auto group = map_->groups().Create(
      "g", {}, server::ExpiryLog::Start::kNow, clock_.NowUs());
  Require(group.ok(), group.status().ToString());
}

bool RpcWorld::IsClientStreaming(size_t method) const {
  return At(method).client_streaming();
}

grpc::Status RpcWorld::Call(size_t index,
                            const std::vector<std::string>& messages) {
  const Method& method = At(index);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  for (const auto& [name, value] : metadata_) context.AddMetadata(name, value);
  grpc::Status status;
  bool well_formed = true;
  for (const std::string& message : messages) {
    well_formed = well_formed && Parses(method.input_type(), message);
  }
  if (method.client_streaming()) {
    status = CallBidi(method, &context, messages);
  } else if (method.server_streaming()) {
    status = CallServerStream(method, &context, messages.at(0));
  } else {
    status = CallUnary(method, &context, messages.at(0));
  }
  CheckStatus(method, status, well_formed);
  return status;
}

grpc::Status RpcWorld::CallUnary(const Method& method,
                                 grpc::ClientContext* context,
                                 const std::string& message) {
  const std::string path = PathOf(method);
  grpc::ByteBuffer response;
  const grpc::Status status = grpc::internal::BlockingUnaryCall(
      channel_.get(), ToRpcMethod(path, grpc::internal::RpcMethod::NORMAL_RPC),
      context, ToBuffer(message), &response);
  if (status.ok()) CheckResponse(method, response);
  return status;
}

grpc::Status RpcWorld::CallServerStream(const Method& method,
                                        grpc::ClientContext* context,
                                        const std::string& message) {
  const std::string path = PathOf(method);
  const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
          channel_.get(),
          ToRpcMethod(path, grpc::internal::RpcMethod::SERVER_STREAMING),
          context, ToBuffer(message)));
  // A watch sends one message at once, and then none while time stands still.
  const bool endless = method.name() != "Scan";
  grpc::ByteBuffer response;
  while (reader->Read(&response)) {
    CheckResponse(method, response);
    if (endless) context->TryCancel();
  }
  return reader->Finish();
}

grpc::Status RpcWorld::CallBidi(const Method& method,
                                grpc::ClientContext* context,
                                const std::vector<std::string>& messages) {
  const std::string path = PathOf(method);
  using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  using Factory = grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer,
                                                            grpc::ByteBuffer>;
  const std::unique_ptr<Stream> stream(Factory::Create(
      channel_.get(),
      ToRpcMethod(path, grpc::internal::RpcMethod::BIDI_STREAMING), context));
  // Without a socket's buffers a write waits until it is read.
  std::thread writer([&] {
    for (const std::string& message : messages) {
      if (!stream->Write(ToBuffer(message))) return;
    }
    stream->WritesDone();
  });
  grpc::ByteBuffer response;
  size_t answers = 0;
  while (stream->Read(&response)) {
    CheckResponse(method, response);
    ++answers;
  }
  writer.join();
  const grpc::Status status = stream->Finish();
  Require(!status.ok() || answers == messages.size(),
          "an answer for each request");
  return status;
}

void RpcWorld::Pass(int64_t step_us) {
  clock_.AdvanceBy(step_us);
  reaper_.Flush();
}

void RpcWorld::Check() {
  const auto maps = registry_.List();
  Require(maps.size() <= kMaxNamespaces, "namespaces beyond their limit");
  int64_t entries = 0;
  for (const auto& map : maps) {
    entries += map->GetSize(clock_.NowUs()).entries;
  }
  Require(entries <= SmallLimits().max_entries, "entries beyond their limit");
}

}  // namespace timecache::fuzz
