#include "tests/client/fake_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "timecache/channel.h"

namespace timecache {
namespace {

google::rpc::Status ToRpcStatus(const grpc::Status& status) {
  google::rpc::Status result;
  result.ParseFromString(status.error_details());
  result.set_code(status.error_code());
  result.set_message(status.error_message());
  return result;
}

// Whether it is the end of all calls that share a stream, and no answer to one.
bool EndsStreams(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::UNKNOWN:
      return true;
    default:
      return false;
  }
}

// As much of the message as there is in one of this kind.
template <typename Response>
Response As(const v1::WatchExpiredResponse& message) {
  Response response;
  response.set_namespace_(message.namespace_());
  if constexpr (requires { response.changes(); }) {
    for (const v1::ExpiredEvent& event : message.events()) {
      v1::ChangeEvent* const change = response.add_changes();
      change->set_kind(v1::CHANGE_KIND_PUT);
      change->set_key(event.key());
      change->set_value(event.value());
      *change->mutable_time() = event.death_time();
    }
  } else {
    *response.mutable_events() = message.events();
  }
  *response.mutable_watermark() = message.watermark();
  if constexpr (requires { response.lost(); }) {
    response.set_lost(message.lost());
  }
  if constexpr (requires { response.resume_token(); }) {
    response.set_resume_token(message.resume_token());
  }
  return response;
}

}  // namespace

FakeService::FakeService(const std::string& listen) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::TimeCacheService::Service*>(this));
  builder.RegisterService(static_cast<v1::NamespaceService::Service*>(this));
  builder.RegisterService(static_cast<v1::GroupService::Service*>(this));
  builder.RegisterService(static_cast<v1::ServerService::Service*>(this));
  builder.RegisterService(
      static_cast<testing::v1::VirtualClockService::Service*>(this));
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // Its polls are those of the whole process, in which others may wait: for 10 s
  // by default, where a test sets the time of day.
  builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, 20);
  front_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeService::~FakeService() {
  front_->Shutdown(absl::ToChronoTime(absl::Now()));
  front_->Wait();
}

test::TestServer& FakeService::server() {
  std::call_once(made_, [this] {
    server_ = std::make_unique<test::TestServer>(test::TestServerOptions{
        .start_us = 0, .change = [](server::ServerOptions* options) {
          options->version = "fake";
        }});
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    channel_ = server_->NewChannel(arguments);
  });
  return *server_;
}

void FakeService::FailWith(grpc::Status status) {
  absl::MutexLock lock(&mu_);
  failure_ = std::move(status);
}

void FakeService::Hang(bool hang) {
  absl::MutexLock lock(&mu_);
  hang_ = hang;
  hang_changed_.SignalAll();
}

void FakeService::OnCall(
    std::function<grpc::Status(const Context& context)> on_call) {
  absl::MutexLock lock(&mu_);
  on_call_ = std::move(on_call);
}

void FakeService::Answer(const google::protobuf::Message& response) {
  absl::MutexLock lock(&mu_);
  answers_[response.GetDescriptor()->full_name()].push_back(
      response.SerializeAsString());
}

void FakeService::AddScan(ScanScript script) {
  absl::MutexLock lock(&mu_);
  scans_.push_back(std::move(script));
}

void FakeService::OnPut(std::function<void(const v1::PutRequest&)> on_put) {
  absl::MutexLock lock(&mu_);
  on_put_ = std::move(on_put);
}

void FakeService::SetPipeline(PipelineScript script) {
  absl::MutexLock lock(&mu_);
  pipeline_ = std::move(script);
}

std::vector<int> FakeService::pipeline_requests() const {
  absl::MutexLock lock(&mu_);
  return pipeline_requests_;
}

void FakeService::AddWatch(WatchScript script) {
  absl::MutexLock lock(&mu_);
  watches_.push_back(std::move(script));
}

void FakeService::OnSettle(OnSettleFunction on_settle) {
  absl::MutexLock lock(&mu_);
  on_settle_ = std::move(on_settle);
}

grpc::Status FakeService::Enter(const Context& context) {
  absl::MutexLock lock(&mu_);
  if (on_call_) {
    const grpc::Status status = on_call_(context);
    if (!status.ok()) return status;
  }
  AwaitLeave(context, hang_);
  return failure_;
}

void FakeService::AwaitLeave(const Context& context, const bool& hang) {
  // A cancellation wakes nothing in gRPC's synchronous calls.
  while (hang && !context.IsCancelled()) hang_changed_.WaitFor(&mu_, kFakeLook);
}

