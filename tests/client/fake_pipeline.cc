// The batches of FakeService: each operation by the call of its name.
#include <utility>

#include "google/rpc/status.pb.h"
#include "tests/client/fake_service.h"

namespace timecache {
namespace {

google::rpc::Status ToRpcStatus(const grpc::Status& status) {
  google::rpc::Status result;
  result.ParseFromString(status.error_details());
  result.set_code(status.error_code());
  result.set_message(status.error_message());
  return result;
}

}  // namespace

void FakeService::Do(grpc::ServerContext* context, const std::string& ns,
                     v1::Operation operation, v1::OperationResult& result) {
  const auto call = [&](auto method, auto* request, auto* response) {
    request->set_namespace_(ns);
    const grpc::Status status = (this->*method)(context, request, response);
    if (!status.ok()) *result.mutable_error() = ToRpcStatus(status);
  };
  switch (operation.request_case()) {
    case v1::Operation::kPut:
      call(&FakeService::Put, operation.mutable_put(), result.mutable_put());
      if (result.put().has_previous()) {
        result.mutable_put()->mutable_previous()->clear_key();
      }
      break;
    case v1::Operation::kGet:
      call(&FakeService::Get, operation.mutable_get(), result.mutable_get());
      if (result.get().has_entry()) {
        result.mutable_get()->mutable_entry()->clear_key();
      }
      break;
    case v1::Operation::kRemove:
      call(&FakeService::Remove, operation.mutable_remove(),
           result.mutable_remove());
      if (result.remove().has_previous()) {
        result.mutable_remove()->mutable_previous()->clear_key();
      }
      break;
    case v1::Operation::kContains:
      call(&FakeService::Contains, operation.mutable_contains(),
           result.mutable_contains());
      break;
    case v1::Operation::kTouch:
      call(&FakeService::Touch, operation.mutable_touch(),
           result.mutable_touch());
      break;
    case v1::Operation::kAppend:
      call(&FakeService::Append, operation.mutable_append(),
           result.mutable_append());
      break;
    case v1::Operation::kCombine:
      call(&FakeService::Combine, operation.mutable_combine(),
           result.mutable_combine());
      break;
    case v1::Operation::kGather:
      call(&FakeService::Gather, operation.mutable_gather(),
           result.mutable_gather());
      break;
    case v1::Operation::REQUEST_NOT_SET:
      *result.mutable_error() = ToRpcStatus(
          MakeError(grpc::StatusCode::INVALID_ARGUMENT,
                    "operation: says nothing to do", v1::INVALID_FIELD));
  }
}

grpc::Status FakeService::Execute(grpc::ServerContext* context,
                                  const v1::ExecuteRequest* request,
                                  v1::ExecuteResponse* response) {
  {
    absl::MutexLock lock(&mu_);
    if (namespaces_.count(request->namespace_()) == 0) {
      return NamespaceNotFound(request->namespace_());
    }
  }
  if (request->operations().empty()) {
    return MakeError(grpc::StatusCode::INVALID_ARGUMENT,
                     "operations: must be at least 1", v1::INVALID_FIELD);
  }
  for (const v1::Operation& operation : request->operations()) {
    Do(context, request->namespace_(), operation, *response->add_results());
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::Pipeline(
    grpc::ServerContext* context,
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
    const grpc::Status status = Execute(context, &request, &response);
    if (!status.ok()) return status;
    if (script.forget_a_result) response.mutable_results()->RemoveLast();
    stream->Write(response);
  }
  return script.end;
}

}  // namespace timecache
