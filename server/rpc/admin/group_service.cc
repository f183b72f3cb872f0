#include "server/rpc/admin/group_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/api/proto_namespace.h"
#include "server/api/proto_time.h"
#include "server/api/update_mask.h"
#include "server/base/error.h"
#include "server/base/wire_format.h"
#include "server/rpc/watch/delivery_token.h"
#include "server/rpc/watch/event_codec.h"
#include "server/rpc/watch/resume_token.h"

namespace timecache::server {
namespace {

// Of ListGroups: more than a namespace can have.
constexpr int kMaxPageGroups = 1'000;

// Of ListUnsettled.
constexpr int kUnsettledPage = 100;
constexpr int kMaxUnsettledPage = 1'000;

// Requests about a group have it as `name`, and its options in `options`.
std::string FieldPath(const std::string& field) {
  if (field == "namespace" || absl::StartsWith(field, "start.")) return field;
  return field == "group" ? "name" : absl::StrCat("options.", field);
}

// A list's stand at the top.
std::string ListFieldPath(const std::string& field) { return field; }

// Those of a request about one group and no options, too.
std::string GroupFieldPath(const std::string& field) {
  return field == "group" ? "name" : field;
}

std::string UpdateFieldPath(const std::string& field) {
  if (field == "update_mask") return field;
  return absl::StrCat("group.", FieldPath(field));
}

absl::Status ToChanges(const v1::UpdateGroupRequest& request,
                       v1::GroupOptions* changes) {
  v1::GroupOptions defaults;
  SetOptions(GroupOptions(), &defaults);
  return ApplyUpdateMask(request.update_mask(), request.group().options(),
                         defaults, /*fixed=*/{"key_prefix"}, changes);
}

// Whether the update takes the list away: unset, it could as well be unnamed.
bool ClearsRetryDelays(const v1::UpdateGroupRequest& request) {
  const auto& paths = request.update_mask().paths();
  return request.group().options().retry_delays().empty() &&
         std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
           return path == "options.retry_delays" || path == "options" ||
                  path == "*";
         });
}

