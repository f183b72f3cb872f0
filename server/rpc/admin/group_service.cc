#include "server/rpc/admin/group_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/api/proto_namespace.h"
#include "server/api/update_mask.h"
#include "server/base/error.h"

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

absl::Status HandleCreateGroup(
    const Admin& admin,
    const SharedCall<v1::CreateGroupRequest, v1::CreateGroupResponse>& unary) {
  const auto& request = unary->request();
  NewGroup group;
  const absl::Status status = ApplyOptions(request.options(), &group.options);
  if (!status.ok()) return status;
  if (request.from_earliest()) group.start = LogStart::kEarliest;
  group.created_by = unary->call().Principal();
  admin.store->CreateGroup(
      {request.namespace_(), request.name()}, std::move(group),
      FinishWith(unary, [&admin, unary](const GroupInfo& created) {
        v1::Group* const to = unary->response().mutable_group();
        SetGroup(created, to);
        admin.observer({.event = "group_created",
                        .name = created.namespace_name,
                        .group = created.name,
                        .options = &to->options()});
      }));
  return absl::OkStatus();
}

absl::Status HandleGetGroup(
    const Admin& admin,
    const SharedCall<v1::GetGroupRequest, v1::GetGroupResponse>& unary) {
  const auto& request = unary->request();
  admin.store->GetGroup({request.namespace_(), request.name()},
                        request.include_statistics(),
                        FinishWith(unary, [unary](const GroupInfo& found) {
                          SetGroup(found, unary->response().mutable_group());
                        }));
  return absl::OkStatus();
}

absl::Status HandleListGroups(
    const Admin& admin,
    const SharedCall<v1::ListGroupsRequest, v1::ListGroupsResponse>& unary) {
  const auto& request = unary->request();
  absl::StatusOr<ListQuery> query =
      ToListQuery(request, kMaxPageGroups, kMaxPageGroups);
  if (!query.ok()) return query.status();
  admin.store->ListGroups(
      request.namespace_(), *std::move(query),
      FinishWith(unary, [unary](const Page<GroupInfo>& page) {
        SetPage(page, &unary->response());
      }));
  return absl::OkStatus();
}

absl::Status HandleUpdateGroup(
    const Admin& admin,
    const SharedCall<v1::UpdateGroupRequest, v1::UpdateGroupResponse>& unary) {
  const auto& request = unary->request();
  const v1::Group& group = request.group();
  const auto changes = std::make_shared<v1::GroupOptions>();
  const absl::Status status = ToChanges(request, changes.get());
  if (!status.ok()) return status;
  admin.store->UpdateGroup(
      {group.namespace_(), group.name()},
      [changes](GroupOptions* options) {
        return ApplyOptions(*changes, options);
      },
      FinishWith(unary, [&admin, unary, changes](const GroupInfo& updated) {
        SetGroup(updated, unary->response().mutable_group());
        admin.observer({.event = "group_updated",
                        .name = updated.namespace_name,
                        .group = updated.name,
                        .options = changes.get()});
      }));
  return absl::OkStatus();
}

absl::Status HandleDeleteGroup(
    const Admin& admin,
    const SharedCall<v1::DeleteGroupRequest, v1::DeleteGroupResponse>& unary) {
  const auto& request = unary->request();
  admin.store->DeleteGroup({request.namespace_(), request.name()},
                           [&admin, unary](const absl::Status& status) {
                             const auto& request = unary->request();
                             if (status.ok()) {
                               admin.observer({.event = "group_deleted",
                                               .name = request.namespace_(),
                                               .group = request.name()});
                             }
                             unary->Finish(status);
                           });
  return absl::OkStatus();
}

}  // namespace

GroupService::GroupService(const CallGate* gate, Store* store,
                           AdminObserver observer, CountedCalls* counted)
    : AdminService(gate, store, std::move(observer), counted) {
  ServeUnary(methods::kCreateGroup, config::v1::VERB_ADMIN, FieldPath,
             HandleCreateGroup);
  ServeUnary(methods::kGetGroup, config::v1::VERB_WATCH, FieldPath,
             HandleGetGroup);
  ServeUnary(methods::kListGroups, config::v1::VERB_WATCH, ListFieldPath,
             HandleListGroups);
  ServeUnary(methods::kUpdateGroup, config::v1::VERB_ADMIN, UpdateFieldPath,
             HandleUpdateGroup);
  ServeUnary(methods::kDeleteGroup, config::v1::VERB_ADMIN, FieldPath,
             HandleDeleteGroup);
}

}  // namespace timecache::server
