#include "server/service/namespace_service.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/convert.h"
#include "server/service/status.h"

namespace timecache {
namespace {

using MapOr = absl::StatusOr<std::shared_ptr<TimeCacheMap>>;

// All requests have the namespace as `name` and its options in `options`.
std::string FieldPath(const std::string& field) {
  return field == "namespace" ? "name" : absl::StrCat("options.", field);
}

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status, FieldPath));
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* NamespaceService::CreateNamespace(
    grpc::CallbackServerContext* context,
    const v1::CreateNamespaceRequest* request,
    v1::CreateNamespaceResponse* response) {
  const absl::StatusOr<MapOptions> options = NewOptions(request->options());
  if (!options.ok()) return Answer(context, options.status());
  const MapOr map = registry_->Create(request->name(), *options);
  if (map.ok()) {
    SetNamespace(map->get(), clock_->NowUs(), response->mutable_namespace_());
    observer_("namespace_created", request->name(),
              response->namespace_().options().ShortDebugString());
  }
  return Answer(context, map.status());
}

grpc::ServerUnaryReactor* NamespaceService::GetNamespace(
    grpc::CallbackServerContext* context,
    const v1::GetNamespaceRequest* request,
    v1::GetNamespaceResponse* response) {
  const MapOr map = registry_->Find(request->name());
  if (map.ok()) {
    SetNamespace(map->get(), clock_->NowUs(), response->mutable_namespace_());
  }
  return Answer(context, map.status());
}

grpc::ServerUnaryReactor* NamespaceService::ListNamespaces(
    grpc::CallbackServerContext* context,
    const v1::ListNamespacesRequest* /*request*/,
    v1::ListNamespacesResponse* response) {
  for (const auto& map : registry_->List()) {
    SetNamespace(map.get(), clock_->NowUs(), response->add_namespaces());
  }
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* NamespaceService::UpdateNamespace(
    grpc::CallbackServerContext* context,
    const v1::UpdateNamespaceRequest* request,
    v1::UpdateNamespaceResponse* response) {
  const MapOr map = registry_->Update(
      request->name(), [&](MapOptions* options) -> absl::Status {
        const int num_shards = options->num_shards;
        absl::Status status = ApplyOptions(request->options(), options);
        if (status.ok() && options->num_shards != num_shards) {
          status = InvalidField(
              "num_shards",
              absl::StrCat("is fixed at creation, to ", num_shards));
        }
        return status;
      });
  if (map.ok()) {
    SetNamespace(map->get(), clock_->NowUs(), response->mutable_namespace_());
    observer_("namespace_updated", request->name(),
              request->options().ShortDebugString());
  }
  return Answer(context, map.status());
}

grpc::ServerUnaryReactor* NamespaceService::DeleteNamespace(
    grpc::CallbackServerContext* context,
    const v1::DeleteNamespaceRequest* request,
    v1::DeleteNamespaceResponse* /*response*/) {
  const absl::Status status = registry_->Delete(request->name());
  if (status.ok()) observer_("namespace_deleted", request->name(), "");
  return Answer(context, status);
}

grpc::ServerUnaryReactor* NamespaceService::RotateNamespace(
    grpc::CallbackServerContext* context,
    const v1::RotateNamespaceRequest* request,
    v1::RotateNamespaceResponse* response) {
  const MapOr map = registry_->Find(request->name());
  if (map.ok()) {
    const int64_t died = (*map)->Rotate(clock_->NowUs());
    response->set_entries(static_cast<uint64_t>(died));
    observer_("namespace_rotated", request->name(),
              absl::StrCat("entries: ", died));
  }
  return Answer(context, map.status());
}

}  // namespace timecache