absl::StatusOr<LogPosition> ToPosition(const v1::GroupPosition& from,
                                       absl::string_view namespace_name,
                                       absl::string_view field) {
  switch (from.position_case()) {
    case v1::GroupPosition::kTime: {
      const std::string path = absl::StrCat(field, ".time");
      const absl::StatusOr<int64_t> time_us = ToMicros(from.time(), path);
      if (!time_us.ok()) return time_us.status();
      if (*time_us < 0) return InvalidField(path, "must be in 1970 or later");
      return LogPosition::After(*time_us);
    }
    case v1::GroupPosition::kResumeToken: {
      const absl::StatusOr<ResumePoint> point =
          DecodeResumeToken(from.resume_token());
      if (!point.ok() || point->map != namespace_name) {
        return InvalidField(
            absl::StrCat(field, ".resume_token"),
            point.ok() ? absl::StrCat("is of the namespace ", point->map)
                       : std::string("is damaged or not of this service: send "
                                     "the bytes of WatchExpiredResponse."
                                     "resume_token unchanged"));
      }
      return LogPosition::At(point->points);
    }
    case v1::GroupPosition::kStart:
      if (from.start() == v1::WATCH_START_EARLIEST) return LogStart::kEarliest;
      break;
    case v1::GroupPosition::POSITION_NOT_SET:
      break;
  }
  return LogStart::kNow;
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
  const absl::StatusOr<LogPosition> start =
      ToPosition(request.start(), request.namespace_(), "start");
  if (!start.ok()) return start.status();
  group.start = *start;
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
      [changes, clears = ClearsRetryDelays(request)](GroupOptions* options) {
        if (clears) options->retry_delays_us.clear();
        return ChangeOptions(*changes, options);
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

absl::Status HandleSeekGroup(
    const Admin& admin,
    const SharedCall<v1::SeekGroupRequest, v1::SeekGroupResponse>& unary) {
  const auto& request = unary->request();
  const absl::StatusOr<LogPosition> position =
      ToPosition(request.position(), request.namespace_(), "position");
  if (!position.ok()) return position.status();
  admin.store->SeekGroup(
      {request.namespace_(), request.name()}, *position,
      request.drop_unsettled(),
      FinishWith(unary, [&admin, unary](const SeekResult& moved) {
        unary->response().set_unsettled(moved.unsettled);
        unary->response().set_dropped(moved.dropped);
        admin.observer({.event = "group_moved",
                        .name = unary->request().namespace_(),
                        .group = unary->request().name()});
      }));
  return absl::OkStatus();
}

// The number of the event, in partition 1 and later ones behind "<partition>#".
std::string ToPageToken(int partition, uint64_t event) {
  if (partition == 0) return absl::StrCat(event);
  return absl::StrCat(partition, "#", event);
}

bool ReadPageToken(absl::string_view token, UnsettledQuery* to) {
  if (token.empty()) return true;
  if (const size_t mark = token.find('#'); mark != absl::string_view::npos) {
    if (!absl::SimpleAtoi(token.substr(0, mark), &to->partition) ||
        to->partition < 1) {
      return false;
    }
    token.remove_prefix(mark + 1);
  }
  return absl::SimpleAtoi(token, &to->from);
}

absl::StatusOr<UnsettledQuery> ToUnsettledQuery(
    const v1::ListUnsettledRequest& request) {
  if (request.page_size() < 0) {
    return InvalidField("page_size", absl::StrCat("must not be negative, as ",
                                                  request.page_size(), " is"));
  }
  if (request.key_prefix().size() > static_cast<size_t>(kMaxKeyBytes)) {
    return InvalidField(
        "key_prefix",
        absl::StrCat("must be at most ", kMaxKeyBytes, " bytes, not ",
                     request.key_prefix().size()));
  }
  UnsettledQuery query;
  if (!ReadPageToken(request.page_token(), &query)) {
    return InvalidField("page_token",
                        "must be the next_page_token of a previous page");
  }
  query.key_prefix = request.key_prefix();
  query.most = request.page_size() == 0
                   ? kUnsettledPage
                   : std::min(request.page_size(), kMaxUnsettledPage);
  query.include_values = request.include_values();
  return query;
}

void SetUnsettled(const UnsettledInfo& from, bool include_values,
                  v1::UnsettledEvent* to) {
  const Delivery& delivery = from.delivery;
  const auto encoded =
      static_cast<int64_t>(delivery.batch->encoded(delivery.index).size());
  const auto form = !include_values                ? ValueForm::kLeftOut
                    : encoded > kMaxUnsettledBytes ? ValueForm::kOmitted
                                                   : ValueForm::kWhole;
  std::string wire;
  AppendDelivery(delivery, form, &wire);
  // Behind the tag.
  absl::string_view event = absl::string_view(wire).substr(1);
  uint64_t size;
  TakeVarint(&event, &size);
  to->mutable_event()->ParseFromArray(event.data(),
                                      static_cast<int>(event.size()));
  to->mutable_event()->set_delivery_token(OperatorToken(delivery));
  to->set_state(
      static_cast<v1::UnsettledState>(static_cast<int>(from.state) + 1));
  to->set_member_id(from.member_id);
  if (from.since_us != kNeverUs) SetTime(from.since_us, to->mutable_since());
  if (from.due_us != kNeverUs) SetTime(from.due_us, to->mutable_due());
}

absl::Status HandleListUnsettled(
    const Admin& admin,
    const SharedCall<v1::ListUnsettledRequest, v1::ListUnsettledResponse>&
        unary) {
  const auto& request = unary->request();
  absl::StatusOr<UnsettledQuery> query = ToUnsettledQuery(request);
  if (!query.ok()) return query.status();
  if (request.include_values()) {
    const absl::Status status =
        unary->call().Authorize(config::v1::VERB_READ, request.namespace_());
    if (!status.ok()) return status;
  }
  admin.store->ListUnsettled(
      {request.namespace_(), request.name()}, *std::move(query),
      FinishWith(unary, [unary](const UnsettledPage& page) {
        for (const UnsettledInfo& info : page.events) {
          SetUnsettled(info, unary->request().include_values(),
                       unary->response().add_events());
        }
        if (page.next.has_value()) {
          unary->response().set_next_page_token(
              ToPageToken(page.next_partition, *page.next));
        }
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

void SetMember(const MemberInfo& from, v1::GroupMember* to) {
  to->set_id(from.id);
  to->set_principal(from.origin->principal);
  to->set_peer(from.origin->peer);
  SetTime(from.origin->since_us, to->mutable_since());
  to->set_in_flight(static_cast<uint64_t>(from.in_flight));
  to->set_max_in_flight(static_cast<uint64_t>(from.max_in_flight));
  to->set_window(static_cast<uint64_t>(from.window));
  to->set_unresponsive(from.unresponsive);
  to->set_active(from.active);
}

absl::Status HandleListMembers(
    const Admin& admin,
    const SharedCall<v1::ListMembersRequest, v1::ListMembersResponse>& unary) {
  const auto& request = unary->request();
  admin.store->ListMembers(
      {request.namespace_(), request.name()},
      FinishWith(unary, [unary](const std::vector<MemberInfo>& members) {
        for (const MemberInfo& member : members) {
          SetMember(member, unary->response().add_members());
        }
      }));
  return absl::OkStatus();
}

}  // namespace

GroupService::GroupService(const CallGate* gate, Admin admin,
                           CountedCalls* counted)
    : AdminService(gate, std::move(admin), counted) {
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
  ServeUnary(methods::kListMembers, config::v1::VERB_WATCH, FieldPath,
             HandleListMembers);
  ServeUnary(methods::kSeekGroup, config::v1::VERB_ADMIN, GroupFieldPath,
             HandleSeekGroup);
  ServeUnary(methods::kListUnsettled, config::v1::VERB_WATCH, GroupFieldPath,
             HandleListUnsettled);
}

}  // namespace timecache::server
