// timecache.v1.TimeCacheService: validates, calls the store, translates.

#ifndef TIMECACHED_SERVER_RPC_DATA_TIME_CACHE_SERVICE_H_
#define TIMECACHED_SERVER_RPC_DATA_TIME_CACHE_SERVICE_H_

#include "absl/time/time.h"
#include "server/edge/response/open_streams.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/data/scan_token.h"
#include "server/rpc/watch/watch_hub.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::server {

// All methods are raw. So requests are parsed here, where errors in them can be
// described; watches write bytes that were encoded once for all of them;
// Execute and Pipeline read operations in place.
namespace methods {
using S = v1::TimeCacheService;
using Changes =
    S::WithRawCallbackMethod_Append<S::WithRawCallbackMethod_Combine<
        S::WithRawCallbackMethod_Gather<S::Service>>>;
using Entries = S::WithRawCallbackMethod_Put<
    S::WithRawCallbackMethod_Get<S::WithRawCallbackMethod_Remove<
        S::WithRawCallbackMethod_Contains<S::WithRawCallbackMethod_Touch<
            S::WithRawCallbackMethod_Size<Changes>>>>>>;
using Streams = S::WithRawCallbackMethod_Pipeline<
    S::WithRawCallbackMethod_Scan<S::WithRawCallbackMethod_WatchExpired<
        S::WithRawCallbackMethod_ConsumeExpired<
            S::WithRawCallbackMethod_WatchExpiring<Entries>>>>>;
using All = S::WithRawCallbackMethod_Execute<
    S::WithRawCallbackMethod_SettleExpired<Streams>>;
}  // namespace methods

// Thread-safe. Handlers never block: a unary call is answered on the thread
// that took it, unless the store completes later.
class TimeCacheService final : public RawService<methods::All> {
 public:
  // None is owned; all must outlive the service and its calls.
  TimeCacheService(const CallGate* gate, Store* store, WatchHub* hub,
                   OpenStreams* streams, FairExecutor* executor,
                   absl::Duration max_call_duration)
      : gate_(*gate),
        store_(store),
        hub_(hub),
        streams_(streams),
        executor_(executor),
        max_call_duration_(max_call_duration) {}

  grpc::ServerUnaryReactor* Put(Context* context, const Bytes* request,
                                Bytes* response) override;
  grpc::ServerUnaryReactor* Get(Context* context, const Bytes* request,
                                Bytes* response) override;
  grpc::ServerUnaryReactor* Remove(Context* context, const Bytes* request,
                                   Bytes* response) override;
  grpc::ServerUnaryReactor* Contains(Context* context, const Bytes* request,
                                     Bytes* response) override;
  grpc::ServerUnaryReactor* Size(Context* context, const Bytes* request,
                                 Bytes* response) override;
  grpc::ServerUnaryReactor* Touch(Context* context, const Bytes* request,
                                  Bytes* response) override;
  grpc::ServerUnaryReactor* Append(Context* context, const Bytes* request,
                                   Bytes* response) override;
  grpc::ServerUnaryReactor* Combine(Context* context, const Bytes* request,
                                    Bytes* response) override;
  grpc::ServerUnaryReactor* Gather(Context* context, const Bytes* request,
                                   Bytes* response) override;
  grpc::ServerUnaryReactor* Execute(Context* context, const Bytes* request,
                                    Bytes* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Pipeline(
      Context* context) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Scan(
      Context* context, const Bytes* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchExpired(
      Context* context, const Bytes* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ConsumeExpired(
      Context* context, const Bytes* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchExpiring(
      Context* context, const Bytes* request) override;
  grpc::ServerUnaryReactor* SettleExpired(Context* context,
                                          const Bytes* request,
                                          Bytes* response) override;

 private:
  const CallGate& gate_;
  Store* const store_;
  WatchHub* const hub_;
  OpenStreams* const streams_;
  FairExecutor* const executor_;
  const ScanTokens scan_tokens_;
  const absl::Duration max_call_duration_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_TIME_CACHE_SERVICE_H_
