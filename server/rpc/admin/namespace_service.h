// timecache.v1.NamespaceService: administration of namespaces.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_NAMESPACE_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_NAMESPACE_SERVICE_H_

#include "server/rpc/admin/admin_service.h"
#include "timecache/v1/namespaces.grpc.pb.h"

namespace timecache::server {

// Thread-safe. A call is answered by the store's completion.
class NamespaceService final
    : public AdminService<v1::NamespaceService::Service> {
 public:
  // As AdminService's.
  NamespaceService(const CallGate* gate, Admin admin, CountedCalls* counted);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_NAMESPACE_SERVICE_H_
