#include "server/rpc/data/time_cache_service.h"

#include <memory>
#include <string>
#include <utility>

#include "server/api/proto_operation.h"
#include "server/api/proto_time.h"
#include "server/rpc/call/answer.h"
#include "server/rpc/call/unary_call.h"
#include "server/rpc/data/batch.h"
#include "server/rpc/data/batch_response.h"
#include "server/rpc/data/pipeline_stream.h"
#include "server/rpc/data/scan_stream.h"
#include "server/rpc/watch/fetch_call.h"
#include "server/rpc/watch/settle.h"
#include "server/rpc/watch/watch_stream.h"

namespace timecache::server {
namespace {

// A call of one operation, and its state until the store has completed.
template <typename Request>
struct EntryCall : UnaryCall<Request, OperationAnswer> {
  using UnaryCall<Request, OperationAnswer>::UnaryCall;

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

template <typename Request>
void Execute(Store* store, CallTails* tails,
             std::unique_ptr<EntryCall<Request>> call) {
  auto* const entry = call.get();
  store->Execute(entry->request().namespace_(), {&entry->operation, 1},
                 {&entry->result, 1},
                 [tails, call = std::move(call)](absl::Status status) {
                   if (tails->any() && status.ok()) {
                     tails->Observe(call->call(), call->request().namespace_(),
                                    {&call->operation, 1}, {&call->result, 1});
                   }
                   if (status.ok()) status = call->result.status;
                   call->response() = {call->operation.kind,
                                       call->request().key(), &call->result};
                   call->Finish(status);
                 });
}

// Runs the one operation that the request asks for.
template <typename Request>
grpc::ServerUnaryReactor* ExecuteOne(const CallGate& gate, const Method& method,
                                     grpc::CallbackServerContext* context,
                                     Store* store, CallTails* tails,
                                     const grpc::ByteBuffer* bytes,
                                     grpc::ByteBuffer* response) {
  auto call = std::make_unique<EntryCall<Request>>(gate, method, context, bytes,
                                                   response);
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
  call->call().set_operations(1);
  grpc::ServerUnaryReactor* const reactor = call->reactor();
  ResponseAccount* const account = call->account();
  if (account == nullptr || !AnswersWithEntry(call->operation) ||
      account->HasRoom()) {
    Execute(store, tails, std::move(call));
    return reactor;
  }
  const size_t request_bytes = call->request_bytes();
  account->WhenRoom(
      [store, tails, call = std::move(call)](absl::Status room) mutable {
        if (room.ok()) {
          Execute(store, tails, std::move(call));
        } else {
          call->Finish(room);
        }
      },
      request_bytes);
  return reactor;
}

}  // namespace

template <typename Request>
void TimeCacheService::ServeOperation(const Method& method) {
  Serve<UnaryHandler>(
      method,
      [this, &method](Context* context, const Bytes* request, Bytes* response) {
        return ExecuteOne<Request>(gate_, method, context, store_, tails_,
                                   request, response);
      });
}

template <typename Request>
void TimeCacheService::ServeWatch(const Method& method) {
  Serve<WriteHandler>(method,
                      [this, &method](Context* context, const Bytes* request) {
                        return WatchStream::Start<Request>(
                            gate_, method, context, hub_, store_, *request);
                      });
}

TimeCacheService::TimeCacheService(const CallGate* gate, Store* store,
                                   WatchHub* hub, OpenStreams* streams,
                                   FairExecutor* executor,
                                   const config::v1::ServerLimits& limits,
                                   CallTails* tails, CountedCalls* counted)
    : RawService(counted),
      gate_(*gate),
      store_(store),
      hub_(hub),
      streams_(streams),
      executor_(executor),
      max_call_duration_(ToDuration(limits.max_call_duration())),
      max_connection_age_(ToDuration(limits.max_connection_age())),
      tails_(tails) {
  ServeOperation<v1::PutRequest>(methods::kPut);
  ServeOperation<v1::GetRequest>(methods::kGet);
  ServeOperation<v1::RemoveRequest>(methods::kRemove);
  ServeOperation<v1::ContainsRequest>(methods::kContains);
  ServeOperation<v1::TouchRequest>(methods::kTouch);
  ServeOperation<v1::AppendRequest>(methods::kAppend);
  ServeOperation<v1::CombineRequest>(methods::kCombine);
  ServeOperation<v1::GatherRequest>(methods::kGather);
  ServeWatch<v1::WatchExpiredRequest>(methods::kWatchExpired);
  ServeWatch<v1::ConsumeExpiredRequest>(methods::kConsumeExpired);
  ServeWatch<v1::WatchExpiringRequest>(methods::kWatchExpiring);
  ServeWatch<v1::WatchChangesRequest>(methods::kWatchChanges);
  Serve<UnaryHandler>(methods::kFetchExpired, [this](Context* context,
                                                     const Bytes* request,
                                                     Bytes* response) {
    return FetchCall::Start(gate_, context, hub_, store_, *request, response);
  });
  Serve<UnaryHandler>(
      methods::kSize,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerSize(context, request, response);
      });
  Serve<UnaryHandler>(
      methods::kExecute,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerBatch(context, request, response);
      });
  Serve<UnaryHandler>(
      methods::kSettleExpired,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerSettle(context, request, response);
      });
  Serve<BidiHandler>(methods::kPipeline, [this](Context* context) {
    return PipelineStream::Start(gate_, context, {store_, executor_, tails_},
                                 streams_, max_connection_age_);
  });
  Serve<WriteHandler>(
      methods::kScan, [this](Context* context, const Bytes* request) {
        return ScanStream::Start(gate_, context, store_, streams_, executor_,
                                 &scan_tokens_, max_call_duration_, *request);
      });
}

grpc::ServerUnaryReactor* TimeCacheService::AnswerSize(Context* context,
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

grpc::ServerUnaryReactor* TimeCacheService::AnswerBatch(Context* context,
                                                        const Bytes* request,
                                                        Bytes* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<BatchCall>(gate_, methods::kExecute, context);
  auto* const one = owned.get();
  one->batch.Run(
      &one->call, {store_, executor_, tails_}, *request, one->account,
      [reactor, response, owned = std::move(owned)](
          const absl::Status& status, const grpc::ByteBuffer& answer) {
        *response = answer;
        if (owned->counted != nullptr) owned->counted->Answer();
        reactor->Finish(owned->call.End(status));
      });
  return reactor;
}

grpc::ServerUnaryReactor* TimeCacheService::AnswerSettle(Context* context,
                                                         const Bytes* request,
                                                         Bytes* response) {
  return Answer<SettleRequest, SettleAnswer>(
      gate_, methods::kSettleExpired, context, request, response, nullptr,
      [this](const auto& unary) -> absl::Status {
        const absl::Status access = unary->call().Authorize(
            config::v1::VERB_SETTLE, unary->request().namespace_name());
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
