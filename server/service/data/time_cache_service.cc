#include "server/service/data/time_cache_service.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "server/service/call/convert.h"
#include "server/service/call/unary_call.h"
#include "server/service/data/batch.h"
#include "server/service/data/pipeline_stream.h"
#include "server/service/data/scan_stream.h"
#include "server/service/watch/settle.h"
#include "server/service/watch/watch_stream.h"

namespace timecache::server {
namespace {

// A unary call, and what it holds until the store has completed.
template <typename Request, typename Response, typename Question,
          typename Answer>
struct One {
  using UnaryCall = server::UnaryCall<Request, Response>;

  template <typename... Arguments>
  explicit One(const Arguments&... arguments) : unary(arguments...) {}

  UnaryCall unary;
  Question question;
  Answer answer;
};

// What can make such a request too large.
template <typename Request>
constexpr absl::string_view kLargeField = requires(const Request& request) {
  request.value();
}
? "value" : "";

struct OneBatch {
  OneBatch(const CallGate& gate, const Method& method,
           grpc::CallbackServerContext* context)
      : counted(CountedCall::Of(context)),
        account(counted == nullptr ? nullptr : counted->Begin(*context)),
        call(gate, method, context) {}

  CountedCall* const counted;
  ResponseAccount* const account;
  Call call;
  Batch batch;
};

// Whether it may answer with a value.
bool AnswersWithEntry(const Operation& operation) {
  return operation.kind == OpKind::kGet || operation.return_previous;
}

template <typename Owned, typename Answer>
void Execute(Store* store, Owned owned, Answer answer) {
  auto* const one = owned.get();
  store->Execute(one->unary.request().namespace_(), {&one->question, 1},
                 {&one->answer, 1},
                 [answer, owned = std::move(owned)](absl::Status status) {
                   if (status.ok()) status = owned->answer.status;
                   if (status.ok()) {
                     answer(owned->unary.request(), owned->answer,
                            &owned->unary.response());
                   }
                   owned->unary.Finish(status);
                 });
}

// Runs the one operation that the request asks for, and `answer` on its result.
template <typename Request, typename Response, typename Answer>
grpc::ServerUnaryReactor* RunOne(const CallGate& gate, const Method& method,
                                 grpc::CallbackServerContext* context,
                                 Store* store, const grpc::ByteBuffer* bytes,
                                 grpc::ByteBuffer* response, Answer answer) {
  auto owned = std::make_unique<One<Request, Response, Operation, Result>>(
      gate, method, context, bytes, response);
  auto* const one = owned.get();
  absl::Status status = one->unary.Read(kLargeField<Request>);
  if (!status.ok()) return one->unary.Finish(status);
  const Request& request = one->unary.request();
  absl::StatusOr<Operation> operation = ToOperation(request);
  // Who may do nothing here is told nothing else.
  status = one->unary.call().Authorize(
      operation.ok() ? VerbsOf(*operation) : Verbs(), request.namespace_());
  if (status.ok()) status = operation.status();
  if (!status.ok()) return one->unary.Finish(status);
  one->question = *operation;
  grpc::ServerUnaryReactor* const reactor = one->unary.reactor();
  ResponseAccount* const account = one->unary.account();
  if (account == nullptr || !AnswersWithEntry(one->question) ||
      account->HasRoom()) {
    Execute(store, std::move(owned), answer);
    return reactor;
  }
  account->WhenRoom(
      [store, answer, owned = std::move(owned)](absl::Status room) mutable {
        if (room.ok()) {
          Execute(store, std::move(owned), answer);
        } else {
          owned->unary.Finish(room);
        }
      });
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* TimeCacheService::Put(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return RunOne<v1::PutRequest, v1::PutResponse>(
      gate_, methods::kPut, context, store_, request, response,
      [](const v1::PutRequest& request, Result& result, v1::PutResponse* to) {
        to->set_version(result.version);
        if (result.has_entry) {
          SetEntry(request.key(), &result.entry, to->mutable_previous());
        }
      });
}

grpc::ServerUnaryReactor* TimeCacheService::Get(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return RunOne<v1::GetRequest, v1::GetResponse>(
      gate_, methods::kGet, context, store_, request, response,
      [](const v1::GetRequest& request, Result& result, v1::GetResponse* to) {
        if (result.has_entry) {
          SetEntry(request.key(), &result.entry, to->mutable_entry());
        }
      });
}

grpc::ServerUnaryReactor* TimeCacheService::Remove(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return RunOne<v1::RemoveRequest, v1::RemoveResponse>(
      gate_, methods::kRemove, context, store_, request, response,
      [](const v1::RemoveRequest& request, Result& result,
         v1::RemoveResponse* to) {
        to->set_removed(result.found);
        if (result.has_entry) {
          SetEntry(request.key(), &result.entry, to->mutable_previous());
        }
      });
}

grpc::ServerUnaryReactor* TimeCacheService::Contains(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return RunOne<v1::ContainsRequest, v1::ContainsResponse>(
      gate_, methods::kContains, context, store_, request, response,
      [](const v1::ContainsRequest&, Result& result, v1::ContainsResponse* to) {
        to->set_contains(result.found);
      });
}

grpc::ServerUnaryReactor* TimeCacheService::Touch(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return RunOne<v1::TouchRequest, v1::TouchResponse>(
      gate_, methods::kTouch, context, store_, request, response,
      [](const v1::TouchRequest&, Result& result, v1::TouchResponse* to) {
        to->set_touched(result.found);
        to->set_version(result.version);
      });
}

grpc::ServerUnaryReactor* TimeCacheService::Size(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  auto owned = std::make_unique<
      One<v1::SizeRequest, v1::SizeResponse, std::monostate, MapSize>>(
      gate_, methods::kSize, context, request, response);
  auto* const one = owned.get();
  absl::Status status = one->unary.Read();
  const std::string& name = one->unary.request().namespace_();
  if (status.ok())
    status = one->unary.call().Authorize(config::v1::VERB_READ, name);
  if (!status.ok()) return one->unary.Finish(status);
  grpc::ServerUnaryReactor* const reactor = one->unary.reactor();
  store_->GetSize(
      name, &one->answer, [owned = std::move(owned)](absl::Status status) {
        v1::SizeResponse& to = owned->unary.response();
        to.set_entries(static_cast<uint64_t>(owned->answer.entries));
        to.set_bytes(static_cast<uint64_t>(owned->answer.bytes));
        owned->unary.Finish(status);
      });
  return reactor;
}

grpc::ServerUnaryReactor* TimeCacheService::Execute(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<OneBatch>(gate_, methods::kExecute, context);
  auto* const one = owned.get();
  one->batch.Run(&one->call, store_, *request, one->account,
                 [reactor, response, owned = std::move(owned)](
                     absl::Status status, grpc::ByteBuffer answer) {
                   *response = std::move(answer);
                   if (owned->counted != nullptr) owned->counted->Answer();
                   reactor->Finish(owned->call.End(status));
                 });
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
TimeCacheService::Pipeline(grpc::CallbackServerContext* context) {
  return PipelineStream::Start(gate_, context, store_, streams_);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::Scan(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return ScanStream::Start(gate_, context, store_, streams_, turns_,
                           max_call_duration_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::WatchExpired(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return WatchStream::Start<v1::WatchExpiredRequest>(
      gate_, methods::kWatchExpired, context, hub_, store_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::ConsumeExpired(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return WatchStream::Start<v1::ConsumeExpiredRequest>(
      gate_, methods::kConsumeExpired, context, hub_, store_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::WatchExpiring(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return WatchStream::Start<v1::WatchExpiringRequest>(
      gate_, methods::kWatchExpiring, context, hub_, store_, *request);
}

grpc::ServerUnaryReactor* TimeCacheService::SettleExpired(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  const auto unary = std::make_shared<
      UnaryCall<v1::SettleExpiredRequest, v1::SettleExpiredResponse>>(
      gate_, methods::kSettleExpired, context, request, response);
  absl::Status status = unary->Read("settlements");
  if (status.ok()) status = unary->CheckShare();
  if (status.ok()) {
    status = unary->call().Authorize(config::v1::VERB_SETTLE,
                                     unary->request().namespace_());
  }
  if (!status.ok()) return unary->Finish(status);
  grpc::ServerUnaryReactor* const reactor = unary->reactor();
  Settle(unary->request(), store_, &unary->response(),
         [unary](const absl::Status& status, const RefusalCount& refused) {
           refused.Tell(unary->call());
           unary->Finish(status);
         });
  return reactor;
}

}  // namespace timecache::server
