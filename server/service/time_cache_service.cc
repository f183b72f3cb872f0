#include "server/service/time_cache_service.h"

#include <memory>
#include <utility>
#include <variant>

#include "server/service/batch.h"
#include "server/service/call.h"
#include "server/service/convert.h"
#include "server/service/pipeline_stream.h"
#include "server/service/scan_stream.h"
#include "server/service/settle.h"
#include "server/service/watch_stream.h"

namespace timecache {
namespace {

// A unary call, and what it holds until the store has completed.
template <typename Question, typename Answer>
struct One {
  One(const CallGate& gate, const Method& method,
      grpc::CallbackServerContext* context)
      : call(gate, method, context) {}

  Call call;
  Question question;
  Answer answer;
};

// Runs the one operation that `request` asks for, and `answer` on its result.
template <typename Request, typename Answer>
grpc::ServerUnaryReactor* RunOne(const CallGate& gate, const Method& method,
                                 grpc::CallbackServerContext* context,
                                 Store* store, const Request& request,
                                 Answer answer) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<One<Operation, Result>>(gate, method, context);
  auto* const one = owned.get();
  absl::StatusOr<Operation> operation = ToOperation(request);
  // Who may do nothing here is told nothing else.
  absl::Status status = one->call.Authorize(
      operation.ok() ? VerbsOf(*operation) : Verbs(), request.namespace_());
  if (status.ok()) status = operation.status();
  if (!status.ok()) {
    reactor->Finish(one->call.End(status));
    return reactor;
  }
  one->question = *operation;
  store->Execute(
      request.namespace_(), {&one->question, 1}, {&one->answer, 1},
      [reactor, answer, owned = std::move(owned)](absl::Status status) {
        if (status.ok()) status = owned->answer.status;
        if (status.ok()) answer(owned->answer);
        reactor->Finish(owned->call.End(status));
      });
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* TimeCacheService::Put(
    grpc::CallbackServerContext* context, const v1::PutRequest* request,
    v1::PutResponse* response) {
  return RunOne(gate_, methods::kPut, context, store_, *request,
                [request, response](Result& result) {
                  response->set_version(result.version);
                  if (result.has_entry) {
                    SetEntry(request->key(), &result.entry,
                             response->mutable_previous());
                  }
                });
}

grpc::ServerUnaryReactor* TimeCacheService::Get(
    grpc::CallbackServerContext* context, const v1::GetRequest* request,
    v1::GetResponse* response) {
  return RunOne(gate_, methods::kGet, context, store_, *request,
                [request, response](Result& result) {
                  if (result.has_entry) {
                    SetEntry(request->key(), &result.entry,
                             response->mutable_entry());
                  }
                });
}

grpc::ServerUnaryReactor* TimeCacheService::Remove(
    grpc::CallbackServerContext* context, const v1::RemoveRequest* request,
    v1::RemoveResponse* response) {
  return RunOne(gate_, methods::kRemove, context, store_, *request,
                [request, response](Result& result) {
                  response->set_removed(result.found);
                  if (result.has_entry) {
                    SetEntry(request->key(), &result.entry,
                             response->mutable_previous());
                  }
                });
}

grpc::ServerUnaryReactor* TimeCacheService::Contains(
    grpc::CallbackServerContext* context, const v1::ContainsRequest* request,
    v1::ContainsResponse* response) {
  return RunOne(
      gate_, methods::kContains, context, store_, *request,
      [response](Result& result) { response->set_contains(result.found); });
}

grpc::ServerUnaryReactor* TimeCacheService::Touch(
    grpc::CallbackServerContext* context, const v1::TouchRequest* request,
    v1::TouchResponse* response) {
  return RunOne(gate_, methods::kTouch, context, store_, *request,
                [response](Result& result) {
                  response->set_touched(result.found);
                  response->set_version(result.version);
                });
}

grpc::ServerUnaryReactor* TimeCacheService::Size(
    grpc::CallbackServerContext* context, const v1::SizeRequest* request,
    v1::SizeResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<One<std::monostate, TimeCacheMap::Size>>(
      gate_, methods::kSize, context);
  auto* const one = owned.get();
  absl::Status status =
      one->call.Authorize(v1::VERB_READ, request->namespace_());
  if (!status.ok()) {
    reactor->Finish(one->call.End(status));
    return reactor;
  }
  store_->GetSize(
      request->namespace_(), &one->answer,
      [reactor, response, owned = std::move(owned)](absl::Status status) {
        const TimeCacheMap::Size& size = owned->answer;
        response->set_entries(static_cast<uint64_t>(size.entries));
        response->set_bytes(static_cast<uint64_t>(size.bytes));
        reactor->Finish(owned->call.End(status));
      });
  return reactor;
}

grpc::ServerUnaryReactor* TimeCacheService::Execute(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<One<Batch, std::monostate>>(
      gate_, methods::kExecute, context);
  auto* const one = owned.get();
  one->question.Run(&one->call, store_, *request,
                    [reactor, response, owned = std::move(owned)](
                        absl::Status status, grpc::ByteBuffer answer) {
                      *response = std::move(answer);
                      reactor->Finish(owned->call.End(status));
                    });
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
TimeCacheService::Pipeline(grpc::CallbackServerContext* context) {
  return PipelineStream::Start(gate_, context, store_, streams_);
}

grpc::ServerWriteReactor<v1::ScanResponse>* TimeCacheService::Scan(
    grpc::CallbackServerContext* context, const v1::ScanRequest* request) {
  return ScanStream::Start(gate_, context, store_, streams_, max_call_duration_,
                           *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::WatchExpired(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return WatchStream::Start(gate_, context, hub_, *registry_, *request);
}

grpc::ServerUnaryReactor* TimeCacheService::SettleExpired(
    grpc::CallbackServerContext* context,
    const v1::SettleExpiredRequest* request,
    v1::SettleExpiredResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  Call call(gate_, methods::kSettleExpired, context);
  absl::Status status = call.Authorize(v1::VERB_SETTLE, request->namespace_());
  if (status.ok()) {
    status = Settle(*request, *registry_, hub_->clock()->NowUs(), response);
  }
  reactor->Finish(call.End(status));
  return reactor;
}

}  // namespace timecache
