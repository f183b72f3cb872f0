// timecache.v1.TimeCacheService: validates, calls the store, translates.

#ifndef TIMECACHED_SERVER_RPC_DATA_TIME_CACHE_SERVICE_H_
#define TIMECACHED_SERVER_RPC_DATA_TIME_CACHE_SERVICE_H_

#include "absl/time/time.h"
#include "server/edge/response/open_streams.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/call_tails.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/data/scan_token.h"
#include "server/rpc/watch/watch_hub.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::server {

// All methods are raw: watches write bytes that were encoded once for all of them;
// Execute and Pipeline read operations in place.
//
// Thread-safe. Handlers never block: a unary call is answered on the thread
// that took it, unless the store completes later.
class TimeCacheService final
    : public RawService<v1::TimeCacheService::Service> {
 public:
  // None is owned; all must outlive the service and its calls.
  TimeCacheService(const CallGate* gate, Store* store, WatchHub* hub,
                   OpenStreams* streams, FairExecutor* executor,
                   const config::v1::ServerLimits& limits, CallTails* tails,
                   CountedCalls* counted);

 private:
  template <typename Request>
  void ServeOperation(const Method& method);
  template <typename Request>
  void ServeWatch(const Method& method);

  grpc::ServerUnaryReactor* AnswerSize(Context* context, const Bytes* request,
                                       Bytes* response);
  grpc::ServerUnaryReactor* AnswerBatch(Context* context, const Bytes* request,
                                        Bytes* response);
  grpc::ServerUnaryReactor* AnswerSettle(Context* context, const Bytes* request,
                                         Bytes* response);

  const CallGate& gate_;
  Store* const store_;
  WatchHub* const hub_;
  OpenStreams* const streams_;
  FairExecutor* const executor_;
  const ScanTokens scan_tokens_;
  const absl::Duration max_call_duration_;
  const absl::Duration max_connection_age_;
  CallTails* const tails_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_TIME_CACHE_SERVICE_H_
