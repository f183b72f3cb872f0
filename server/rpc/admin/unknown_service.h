// Answers calls of unknown methods.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_UNKNOWN_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_UNKNOWN_SERVICE_H_

#include "grpcpp/generic/async_generic_service.h"
#include "server/edge/connection/peer_guard.h"

namespace timecache::server {

// Answers UNIMPLEMENTED with details (UNKNOWN_METHOD, and the method's path in
// the metadata) to calls of services and methods that the server does not have;
// gRPC's own answer has neither message nor details. Reads nothing of them.
// Thread-safe.
class UnknownService final : public grpc::CallbackGenericService {
 public:
  // Observes calls. Not owned.
  explicit UnknownService(PeerGuard* guard) : guard_(guard) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  PeerGuard* const guard_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_UNKNOWN_SERVICE_H_
