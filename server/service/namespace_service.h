// timecache.v1.NamespaceService: administration of the registry.

#ifndef TIMECACHED_SERVER_SERVICE_NAMESPACE_SERVICE_H_
#define TIMECACHED_SERVER_SERVICE_NAMESPACE_SERVICE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/registry.h"
#include "server/service/call_gate.h"
#include "timecache/v1/namespace.grpc.pb.h"

namespace timecache {

// Thread-safe. Calls are rare and answered inline.
class NamespaceService final : public v1::NamespaceService::CallbackService {
 public:
  // Told of every change, for the log: "namespace_created", "group_deleted" and
  // the like, the namespace's name, and what is to know about it, in one line.
  using Observer =
      std::function<void(absl::string_view event, const std::string& name,
                         const std::string& about)>;

  // Says all about the server that the service is of.
  using DescribeServer = std::function<void(v1::GetServerResponse* server)>;

  // None is owned; all must outlive the service.
  NamespaceService(const CallGate* gate, Registry* registry, const Clock* clock,
                   Observer observer, DescribeServer describe_server)
      : gate_(*gate),
        registry_(registry),
        clock_(clock),
        observer_(std::move(observer)),
        describe_server_(std::move(describe_server)) {}

  grpc::ServerUnaryReactor* CreateNamespace(
      grpc::CallbackServerContext* context,
      const v1::CreateNamespaceRequest* request,
      v1::CreateNamespaceResponse* response) override;
  grpc::ServerUnaryReactor* GetNamespace(
      grpc::CallbackServerContext* context,
      const v1::GetNamespaceRequest* request,
      v1::GetNamespaceResponse* response) override;
  grpc::ServerUnaryReactor* ListNamespaces(
      grpc::CallbackServerContext* context,
      const v1::ListNamespacesRequest* request,
      v1::ListNamespacesResponse* response) override;
  grpc::ServerUnaryReactor* UpdateNamespace(
      grpc::CallbackServerContext* context,
      const v1::UpdateNamespaceRequest* request,
      v1::UpdateNamespaceResponse* response) override;
  grpc::ServerUnaryReactor* DeleteNamespace(
      grpc::CallbackServerContext* context,
      const v1::DeleteNamespaceRequest* request,
      v1::DeleteNamespaceResponse* response) override;
  grpc::ServerUnaryReactor* RotateNamespace(
      grpc::CallbackServerContext* context,
      const v1::RotateNamespaceRequest* request,
      v1::RotateNamespaceResponse* response) override;

  grpc::ServerUnaryReactor* GetServer(grpc::CallbackServerContext* context,
                                      const v1::GetServerRequest* request,
                                      v1::GetServerResponse* response) override;

  grpc::ServerUnaryReactor* CreateGroup(
      grpc::CallbackServerContext* context,
      const v1::CreateGroupRequest* request,
      v1::CreateGroupResponse* response) override;
  grpc::ServerUnaryReactor* ListGroups(
      grpc::CallbackServerContext* context,
      const v1::ListGroupsRequest* request,
      v1::ListGroupsResponse* response) override;
  grpc::ServerUnaryReactor* UpdateGroup(
      grpc::CallbackServerContext* context,
      const v1::UpdateGroupRequest* request,
      v1::UpdateGroupResponse* response) override;
  grpc::ServerUnaryReactor* DeleteGroup(
      grpc::CallbackServerContext* context,
      const v1::DeleteGroupRequest* request,
      v1::DeleteGroupResponse* response) override;

 private:
  void ObserveGroup(absl::string_view event, const std::string& map,
                    const std::string& group, absl::string_view about) const;

  const CallGate& gate_;
  Registry* const registry_;
  const Clock* const clock_;
  const Observer observer_;
  const DescribeServer describe_server_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_NAMESPACE_SERVICE_H_
