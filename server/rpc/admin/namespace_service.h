// timecache.v1.NamespaceService: administration of namespaces.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_NAMESPACE_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_NAMESPACE_SERVICE_H_

#include <utility>

#include "absl/status/status.h"
#include "server/engine/store/store.h"
#include "server/rpc/admin/change.h"
#include "server/rpc/call/call.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/counted_calls.h"
#include "timecache/v1/namespaces.grpc.pb.h"

namespace timecache::server {

// All raw: requests are parsed here, so that errors in them can be described.
namespace methods {
using N = v1::NamespaceService;
using Namespaces = N::WithRawCallbackMethod_CreateNamespace<
    N::WithRawCallbackMethod_GetNamespace<
        N::WithRawCallbackMethod_ListNamespaces<
            N::WithRawCallbackMethod_UpdateNamespace<
                N::WithRawCallbackMethod_DeleteNamespace<
                    N::WithRawCallbackMethod_RotateNamespace<N::Service>>>>>>;
}  // namespace methods

// Thread-safe. A call is answered by the store's completion.
class NamespaceService final : public RawService<methods::Namespaces> {
 public:
  // None is owned; all must outlive the service and its calls.
  NamespaceService(const CallGate* gate, Store* store, AdminObserver observer)
      : gate_(*gate), store_(store), observer_(std::move(observer)) {}

  grpc::ServerUnaryReactor* CreateNamespace(Context* context,
                                            const Bytes* request,
                                            Bytes* response) override;
  grpc::ServerUnaryReactor* GetNamespace(Context* context, const Bytes* request,
                                         Bytes* response) override;
  grpc::ServerUnaryReactor* ListNamespaces(Context* context,
                                           const Bytes* request,
                                           Bytes* response) override;
  grpc::ServerUnaryReactor* UpdateNamespace(Context* context,
                                            const Bytes* request,
                                            Bytes* response) override;
  grpc::ServerUnaryReactor* DeleteNamespace(Context* context,
                                            const Bytes* request,
                                            Bytes* response) override;
  grpc::ServerUnaryReactor* RotateNamespace(Context* context,
                                            const Bytes* request,
                                            Bytes* response) override;

 private:
  const CallGate& gate_;
  Store* const store_;
  const AdminObserver observer_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_NAMESPACE_SERVICE_H_
