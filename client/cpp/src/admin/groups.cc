#include <utility>

#include "client/cpp/src/admin/messages.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/client.h"

namespace timecache {
namespace {

using Groups = v1::GroupService::Stub;

// The most that a page may have.
constexpr int kUnsettledPage = 1'000;

template <typename Request>
Request GroupRequest(const std::string& ns, std::string_view name) {
  Request request;
  request.set_namespace_(ns);
  request.set_name(std::string(name));
  return request;
}

void SetPosition(const GroupPosition& from, v1::GroupPosition& to) {
  if (from.time) {
    *to.mutable_time() = ToProto(*from.time);
  } else if (from.resume_token) {
    to.set_resume_token(*from.resume_token);
  } else {
    to.set_start(from.start == WatchStart::kEarliest ? v1::WATCH_START_EARLIEST
                                                     : v1::WATCH_START_NOW);
  }
}

UnsettledEvent ToUnsettled(v1::UnsettledEvent&& from) {
  UnsettledEvent event;
  event.event = FromProto(std::move(*from.mutable_event()));
  if (v1::UnsettledState_IsValid(from.state())) {
    event.state = static_cast<UnsettledState>(from.state());
  }
  event.member_id = from.member_id();
  if (from.has_since()) event.since = FromProto(from.since());
  if (from.has_due()) event.due = FromProto(from.due());
  return event;
}

}  // namespace

absl::StatusOr<Group> Client::CreateGroup(std::string_view name,
                                          const GroupOptions& options,
                                          const GroupPosition& start,
                                          const CallOptions& call) const {
  auto request =
      GroupRequest<v1::CreateGroupRequest>(options_.default_namespace, name);
  *request.mutable_options() = ToMessage<v1::GroupOptions>(options);
  SetPosition(start, *request.mutable_start());
  auto response =
      Call(core_->endpoints, &Endpoint::groups, &Groups::CreateGroup, request,
           CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return FromMessage<Group>(response->group());
}

absl::StatusOr<Group> Client::GetGroup(std::string_view name,
                                       const DescribeOptions& describe,
                                       const CallOptions& call) const {
  auto request =
      GroupRequest<v1::GetGroupRequest>(options_.default_namespace, name);
  request.set_include_statistics(describe.include_statistics);
  auto response = Call(core_->endpoints, &Endpoint::groups, &Groups::GetGroup,
                       request, CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return FromMessage<Group>(response->group());
}

absl::StatusOr<std::vector<Group>> Client::ListGroups(
    const DescribeOptions& describe, const CallOptions& call) const {
  std::vector<Group> groups;
  v1::ListGroupsRequest request;
  request.set_namespace_(options_.default_namespace);
  request.set_include_statistics(describe.include_statistics);
  do {
    auto page = Call(core_->endpoints, &Endpoint::groups, &Groups::ListGroups,
                     request, CallPlan(options_, call, Repeat::kSafe));
    if (!page.ok()) return page.status();
    for (const v1::Group& group : page->groups()) {
      groups.push_back(FromMessage<Group>(group));
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return groups;
}

absl::StatusOr<Group> Client::UpdateGroup(
    std::string_view name, const GroupOptions& options,
    const std::vector<std::string>& to_default, const CallOptions& call) const {
  v1::UpdateGroupRequest request;
  *request.mutable_group() =
      GroupRequest<v1::Group>(options_.default_namespace, name);
  *request.mutable_group()->mutable_options() =
      ToMessage<v1::GroupOptions>(options);
  SetUpdateMask(request.group().options(), to_default, request);
  auto response =
      Call(core_->endpoints, &Endpoint::groups, &Groups::UpdateGroup, request,
           CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return FromMessage<Group>(response->group());
}

absl::StatusOr<SeekResult> Client::SeekGroup(std::string_view name,
                                             const GroupPosition& position,
                                             const SeekOptions& options,
                                             const CallOptions& call) const {
  auto request =
      GroupRequest<v1::SeekGroupRequest>(options_.default_namespace, name);
  SetPosition(position, *request.mutable_position());
  request.set_drop_unsettled(options.drop_unsettled);
  auto response = Call(core_->endpoints, &Endpoint::groups, &Groups::SeekGroup,
                       request, CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return SeekResult{response->unsettled(), response->dropped()};
}

absl::Status Client::ListUnsettled(
    std::string_view name, const ListUnsettledOptions& options,
    absl::FunctionRef<bool(UnsettledEvent event)> visit,
    const CallOptions& call) const {
  auto request =
      GroupRequest<v1::ListUnsettledRequest>(options_.default_namespace, name);
  request.set_page_size(kUnsettledPage);
  request.set_key_prefix(options.key_prefix);
  request.set_include_values(options.include_values);
  do {
    auto page =
        Call(core_->endpoints, &Endpoint::groups, &Groups::ListUnsettled,
             request, CallPlan(options_, call, Repeat::kSafe));
    if (!page.ok()) return page.status();
    for (v1::UnsettledEvent& event : *page->mutable_events()) {
      if (!visit(ToUnsettled(std::move(event)))) return absl::OkStatus();
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

absl::Status Client::DeleteGroup(std::string_view name,
                                 const CallOptions& call) const {
  return Call(core_->endpoints, &Endpoint::groups, &Groups::DeleteGroup,
              GroupRequest<v1::DeleteGroupRequest>(options_.default_namespace,
                                                   name),
              CallPlan(options_, call, Repeat::kUnsafe))
      .status();
}

absl::StatusOr<std::vector<GroupMember>> Client::ListMembers(
    std::string_view name, const CallOptions& call) const {
  auto response = Call(
      core_->endpoints, &Endpoint::groups, &Groups::ListMembers,
      GroupRequest<v1::ListMembersRequest>(options_.default_namespace, name),
      CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  std::vector<GroupMember> members;
  for (const v1::GroupMember& member : response->members()) {
    members.push_back(FromMessage<GroupMember>(member));
  }
  return members;
}

}  // namespace timecache
