#include "server/service/time_cache_service.h"

#include <memory>
#include <utility>

#include "server/service/batch.h"
#include "server/service/convert.h"
#include "server/service/pipeline_stream.h"
#include "server/service/scan_stream.h"
#include "server/service/settle.h"
#include "server/service/status.h"
#include "server/service/watch_stream.h"

namespace timecache {
namespace {

// Runs the one operation that `request` asks for, and `answer` on its result.
template <typename Request, typename Answer>
grpc::ServerUnaryReactor* RunOne(grpc::CallbackServerContext* context,
                                 Store* store, const Request& request,
                                 Answer answer) {
  struct Call {
    Operation operation;
    Result result;
  };
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  absl::StatusOr<Operation> operation = ToOperation(request);
  if (!operation.ok()) {
    reactor->Finish(ToGrpcStatus(operation.status()));
    return reactor;
  }
  auto owned = std::make_unique<Call>();
  Call* const call = owned.get();
  call->operation = *operation;
  store->Execute(
      request.namespace_(), {&call->operation, 1}, {&call->result, 1},
      [reactor, answer, owned = std::move(owned)](absl::Status status) {
        if (status.ok()) status = owned->result.status;
        if (status.ok()) answer(owned->result);
        reactor->Finish(ToGrpcStatus(status));
      });
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* TimeCacheService::Put(
    grpc::CallbackServerContext* context, const v1::PutRequest* request,
    v1::PutResponse* response) {
  return RunOne(context, store_, *request, [request, response](Result& result) {
    response->set_version(result.version);
    if (result.has_entry) {
      SetEntry(request->key(), &result.entry, response->mutable_previous());
    }
  });
}

grpc::ServerUnaryReactor* TimeCacheService::Get(
    grpc::CallbackServerContext* context, const v1::GetRequest* request,
    v1::GetResponse* response) {
  return RunOne(context, store_, *request, [request, response](Result& result) {
    if (result.has_entry) {
      SetEntry(request->key(), &result.entry, response->mutable_entry());
    }
  });
}

grpc::ServerUnaryReactor* TimeCacheService::Remove(
    grpc::CallbackServerContext* context, const v1::RemoveRequest* request,
    v1::RemoveResponse* response) {
  return RunOne(context, store_, *request, [request, response](Result& result) {
    response->set_removed(result.found);
    if (result.has_entry) {
      SetEntry(request->key(), &result.entry, response->mutable_previous());
    }
  });
}

grpc::ServerUnaryReactor* TimeCacheService::Contains(
    grpc::CallbackServerContext* context, const v1::ContainsRequest* request,
    v1::ContainsResponse* response) {
  return RunOne(context, store_, *request, [response](Result& result) {
    response->set_contains(result.found);
  });
}

grpc::ServerUnaryReactor* TimeCacheService::Touch(
    grpc::CallbackServerContext* context, const v1::TouchRequest* request,
    v1::TouchResponse* response) {
  return RunOne(context, store_, *request, [response](Result& result) {
    response->set_touched(result.found);
    response->set_version(result.version);
  });
}

grpc::ServerUnaryReactor* TimeCacheService::Size(
    grpc::CallbackServerContext* context, const v1::SizeRequest* request,
    v1::SizeResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<TimeCacheMap::Size>();
  TimeCacheMap::Size* const size = owned.get();
  store_->GetSize(
      request->namespace_(), size,
      [reactor, response, owned = std::move(owned)](absl::Status status) {
        response->set_entries(static_cast<uint64_t>(owned->entries));
        response->set_bytes(static_cast<uint64_t>(owned->bytes));
        reactor->Finish(ToGrpcStatus(status));
      });
  return reactor;
}

grpc::ServerUnaryReactor* TimeCacheService::Execute(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto owned = std::make_unique<Batch>();
  Batch* const batch = owned.get();
  batch->Run(store_, *request,
             [reactor, response, owned = std::move(owned)](
                 absl::Status status, grpc::ByteBuffer answer) {
               *response = std::move(answer);
               reactor->Finish(ToGrpcStatus(status));
             });
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
TimeCacheService::Pipeline(grpc::CallbackServerContext* /*context*/) {
  return PipelineStream::Start(store_, streams_);
}

grpc::ServerWriteReactor<v1::ScanResponse>* TimeCacheService::Scan(
    grpc::CallbackServerContext* context, const v1::ScanRequest* request) {
  return ScanStream::Start(context, store_, streams_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TimeCacheService::WatchExpired(
    grpc::CallbackServerContext* /*context*/, const grpc::ByteBuffer* request) {
  return WatchStream::Start(hub_, *registry_, *request);
}

grpc::ServerUnaryReactor* TimeCacheService::SettleExpired(
    grpc::CallbackServerContext* context,
    const v1::SettleExpiredRequest* request,
    v1::SettleExpiredResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(
      Settle(*request, *registry_, hub_->clock()->NowUs(), response)));
  return reactor;
}

}  // namespace timecache