void FakeService::Note(const google::protobuf::Message& request) {
  absl::MutexLock lock(&mu_);
  requests_[request.GetDescriptor()->full_name()].push_back(
      request.SerializeAsString());
}

void FakeService::NotePut(const v1::PutRequest& request) {
  std::function<void(const v1::PutRequest&)> on_put;
  {
    absl::MutexLock lock(&mu_);
    on_put = on_put_;
  }
  if (on_put) on_put(request);
}

bool FakeService::TakeAnswer(google::protobuf::Message* response) {
  absl::MutexLock lock(&mu_);
  const auto found = answers_.find(response->GetDescriptor()->full_name());
  if (found == answers_.end()) return false;
  response->ParseFromString(found->second.front());
  if (found->second.size() > 1) found->second.pop_front();
  return true;
}

void FakeService::SetCluster(const v1::GetClusterResponse& cluster) {
  absl::MutexLock lock(&mu_);
  cluster_ = cluster;
}

grpc::Status FakeService::GetCluster(Context* context,
                                     const v1::GetClusterRequest* request,
                                     v1::GetClusterResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    if (!cluster_.name().empty()) {
      *response = cluster_;
      if (successor_.empty()) return grpc::Status::OK;
      cluster_.set_owner(successor_);
      for (v1::ClusterNode& node : *cluster_.mutable_nodes()) {
        node.set_role(node.name() == successor_ ? v1::NODE_ROLE_OWNER
                                                : v1::NODE_ROLE_STANDBY);
      }
      return grpc::Status::OK;
    }
  }
  return Forward(context, &v1::ServerService::Stub::GetCluster, *request,
                 response);
}

grpc::Status FakeService::HandOver(Context* context,
                                   const v1::HandOverRequest* request,
                                   v1::HandOverResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    if (!cluster_.name().empty()) {
      successor_ = request->to();
      response->set_to(successor_);
      return grpc::Status::OK;
    }
  }
  return Forward(context, &v1::ServerService::Stub::HandOver, *request,
                 response);
}

grpc::Status FakeService::Put(Context* context, const v1::PutRequest* request,
                              v1::PutResponse* response) {
  NotePut(*request);
  return Forward(context, &v1::TimeCacheService::Stub::Put, *request, response);
}

grpc::Status FakeService::Execute(Context* context,
                                  const v1::ExecuteRequest* request,
                                  v1::ExecuteResponse* response) {
  for (const v1::Operation& operation : request->operations()) {
    if (!operation.has_put()) continue;
    v1::PutRequest put = operation.put();
    put.set_namespace_(request->namespace_());
    NotePut(put);
    Note(put);
  }
  const grpc::Status status = Forward(
      context, &v1::TimeCacheService::Stub::Execute, *request, response);
  absl::MutexLock lock(&mu_);
  if (failure_.ok()) return status;
  for (int i = 0; i < request->operations_size(); ++i) {
    *response->add_results()->mutable_error() = ToRpcStatus(failure_);
  }
  return grpc::Status::OK;
}

