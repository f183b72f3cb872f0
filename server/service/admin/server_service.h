// timecache.v1.ServerService: says what the server is.

#ifndef TIMECACHED_SERVER_SERVICE_ADMIN_SERVER_SERVICE_H_
#define TIMECACHED_SERVER_SERVICE_ADMIN_SERVER_SERVICE_H_

#include <functional>
#include <utility>

#include "server/service/call/call_gate.h"
#include "server/service/call/counted_calls.h"
#include "timecache/v1/server.grpc.pb.h"

namespace timecache::server {

// Thread-safe. Calls are rare and answered inline.
class ServerService final
    : public RawService<v1::ServerService::WithRawCallbackMethod_GetServer<
          v1::ServerService::Service>> {
 public:
  // Says what the server is, and how far its limits are used if `limits`.
  using DescribeServer =
      std::function<void(bool limits, v1::GetServerResponse* server)>;

  // `gate` is not owned, and must outlive the service.
  ServerService(const CallGate* gate, DescribeServer describe_server)
      : gate_(*gate), describe_server_(std::move(describe_server)) {}

  grpc::ServerUnaryReactor* GetServer(Context* context, const Bytes* request,
                                      Bytes* response) override;

 private:
  const CallGate& gate_;
  const DescribeServer describe_server_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_ADMIN_SERVER_SERVICE_H_
