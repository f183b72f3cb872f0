// timecache.v1.GroupService: administration of consumer groups.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_GROUP_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_GROUP_SERVICE_H_

#include "server/rpc/admin/admin_service.h"
#include "timecache/v1/groups.grpc.pb.h"

namespace timecache::server {

// Thread-safe. A call is answered by the store's completion.
class GroupService final : public AdminService<v1::GroupService::Service> {
 public:
  // As AdminService's.
  GroupService(const CallGate* gate, Admin admin, CountedCalls* counted);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_GROUP_SERVICE_H_
