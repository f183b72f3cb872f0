#include "server/rpc/admin/group_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/api/proto_namespace.h"
#include "server/api/update_mask.h"
#include "server/base/error.h"
#include "server/rpc/admin/list_query.h"
#include "server/rpc/call/answer.h"

namespace timecache::server {
namespace {

// Of ListGroups: more than a namespace can have.
constexpr int kMaxPageGroups = 1'000;

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
                         defaults, /*fixed=*/{}, changes);
}

void SetPage(const Page<GroupInfo>& page, v1::ListGroupsResponse* response) {
  for (const GroupInfo& item : page.items) {
    SetGroup(item, response->add_groups());
  }
  if (page.more) response->set_next_page_token(page.items.back().name);
}

}  // namespace

grpc::ServerUnaryReactor* GroupService::CreateGroup(Context* context,
                                                    const Bytes* bytes,
                                                    Bytes* answer) {
  return Answer<v1::CreateGroupRequest, v1::CreateGroupResponse>(
      gate_, methods::kCreateGroup, context, bytes, answer, FieldPath,
      [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        Call* const call = &unary->call();
        const absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, request.namespace_());
        if (!access.ok()) return access;
        NewGroup group;
        const absl::Status status =
            ApplyOptions(request.options(), &group.options);
        if (!status.ok()) return status;
        if (request.from_earliest()) group.start = LogStart::kEarliest;
        group.created_by = call->Principal();
        store_->CreateGroup(
            {request.namespace_(), request.name()}, std::move(group),
            FinishWith(unary, [this, unary](const GroupInfo& created) {
              v1::Group* const to = unary->response().mutable_group();
              SetGroup(created, to);
              observer_({.event = "group_created",
                         .name = created.namespace_name,
                         .group = created.name,
                         .options = &to->options()});
            }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GroupService::GetGroup(Context* context,
                                                 const Bytes* bytes,
                                                 Bytes* answer) {
  return Answer<v1::GetGroupRequest, v1::GetGroupResponse>(
      gate_, methods::kGetGroup, context, bytes, answer, FieldPath,
      [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const absl::Status access = unary->call().Authorize(
            config::v1::VERB_WATCH, request.namespace_());
        if (!access.ok()) return access;
        store_->GetGroup({request.namespace_(), request.name()},
                         request.include_statistics(),
                         FinishWith(unary, [unary](const GroupInfo& found) {
                           SetGroup(found, unary->response().mutable_group());
                         }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GroupService::ListGroups(Context* context,
                                                   const Bytes* bytes,
                                                   Bytes* answer) {
  return Answer<v1::ListGroupsRequest, v1::ListGroupsResponse>(
      gate_, methods::kListGroups, context, bytes, answer, ListFieldPath,
      [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const absl::Status access = unary->call().Authorize(
            config::v1::VERB_WATCH, request.namespace_());
        if (!access.ok()) return access;
        absl::StatusOr<ListQuery> query =
            ToListQuery(request, kMaxPageGroups, kMaxPageGroups);
        if (!query.ok()) return query.status();
        store_->ListGroups(
            request.namespace_(), *std::move(query),
            FinishWith(unary, [unary](const Page<GroupInfo>& page) {
              SetPage(page, &unary->response());
            }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GroupService::UpdateGroup(Context* context,
                                                    const Bytes* bytes,
                                                    Bytes* answer) {
  return Answer<v1::UpdateGroupRequest, v1::UpdateGroupResponse>(
      gate_, methods::kUpdateGroup, context, bytes, answer, UpdateFieldPath,
      [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const v1::Group& group = request.group();
        const absl::Status access =
            unary->call().Authorize(config::v1::VERB_ADMIN, group.namespace_());
        if (!access.ok()) return access;
        const auto changes = std::make_shared<v1::GroupOptions>();
        const absl::Status status = ToChanges(request, changes.get());
        if (!status.ok()) return status;
        store_->UpdateGroup(
            {group.namespace_(), group.name()},
            [changes](GroupOptions* options) {
              return ApplyOptions(*changes, options);
            },
            FinishWith(unary, [this, unary, changes](const GroupInfo& updated) {
              SetGroup(updated, unary->response().mutable_group());
              observer_({.event = "group_updated",
                         .name = updated.namespace_name,
                         .group = updated.name,
                         .options = changes.get()});
            }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GroupService::DeleteGroup(Context* context,
                                                    const Bytes* bytes,
                                                    Bytes* answer) {
  return Answer<v1::DeleteGroupRequest, v1::DeleteGroupResponse>(
      gate_, methods::kDeleteGroup, context, bytes, answer, FieldPath,
      [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const absl::Status access = unary->call().Authorize(
            config::v1::VERB_ADMIN, request.namespace_());
        if (!access.ok()) return access;
        store_->DeleteGroup({request.namespace_(), request.name()},
                            [this, unary](const absl::Status& status) {
                              const auto& request = unary->request();
                              if (status.ok()) {
                                observer_({.event = "group_deleted",
                                           .name = request.namespace_(),
                                           .group = request.name()});
                              }
                              unary->Finish(status);
                            });
        return absl::OkStatus();
      });
}

}  // namespace timecache::server