// Each operation as the call that it would be.
grpc::Status FakeService::EachAsItsOwn(Context* context,
                                       v1::ExecuteRequest& request,
                                       v1::ExecuteResponse* response) {
  for (v1::Operation& operation : *request.mutable_operations()) {
    Note(operation);
    v1::OperationResult& result = *response->add_results();
    const auto call = [&](auto method, auto& own, auto* answer) {
      own.set_namespace_(request.namespace_());
      const grpc::Status status = (this->*method)(context, &own, answer);
      if constexpr (requires { answer->mutable_entry(); }) {
        if (answer->has_entry()) answer->mutable_entry()->clear_key();
      }
      if (status.ok() || EndsStreams(status)) return status;
      *result.mutable_error() = ToRpcStatus(status);
      return grpc::Status::OK;
    };
    grpc::Status end;
    switch (operation.request_case()) {
#define TIMECACHE_CASE(Name, name)                              \
  case v1::Operation::k##Name:                                  \
    end = call(&FakeService::Name, *operation.mutable_##name(), \
               result.mutable_##name());                        \
    break
      TIMECACHE_CASE(Put, put);
      TIMECACHE_CASE(Get, get);
      TIMECACHE_CASE(Remove, remove);
      TIMECACHE_CASE(Contains, contains);
      TIMECACHE_CASE(Touch, touch);
      TIMECACHE_CASE(Append, append);
      TIMECACHE_CASE(Combine, combine);
      TIMECACHE_CASE(Gather, gather);
#undef TIMECACHE_CASE
      default:
        break;
    }
    if (!end.ok()) return end;
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::Pipeline(
    Context* context,
    grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>* stream) {
  PipelineScript script;
  {
    absl::MutexLock lock(&mu_);
    script = pipeline_;
  }
  v1::ExecuteRequest request;
  for (int answers = 0; answers < script.answers_max; ++answers) {
    if (!stream->Read(&request)) return grpc::Status::OK;
    {
      absl::MutexLock lock(&mu_);
      pipeline_requests_.push_back(request.operations_size());
    }
    v1::ExecuteResponse response;
    const grpc::Status status = request.independent()
                                    ? EachAsItsOwn(context, request, &response)
                                    : Execute(context, &request, &response);
    if (!status.ok()) return status;
    if (script.forget_a_result) response.mutable_results()->RemoveLast();
    stream->Write(response);
  }
  return script.end;
}

// All in one page, in the order of keys, so that a test knows what comes.
grpc::Status FakeService::Scan(Context* context, const v1::ScanRequest* request,
                               grpc::ServerWriter<v1::ScanResponse>* writer) {
  Note(*request);
  const grpc::Status status = Enter(*context);
  if (!status.ok()) return status;
  {
    absl::MutexLock lock(&mu_);
    if (!scans_.empty()) {
      const ScanScript script = std::move(scans_.front());
      scans_.pop_front();
      writer->Write(script.page);
      return script.end;
    }
  }
  const auto client = grpc::ClientContext::FromServerContext(*context);
  const auto reader =
      v1::TimeCacheService::Stub(channel()).Scan(client.get(), *request);
  v1::ScanResponse all;
  for (v1::ScanResponse page; reader->Read(&page);) all.MergeFrom(page);
  std::sort(
      all.mutable_entries()->begin(), all.mutable_entries()->end(),
      [](const v1::Entry& a, const v1::Entry& b) { return a.key() < b.key(); });
  writer->Write(all);
  return reader->Finish();
}

grpc::Status FakeService::SettleExpired(Context* context,
                                        const v1::SettleExpiredRequest* request,
                                        v1::SettleExpiredResponse* response) {
  Note(*request);
  const grpc::Status status = Enter(*context);
  if (!status.ok()) return status;
  OnSettleFunction on_settle;
  {
    absl::MutexLock lock(&mu_);
    on_settle = on_settle_;
  }
  for (int i = 0; i < request->settlements_size(); ++i) response->add_results();
  return on_settle ? on_settle(*request, response) : grpc::Status::OK;
}

template <typename Request, typename Response>
grpc::Status FakeService::PlayWatch(Context* context, const Request& request,
                                    grpc::ServerWriter<Response>* writer) {
  Note(request);
  WatchScript script;
  {
    absl::MutexLock lock(&mu_);
    if (watches_.empty()) return NamespaceNotFound(request.namespaces(0));
    script = std::move(watches_.front());
    watches_.erase(watches_.begin());
  }
  for (size_t i = 0; i < script.messages.size(); ++i) {
    if (script.before) script.before(i);
    writer->Write(As<Response>(script.messages[i]));
  }
  if (script.before) script.before(script.messages.size());
  absl::MutexLock lock(&mu_);
  AwaitLeave(*context, script.hang);
  return script.end;
}

grpc::Status FakeService::WatchExpired(
    Context* context, const v1::WatchExpiredRequest* request,
    grpc::ServerWriter<v1::WatchExpiredResponse>* writer) {
  return PlayWatch(context, *request, writer);
}

grpc::Status FakeService::ConsumeExpired(
    Context* context, const v1::ConsumeExpiredRequest* request,
    grpc::ServerWriter<v1::ConsumeExpiredResponse>* writer) {
  return PlayWatch(context, *request, writer);
}

grpc::Status FakeService::WatchChanges(
    Context* context, const v1::WatchChangesRequest* request,
    grpc::ServerWriter<v1::WatchChangesResponse>* writer) {
  return PlayWatch(context, *request, writer);
}

grpc::Status FakeService::WatchExpiring(
    Context* context, const v1::WatchExpiringRequest* request,
    grpc::ServerWriter<v1::WatchExpiringResponse>* writer) {
  return PlayWatch(context, *request, writer);
}

}  // namespace timecache
