// timecache.v1.TimeCacheService: validates, calls the store, translates.

#ifndef TIMECACHED_SERVER_SERVICE_TIME_CACHE_SERVICE_H_
#define TIMECACHED_SERVER_SERVICE_TIME_CACHE_SERVICE_H_

#include "server/engine/registry.h"
#include "server/engine/store.h"
#include "server/service/watch_hub.h"
#include "timecache/v1/timecache.grpc.pb.h"

namespace timecache {

// Thread-safe. Handlers never block: a unary call is answered on the thread
// that took it, unless the store completes later.
// WatchExpired is a raw method: it writes bytes that were encoded once for all
// watchers.
class TimeCacheService final
    : public v1::TimeCacheService::WithRawCallbackMethod_WatchExpired<
          v1::TimeCacheService::CallbackService> {
 public:
  // None is owned; all must outlive the service and its calls.
  TimeCacheService(Store* store, const Registry* registry, WatchHub* hub)
      : store_(store), registry_(registry), hub_(hub) {}

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* context,
                                const v1::PutRequest* request,
                                v1::PutResponse* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetRequest* request,
                                v1::GetResponse* response) override;
  grpc::ServerUnaryReactor* Remove(grpc::CallbackServerContext* context,
                                   const v1::RemoveRequest* request,
                                   v1::RemoveResponse* response) override;
  grpc::ServerUnaryReactor* Contains(grpc::CallbackServerContext* context,
                                     const v1::ContainsRequest* request,
                                     v1::ContainsResponse* response) override;
  grpc::ServerUnaryReactor* Size(grpc::CallbackServerContext* context,
                                 const v1::SizeRequest* request,
                                 v1::SizeResponse* response) override;
  grpc::ServerUnaryReactor* Touch(grpc::CallbackServerContext* context,
                                  const v1::TouchRequest* request,
                                  v1::TouchResponse* response) override;
  grpc::ServerWriteReactor<v1::ScanResponse>* Scan(
      grpc::CallbackServerContext* context,
      const v1::ScanRequest* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchExpired(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;

 private:
  Store* const store_;
  const Registry* const registry_;
  WatchHub* const hub_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_TIME_CACHE_SERVICE_H_
