#include "server/rpc/data/time_cache_service.h"

#include <memory>
#include <string>
#include <utility>

#include "server/api/proto_operation.h"
#include "server/rpc/call/answer.h"
#include "server/rpc/call/unary_call.h"
#include "server/rpc/data/batch.h"
#include "server/rpc/data/pipeline_stream.h"
#include "server/rpc/data/scan_stream.h"
#include "server/rpc/watch/settle.h"
#include "server/rpc/watch/watch_stream.h"

namespace timecache::server {
namespace {

// A call of one operation, and its state until the store has completed.
template <typename Request, typename Response>
struct EntryCall : UnaryCall<Request, Response> {
  using UnaryCall<Request, Response>::UnaryCall;

  Operation operation;
  // The object that a Gather's operation refers to.
  Gathering gathering;
  Result result;
};

struct BatchCall {
  BatchCall(const CallGate& gate, const Method& method,
            grpc::CallbackServerContext* context)
      : counted(CountedCall::Of(context)),
        account(counted == nullptr ? nullptr : counted->Begin(*context)),
        call(gate, method, context, account) {}

  CountedCall* const counted;
  ResponseAccount* const account;
  Call call;
  Batch batch;
};

// Whether it may return a value.
bool AnswersWithEntry(const Operation& operation) {
  return operation.kind == OpKind::kGet || operation.kind == OpKind::kGather ||
         operation.return_previous;
}

template <typename Call>
absl::StatusOr<Operation> OperationOf(Call* call) {
  if constexpr (requires { call->request().part(); }) {
    return ToOperation(call->request(), &call->gathering);
  } else {
    return ToOperation(call->request());
  }
}

// The response to a request.

void ToResponse(const v1::PutRequest& request, Result* result,
                v1::PutResponse* to) {
  to->set_version(result->version);
  if (result->has_entry) {
    SetEntry(request.key(), &result->entry, to->mutable_previous());
  }
}

void ToResponse(const v1::GetRequest& request, Result* result,
                v1::GetResponse* to) {
  if (result->has_entry) {
    SetEntry(request.key(), &result->entry, to->mutable_entry());
  }
}

void ToResponse(const v1::RemoveRequest& request, Result* result,
                v1::RemoveResponse* to) {
  to->set_removed(result->found);
  if (result->has_entry) {
    SetEntry(request.key(), &result->entry, to->mutable_previous());
  }
}

void ToResponse(const v1::ContainsRequest& /*request*/, Result* result,
                v1::ContainsResponse* to) {
  to->set_contains(result->found);
}

void ToResponse(const v1::TouchRequest& /*request*/, Result* result,
                v1::TouchResponse* to) {
  to->set_touched(result->found);
  to->set_version(result->version);
}

void ToResponse(const v1::AppendRequest& /*request*/, Result* result,
                v1::AppendResponse* to) {
  to->set_version(result->version);
  to->set_value_bytes(static_cast<uint64_t>(result->number));
  to->set_created(!result->found);
}

void ToResponse(const v1::CombineRequest& /*request*/, Result* result,
                v1::CombineResponse* to) {
  to->set_result(result->number);
  to->set_version(result->version);
  to->set_created(!result->found && !result->removed);
  to->set_removed(result->removed);
}

void ToResponse(const v1::GatherRequest& /*request*/, Result* result,
                v1::GatherResponse* to) {
  to->set_version(result->version);
  to->set_count(static_cast<uint32_t>(result->number));
  to->set_duplicate(result->duplicate);
  if (result->has_entry) {
    SetParts(result->entry.value, v1::GatherResponse::kPartsFieldNumber, to);
  }
}

template <typename Request, typename Response>
void Execute(Store* store, std::unique_ptr<EntryCall<Request, Response>> call) {
  auto* const entry = call.get();
  store->Execute(
      entry->request().namespace_(), {&entry->operation, 1},
      {&entry->result, 1}, [call = std::move(call)](absl::Status status) {
        if (status.ok()) status = call->result.status;
        if (status.ok()) {
          ToResponse(call->request(), &call->result, &call->response());
        }
        call->Finish(status);
      });
}

// Runs the one operation that the request asks for.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ExecuteOne(const CallGate& gate, const Method& method,
                                     grpc::CallbackServerContext* context,
                                     Store* store,
                                     const grpc::ByteBuffer* bytes,
                                     grpc::ByteBuffer* response) {
  auto call = std::make_unique<EntryCall<Request, Response>>(
      gate, method, context, bytes, response);
  absl::Status status = call->Read();
  if (!status.ok()) return call->Finish(status);
  absl::StatusOr<Operation> operation = OperationOf(call.get());
  // A caller without any permission here gets no other error.
  status =
      call->call().Authorize(operation.ok() ? VerbsOf(*operation) : Verbs(),
                             call->request().namespace_());
  if (status.ok()) status = operation.status();
  if (!status.ok()) return call->Finish(status);
  call->operation = *operation;
  grpc::ServerUnaryReactor* const reactor = call->reactor();
  ResponseAccount* const account = call->account();
  if (account == nullptr || !AnswersWithEntry(call->operation) ||
      account->HasRoom()) {
    Execute(store, std::move(call));
    return reactor;
  }
  const size_t request_bytes = call->request_bytes();
  account->WhenRoom(
      [store, call = std::move(call)](absl::Status room) mutable {
        if (room.ok()) {
          Execute(store, std::move(call));
        } else {
          call->Finish(room);
        }
      },
      request_bytes);
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* TimeCacheService::Put(Context* context,
                                                const Bytes* request,
                                                Bytes* response) {
  return ExecuteOne<v1::PutRequest, v1::PutResponse>(
      gate_, methods::kPut, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Get(Context* context,
                                                const Bytes* request,
                                                Bytes* response) {
  return ExecuteOne<v1::GetRequest, v1::GetResponse>(
      gate_, methods::kGet, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Remove(Context* context,
                                                   const Bytes* request,
                                                   Bytes* response) {
  return ExecuteOne<v1::RemoveRequest, v1::RemoveResponse>(
      gate_, methods::kRemove, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Contains(Context* context,
                                                     const Bytes* request,
                                                     Bytes* response) {
  return ExecuteOne<v1::ContainsRequest, v1::ContainsResponse>(
      gate_, methods::kContains, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Touch(Context* context,
                                                  const Bytes* request,
                                                  Bytes* response) {
  return ExecuteOne<v1::TouchRequest, v1::TouchResponse>(
      gate_, methods::kTouch, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Append(Context* context,
                                                   const Bytes* request,
                                                   Bytes* response) {
  return ExecuteOne<v1::AppendRequest, v1::AppendResponse>(
      gate_, methods::kAppend, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Combine(Context* context,
                                                    const Bytes* request,
                                                    Bytes* response) {
  return ExecuteOne<v1::CombineRequest, v1::CombineResponse>(
      gate_, methods::kCombine, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Gather(Context* context,
                                                   const Bytes* request,
                                                   Bytes* response) {
  return ExecuteOne<v1::GatherRequest, v1::GatherResponse>(
      gate_, methods::kGather, context, store_, request, response);
}

grpc::ServerUnaryReactor* TimeCacheService::Size(Context* context,
                                                 const Bytes* request,
                                                 Bytes* response) {
  auto unary = std::make_unique<UnaryCall<v1::SizeRequest, v1::SizeResponse>>(
      gate_, methods::kSize, context, request, response);
  absl::Status status = unary->Read();
  const std::string& name = unary->request().namespace_();
  if (status.ok()) {
    status = unary->call().Authorize(config::v1::VERB_READ, name);
  }
  if (!status.ok()) return unary->Finish(status);
  grpc::ServerUnaryReactor* const reactor = unary->reactor();
  store_->GetSize(name, [unary = std::move(unary)](
                            const absl::StatusOr<NamespaceSize>& size) {
    if (size.ok()) {
      v1::SizeResponse& to = unary->response();
      to.set_entries(static_cast<uint64_t>(size->entries));
      to.set_bytes(static_cast<uint64_t>(size->bytes));
    }
    unary->Finish(size.status());
  });
  return reactor;
}

grpc::ServerUnaryReactor* TimeCacheService::Execute(Context* context,
                                                    const Bytes* request,
                                                    Bytes* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<BatchCall>(gate_, methods::kExecute, context);
  auto* const one = owned.get();
  one->batch.Run(
      &one->call, {store_, executor_}, *request, one->account,
      [reactor, response, owned = std::move(owned)](
          const absl::Status& status, const grpc::ByteBuffer& answer) {
        *response = answer;
        if (owned->counted != nullptr) owned->counted->Answer();
        reactor->Finish(owned->call.End(status));
      });
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
TimeCacheService::Pipeline(Context* context) {
  return PipelineStream::Start(gate_, context, {store_, executor_}, streams_);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::Scan(
    Context* context, const Bytes* request) {
  return ScanStream::Start(gate_, context, store_, streams_, executor_,
                           &scan_tokens_, max_call_duration_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::WatchExpired(
    Context* context, const Bytes* request) {
  return WatchStream::Start<v1::WatchExpiredRequest>(
      gate_, methods::kWatchExpired, context, hub_, store_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::ConsumeExpired(
    Context* context, const Bytes* request) {
  return WatchStream::Start<v1::ConsumeExpiredRequest>(
      gate_, methods::kConsumeExpired, context, hub_, store_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::WatchExpiring(
    Context* context, const Bytes* request) {
  return WatchStream::Start<v1::WatchExpiringRequest>(
      gate_, methods::kWatchExpiring, context, hub_, store_, *request);
}

grpc::ServerUnaryReactor* TimeCacheService::SettleExpired(Context* context,
                                                          const Bytes* request,
                                                          Bytes* response) {
  return Answer<v1::SettleExpiredRequest, v1::SettleExpiredResponse>(
      gate_, methods::kSettleExpired, context, request, response, nullptr,
      [this](const auto& unary) -> absl::Status {
        const absl::Status access = unary->call().Authorize(
            config::v1::VERB_SETTLE, unary->request().namespace_());
        if (!access.ok()) return access;
        Settle(
            unary->request(), store_, &unary->response(),
            [unary](const absl::Status& status, const RefusalCount& refused) {
              refused.Count(unary->call());
              unary->Finish(status);
            });
        return absl::OkStatus();
      });
}

}  // namespace timecache::server
