#include "server/service/admin/group_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/admin/answer.h"
#include "server/service/admin/update_mask.h"
#include "server/service/call/convert.h"

namespace timecache {
namespace {

using MapOr = absl::StatusOr<std::shared_ptr<TimeCacheMap>>;
using GroupOr = absl::StatusOr<std::shared_ptr<ConsumerGroup>>;

// Requests about a group have it as `name`, and its options in `options`.
std::string FieldPath(const std::string& field) {
  if (field == "namespace") return field;
  return field == "group" ? "name" : absl::StrCat("options.", field);
}

// A list's stand at the top.
std::string ListFieldPath(const std::string& field) { return field; }

std::string UpdateFieldPath(const std::string& field) {
  if (field == "update_mask") return field;
  return absl::StrCat("group.", FieldPath(field));
}

absl::Status ToChanges(const v1::UpdateGroupRequest& request,
                       v1::GroupOptions* changes) {
  v1::GroupOptions defaults;
  SetOptions(GroupOptions(), &defaults);
  return ApplyUpdateMask(request.update_mask(), request.group().options(),
                         defaults, /*fixed=*/"", changes);
}

void Describe(const std::string& map, const ConsumerGroup& group,
              bool include_statistics, v1::Group* to) {
  SetGroup(map, group, to);
  if (include_statistics) {
    SetStatistics(group.GetStatistics(), to->mutable_statistics());
  }
}

// The token is the name behind which the page begins.
absl::Status ListPage(const v1::ListGroupsRequest& request, TimeCacheMap* map,
                      v1::ListGroupsResponse* response) {
  if (request.page_size() < 0) {
    return InvalidField("page_size", absl::StrCat("must not be negative, as ",
                                                  request.page_size(), " is"));
  }
  const std::string& after = request.page_token();
  if (!after.empty() && !ValidateNamespaceName(after).ok()) {
    return InvalidField("page_token",
                        "must be the next_page_token of a page before");
  }
  constexpr int kMost = ConsumerGroups::kMaxGroups;
  int left = request.page_size() == 0 ? kMost : request.page_size();
  for (const auto& group : map->groups().List()) {
    if (group->name() <= after) continue;
    if (left-- == 0) {
      response->set_next_page_token(response->groups().rbegin()->name());
      break;
    }
    Describe(map->name(), *group, request.include_statistics(),
             response->add_groups());
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* GroupService::CreateGroup(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::CreateGroupRequest;
  using Response = v1::CreateGroupResponse;
  return Answer<Request, Response>(
      gate_, methods::kCreateGroup, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, request.namespace_());
        if (!access.ok()) return access;
        GroupOptions options;
        absl::Status status = ApplyOptions(request.options(), &options);
        if (!status.ok()) return status;
        const MapOr map = registry_->Find(request.namespace_());
        if (!map.ok()) return map.status();
        const auto start =
            request.from_earliest() ? LogStart::kEarliest : LogStart::kNow;
        const GroupOr group = (*map)->groups().Create(
            request.name(), options, start, clock_->NowUs(), call->Principal());
        if (!group.ok()) return group.status();
        Describe((*map)->name(), **group, /*include_statistics=*/false,
                 response->mutable_group());
        observer_({.event = "group_created",
                   .name = request.namespace_(),
                   .group = request.name(),
                   .options = &response->group().options()});
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GroupService::GetGroup(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::GetGroupRequest;
  using Response = v1::GetGroupResponse;
  return Answer<Request, Response>(
      gate_, methods::kGetGroup, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(config::v1::VERB_WATCH, request.namespace_());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.namespace_());
        if (!map.ok()) return map.status();
        const GroupOr group = (*map)->groups().Find(request.name());
        if (!group.ok()) return group.status();
        Describe((*map)->name(), **group, request.include_statistics(),
                 response->mutable_group());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GroupService::ListGroups(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::ListGroupsRequest;
  using Response = v1::ListGroupsResponse;
  return Answer<Request, Response>(
      gate_, methods::kListGroups, context, bytes, answer, ListFieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(config::v1::VERB_WATCH, request.namespace_());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.namespace_());
        return map.ok() ? ListPage(request, map->get(), response)
                        : map.status();
      });
}

grpc::ServerUnaryReactor* GroupService::UpdateGroup(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::UpdateGroupRequest;
  using Response = v1::UpdateGroupResponse;
  return Answer<Request, Response>(
      gate_, methods::kUpdateGroup, context, bytes, answer, UpdateFieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const std::string& name = request.group().namespace_();
        const absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, name);
        if (!access.ok()) return access;
        v1::GroupOptions changes;
        const absl::Status status = ToChanges(request, &changes);
        if (!status.ok()) return status;
        const MapOr map = registry_->Find(name);
        if (!map.ok()) return map.status();
        const GroupOr group = (*map)->groups().Update(
            request.group().name(), [&](GroupOptions* options) {
              return ApplyOptions(changes, options);
            });
        if (!group.ok()) return group.status();
        SetGroup((*map)->name(), **group, response->mutable_group());
        observer_({.event = "group_updated",
                   .name = name,
                   .group = request.group().name(),
                   .options = &changes});
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GroupService::DeleteGroup(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::DeleteGroupRequest;
  using Response = v1::DeleteGroupResponse;
  return Answer<Request, Response>(
      gate_, methods::kDeleteGroup, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* /*response*/) -> absl::Status {
        const absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, request.namespace_());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.namespace_());
        const absl::Status status =
            map.ok() ? (*map)->groups().Delete(request.name()) : map.status();
        if (status.ok()) {
          observer_({.event = "group_deleted",
                     .name = request.namespace_(),
                     .group = request.name()});
        }
        return status;
      });
}

}  // namespace timecache
