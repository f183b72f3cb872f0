// timecache.v1.GroupService: administration of consumer groups.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_GROUP_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_GROUP_SERVICE_H_

#include <utility>

#include "server/engine/store/store.h"
#include "server/rpc/admin/change.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/counted_calls.h"
#include "timecache/v1/groups.grpc.pb.h"

namespace timecache::server {

// As NamespaceService's.
namespace methods {
using G = v1::GroupService;
using Groups = G::WithRawCallbackMethod_CreateGroup<
    G::WithRawCallbackMethod_GetGroup<G::WithRawCallbackMethod_ListGroups<
        G::WithRawCallbackMethod_UpdateGroup<
            G::WithRawCallbackMethod_DeleteGroup<G::Service>>>>>;
}  // namespace methods

// Thread-safe. A call is answered by the store's completion.
class GroupService final : public RawService<methods::Groups> {
 public:
  // None is owned; all must outlive the service and its calls.
  GroupService(const CallGate* gate, Store* store, AdminObserver observer)
      : gate_(*gate), store_(store), observer_(std::move(observer)) {}

  grpc::ServerUnaryReactor* CreateGroup(Context* context, const Bytes* request,
                                        Bytes* response) override;
  grpc::ServerUnaryReactor* GetGroup(Context* context, const Bytes* request,
                                     Bytes* response) override;
  grpc::ServerUnaryReactor* ListGroups(Context* context, const Bytes* request,
                                       Bytes* response) override;
  grpc::ServerUnaryReactor* UpdateGroup(Context* context, const Bytes* request,
                                        Bytes* response) override;
  grpc::ServerUnaryReactor* DeleteGroup(Context* context, const Bytes* request,
                                        Bytes* response) override;

 private:
  const CallGate& gate_;
  Store* const store_;
  const AdminObserver observer_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_GROUP_SERVICE_H_
