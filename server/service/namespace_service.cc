#include "server/service/namespace_service.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/call.h"
#include "server/service/convert.h"

namespace timecache {
namespace {

using MapOr = absl::StatusOr<std::shared_ptr<TimeCacheMap>>;
using GroupOr = absl::StatusOr<std::shared_ptr<ConsumerGroup>>;

// Requests about a namespace have it as `name` and its options in `options`.
std::string FieldPath(const std::string& field) {
  return field == "namespace" ? "name" : absl::StrCat("options.", field);
}

// Those about a group have the group as `name`.
std::string GroupFieldPath(const std::string& field) {
  if (field == "namespace") return field;
  return field == "group" ? "name" : absl::StrCat("options.", field);
}

// A dead letter is an entry there: who may not put it may not have it put.
absl::Status AuthorizeDeadLetters(const v1::NamespaceOptions& options,
                                  Call* call) {
  if (options.dead_letter_namespace().empty()) return absl::OkStatus();
  return call->Authorize(v1::VERB_WRITE, options.dead_letter_namespace());
}

grpc::ServerUnaryReactor* Answer(
    grpc::CallbackServerContext* context, Call* call,
    const absl::Status& status,
    std::string (*field_path)(const std::string&) = FieldPath) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(call->End(status, field_path));
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* NamespaceService::CreateNamespace(
    grpc::CallbackServerContext* context,
    const v1::CreateNamespaceRequest* request,
    v1::CreateNamespaceResponse* response) {
  Call call(gate_, methods::kCreateNamespace, context);
  absl::Status access = call.Authorize(v1::VERB_ADMIN, request->name());
  if (access.ok()) access = AuthorizeDeadLetters(request->options(), &call);
  if (!access.ok()) return Answer(context, &call, access);
  const absl::StatusOr<MapOptions> options = NewOptions(request->options());
  if (!options.ok()) return Answer(context, &call, options.status());
  const MapOr map = registry_->Create(request->name(), *options);
  if (map.ok()) {
    SetNamespace(map->get(), clock_->NowUs(), response->mutable_namespace_());
    observer_("namespace_created", request->name(),
              response->namespace_().options().ShortDebugString());
  }
  return Answer(context, &call, map.status());
}

grpc::ServerUnaryReactor* NamespaceService::GetNamespace(
    grpc::CallbackServerContext* context,
    const v1::GetNamespaceRequest* request,
    v1::GetNamespaceResponse* response) {
  Call call(gate_, methods::kGetNamespace, context);
  const absl::Status access = call.Authorize(v1::VERB_READ, request->name());
  if (!access.ok()) return Answer(context, &call, access);
  const MapOr map = registry_->Find(request->name());
  if (map.ok()) {
    SetNamespace(map->get(), clock_->NowUs(), response->mutable_namespace_());
  }
  return Answer(context, &call, map.status());
}

grpc::ServerUnaryReactor* NamespaceService::ListNamespaces(
    grpc::CallbackServerContext* context,
    const v1::ListNamespacesRequest* /*request*/,
    v1::ListNamespacesResponse* response) {
  Call call(gate_, methods::kListNamespaces, context);
  const absl::Status access = call.Identify();
  if (!access.ok()) return Answer(context, &call, access);
  for (const auto& map : registry_->List()) {
    if (!call.MaySee(map->name())) continue;
    SetNamespace(map.get(), clock_->NowUs(), response->add_namespaces());
  }
  return Answer(context, &call, absl::OkStatus());
}

grpc::ServerUnaryReactor* NamespaceService::UpdateNamespace(
    grpc::CallbackServerContext* context,
    const v1::UpdateNamespaceRequest* request,
    v1::UpdateNamespaceResponse* response) {
  Call call(gate_, methods::kUpdateNamespace, context);
  absl::Status access = call.Authorize(v1::VERB_ADMIN, request->name());
  if (access.ok()) access = AuthorizeDeadLetters(request->options(), &call);
  if (!access.ok()) return Answer(context, &call, access);
  const MapOr map =
      registry_->Update(request->name(), [&](MapOptions* options) {
        return ChangeOptions(request->options(), options);
      });
  if (map.ok()) {
    SetNamespace(map->get(), clock_->NowUs(), response->mutable_namespace_());
    observer_("namespace_updated", request->name(),
              request->options().ShortDebugString());
  }
  return Answer(context, &call, map.status());
}

grpc::ServerUnaryReactor* NamespaceService::DeleteNamespace(
    grpc::CallbackServerContext* context,
    const v1::DeleteNamespaceRequest* request,
    v1::DeleteNamespaceResponse* /*response*/) {
  Call call(gate_, methods::kDeleteNamespace, context);
  const absl::Status access = call.Authorize(v1::VERB_ADMIN, request->name());
  if (!access.ok()) return Answer(context, &call, access);
  const absl::Status status = registry_->Delete(request->name());
  if (status.ok()) observer_("namespace_deleted", request->name(), "");
  return Answer(context, &call, status);
}

grpc::ServerUnaryReactor* NamespaceService::RotateNamespace(
    grpc::CallbackServerContext* context,
    const v1::RotateNamespaceRequest* request,
    v1::RotateNamespaceResponse* response) {
  Call call(gate_, methods::kRotateNamespace, context);
  const absl::Status access = call.Authorize(v1::VERB_ADMIN, request->name());
  if (!access.ok()) return Answer(context, &call, access);
  const MapOr map = registry_->Find(request->name());
  if (map.ok()) {
    const int64_t died = (*map)->Rotate(clock_->NowUs());
    response->set_entries(static_cast<uint64_t>(died));
    observer_("namespace_rotated", request->name(),
              absl::StrCat("entries: ", died));
  }
  return Answer(context, &call, map.status());
}

grpc::ServerUnaryReactor* NamespaceService::GetServer(
    grpc::CallbackServerContext* context,
    const v1::GetServerRequest* /*request*/, v1::GetServerResponse* response) {
  Call call(gate_, methods::kGetServer, context);
  const absl::Status access = call.AuthorizeAnywhere();
  if (!access.ok()) return Answer(context, &call, access);
  describe_server_(response);
  return Answer(context, &call, absl::OkStatus());
}

grpc::ServerUnaryReactor* NamespaceService::CreateGroup(
    grpc::CallbackServerContext* context, const v1::CreateGroupRequest* request,
    v1::CreateGroupResponse* response) {
  Call call(gate_, methods::kCreateGroup, context);
  const absl::Status access =
      call.Authorize(v1::VERB_ADMIN, request->namespace_());
  if (!access.ok()) return Answer(context, &call, access, GroupFieldPath);
  const auto create = [&]() -> absl::Status {
    GroupOptions options;
    absl::Status status = ApplyOptions(request->options(), &options);
    if (!status.ok()) return status;
    const MapOr map = registry_->Find(request->namespace_());
    if (!map.ok()) return map.status();
    const auto start = request->from_earliest() ? ExpiryLog::Start::kEarliest
                                                : ExpiryLog::Start::kNow;
    const GroupOr group = (*map)->groups().Create(request->name(), options,
                                                  start, clock_->NowUs());
    if (!group.ok()) return group.status();
    SetGroup((*map)->name(), **group, response->mutable_group());
    ObserveGroup("group_created", request->namespace_(), request->name(),
                 response->group().options().ShortDebugString());
    return absl::OkStatus();
  };
  return Answer(context, &call, create(), GroupFieldPath);
}

grpc::ServerUnaryReactor* NamespaceService::ListGroups(
    grpc::CallbackServerContext* context, const v1::ListGroupsRequest* request,
    v1::ListGroupsResponse* response) {
  Call call(gate_, methods::kListGroups, context);
  const absl::Status access =
      call.Authorize(v1::VERB_WATCH, request->namespace_());
  if (!access.ok()) return Answer(context, &call, access, GroupFieldPath);
  const MapOr map = registry_->Find(request->namespace_());
  if (map.ok()) {
    for (const auto& group : (*map)->groups().List()) {
      SetGroup((*map)->name(), *group, response->add_groups());
    }
  }
  return Answer(context, &call, map.status(), GroupFieldPath);
}

grpc::ServerUnaryReactor* NamespaceService::UpdateGroup(
    grpc::CallbackServerContext* context, const v1::UpdateGroupRequest* request,
    v1::UpdateGroupResponse* response) {
  Call call(gate_, methods::kUpdateGroup, context);
  const absl::Status access =
      call.Authorize(v1::VERB_ADMIN, request->namespace_());
  if (!access.ok()) return Answer(context, &call, access, GroupFieldPath);
  const auto update = [&]() -> absl::Status {
    const MapOr map = registry_->Find(request->namespace_());
    if (!map.ok()) return map.status();
    const GroupOr group =
        (*map)->groups().Update(request->name(), [&](GroupOptions* options) {
          return ApplyOptions(request->options(), options);
        });
    if (!group.ok()) return group.status();
    SetGroup((*map)->name(), **group, response->mutable_group());
    ObserveGroup("group_updated", request->namespace_(), request->name(),
                 request->options().ShortDebugString());
    return absl::OkStatus();
  };
  return Answer(context, &call, update(), GroupFieldPath);
}

grpc::ServerUnaryReactor* NamespaceService::DeleteGroup(
    grpc::CallbackServerContext* context, const v1::DeleteGroupRequest* request,
    v1::DeleteGroupResponse* /*response*/) {
  Call call(gate_, methods::kDeleteGroup, context);
  const absl::Status access =
      call.Authorize(v1::VERB_ADMIN, request->namespace_());
  if (!access.ok()) return Answer(context, &call, access, GroupFieldPath);
  const MapOr map = registry_->Find(request->namespace_());
  const absl::Status status =
      map.ok() ? (*map)->groups().Delete(request->name()) : map.status();
  if (status.ok()) {
    ObserveGroup("group_deleted", request->namespace_(), request->name(), "");
  }
  return Answer(context, &call, status, GroupFieldPath);
}

void NamespaceService::ObserveGroup(absl::string_view event,
                                    const std::string& map,
                                    const std::string& group,
                                    absl::string_view about) const {
  observer_(event, map,
            absl::StrCat("group: ", group, about.empty() ? "" : " ", about));
}

}  // namespace timecache
