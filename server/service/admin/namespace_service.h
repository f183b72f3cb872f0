// timecache.v1.NamespaceService: administration of the registry.

#ifndef TIMECACHED_SERVER_SERVICE_ADMIN_NAMESPACE_SERVICE_H_
#define TIMECACHED_SERVER_SERVICE_ADMIN_NAMESPACE_SERVICE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/engine/registry.h"
#include "server/service/call/call.h"
#include "server/service/call/call_gate.h"
#include "server/service/call/counted_calls.h"
#include "timecache/v1/namespace.grpc.pb.h"

namespace timecache {

// All of them as bytes: requests are read where what is wrong with them can be
// said.
namespace methods {
using N = v1::NamespaceService;
using Namespaces = N::WithRawCallbackMethod_CreateNamespace<
    N::WithRawCallbackMethod_GetNamespace<
        N::WithRawCallbackMethod_ListNamespaces<
            N::WithRawCallbackMethod_UpdateNamespace<
                N::WithRawCallbackMethod_DeleteNamespace<
                    N::WithRawCallbackMethod_RotateNamespace<
                        N::WithRawCallbackMethod_GetServer<N::Service>>>>>>>;
using Administration = N::WithRawCallbackMethod_CreateGroup<
    N::WithRawCallbackMethod_ListGroups<N::WithRawCallbackMethod_UpdateGroup<
        N::WithRawCallbackMethod_DeleteGroup<Namespaces>>>>;
}  // namespace methods

// Thread-safe. Calls are rare and answered inline.
class NamespaceService final : public methods::Administration {
 public:
  // What has changed, for the log.
  struct Change {
    // "namespace_created", "group_deleted" and the like.
    absl::string_view event;
    absl::string_view name;
    // Of a group alone.
    absl::string_view group = "";
    // Those in force, or those that an update changes; null: the event has
    // none.
    const google::protobuf::Message* options = nullptr;
    // That died in namespace_rotated.
    std::optional<int64_t> entries = std::nullopt;
  };
  using Observer = std::function<void(const Change& change)>;

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

  // As TimeCacheService's.
  void CountCalls(CountedCalls* counted) {
    CountUnaryCalls(
        v1::NamespaceService::service_full_name(), counted,
        [this](int method) { return grpc::Service::GetHandler(method); });
  }

  grpc::ServerUnaryReactor* CreateNamespace(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetNamespace(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListNamespaces(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UpdateNamespace(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteNamespace(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RotateNamespace(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* GetServer(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* CreateGroup(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListGroups(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UpdateGroup(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteGroup(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;

 private:
  absl::Status ListPage(const v1::ListNamespacesRequest& request,
                        const Call& call,
                        v1::ListNamespacesResponse* response) const;
  const CallGate& gate_;
  Registry* const registry_;
  const Clock* const clock_;
  const Observer observer_;
  const DescribeServer describe_server_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_ADMIN_NAMESPACE_SERVICE_H_
