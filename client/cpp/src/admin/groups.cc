#include <utility>

#include "client/cpp/src/admin/messages.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/client.h"

namespace timecache {
namespace {

using Groups = v1::GroupService::Stub;

template <typename Request>
Request GroupRequest(const std::string& ns, std::string_view name) {
  Request request;
  request.set_namespace_(ns);
  request.set_name(std::string(name));
  return request;
}

}  // namespace

absl::StatusOr<Group> Client::CreateGroup(std::string_view name,
                                          const GroupOptions& options,
                                          WatchStart start,
                                          const CallOptions& call) const {
  auto request =
      GroupRequest<v1::CreateGroupRequest>(options_.default_namespace, name);
  *request.mutable_options() = ToMessage<v1::GroupOptions>(options);
  request.set_from_earliest(start == WatchStart::kEarliest);
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

absl::Status Client::DeleteGroup(std::string_view name,
                                 const CallOptions& call) const {
  return Call(core_->endpoints, &Endpoint::groups, &Groups::DeleteGroup,
              GroupRequest<v1::DeleteGroupRequest>(options_.default_namespace,
                                                   name),
              CallPlan(options_, call, Repeat::kUnsafe))
      .status();
}

}  // namespace timecache
