#include <utility>

#include "client/cpp/src/admin/update_mask.h"
#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/client.h"

namespace timecache {
namespace {

using Groups = v1::GroupService::Stub;

v1::GroupOptions MakeOptions(const GroupOptions& options) {
  v1::GroupOptions proto;
  if (options.ack_timeout) {
    *proto.mutable_ack_timeout() = ToProto(*options.ack_timeout);
  }
  if (options.max_attempts) proto.set_max_attempts(*options.max_attempts);
  if (options.max_backlog_bytes) {
    proto.set_max_backlog_bytes(*options.max_backlog_bytes);
  }
  if (options.unused_ttl) {
    *proto.mutable_unused_ttl() = ToProto(*options.unused_ttl);
  }
  return proto;
}

GroupOptions ReadOptions(const v1::GroupOptions& proto) {
  return {.ack_timeout = FromProto(proto.ack_timeout()),
          .max_attempts = proto.max_attempts(),
          .max_backlog_bytes = proto.max_backlog_bytes(),
          .unused_ttl = FromProto(proto.unused_ttl())};
}

GroupStatistics ReadStatistics(const v1::GroupStatistics& proto) {
  GroupStatistics statistics = {
      .members = proto.members(),
      .unresponsive_members = proto.unresponsive_members(),
      .backlog = proto.backlog(),
      .backlog_bytes = proto.backlog_bytes(),
      .in_flight = proto.in_flight(),
      .delivered = proto.delivered(),
      .redelivered = proto.redelivered(),
      .acked = proto.acked(),
      .nacked = proto.nacked(),
      .put_back = proto.put_back(),
      .timed_out = proto.timed_out(),
      .dead_lettered = proto.dead_lettered(),
      .dead_letter_failures = proto.dead_letter_failures(),
      .lost = proto.lost(),
      .dead_letters_dropped = proto.dead_letters_dropped(),
      .in_flight_bytes = proto.in_flight_bytes(),
      .dead_letters_denied = proto.dead_letters_denied(),
      .returned = proto.returned(),
      .extended = proto.extended(),
      .suspects = proto.suspects()};
  if (proto.has_oldest_unsettled()) {
    statistics.oldest_unsettled = FromProto(proto.oldest_unsettled());
  }
  if (proto.has_unused_since()) {
    statistics.unused_since = FromProto(proto.unused_since());
  }
  return statistics;
}

Group ReadGroup(const v1::Group& proto) {
  Group group = {.name = proto.name(),
                 .ns = proto.namespace_(),
                 .options = ReadOptions(proto.options()),
                 .created_by = proto.created_by()};
  if (proto.has_statistics()) {
    group.statistics = ReadStatistics(proto.statistics());
  }
  return group;
}

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
  *request.mutable_options() = MakeOptions(options);
  request.set_from_earliest(start == WatchStart::kEarliest);
  auto response = Call(core_->connection, core_->groups, &Groups::CreateGroup,
                       request, CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return ReadGroup(response->group());
}

absl::StatusOr<Group> Client::GetGroup(std::string_view name,
                                       const DescribeOptions& describe,
                                       const CallOptions& call) const {
  auto request =
      GroupRequest<v1::GetGroupRequest>(options_.default_namespace, name);
  request.set_include_statistics(describe.include_statistics);
  auto response = Call(core_->connection, core_->groups, &Groups::GetGroup,
                       request, CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return ReadGroup(response->group());
}

absl::StatusOr<std::vector<Group>> Client::ListGroups(
    const DescribeOptions& describe, const CallOptions& call) const {
  std::vector<Group> groups;
  v1::ListGroupsRequest request;
  request.set_namespace_(options_.default_namespace);
  request.set_include_statistics(describe.include_statistics);
  do {
    auto page = Call(core_->connection, core_->groups, &Groups::ListGroups,
                     request, CallPlan(options_, call, Repeat::kSafe));
    if (!page.ok()) return page.status();
    for (const v1::Group& group : page->groups()) {
      groups.push_back(ReadGroup(group));
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
  *request.mutable_group()->mutable_options() = MakeOptions(options);
  SetUpdateMask(request.group().options(), to_default, request);
  auto response = Call(core_->connection, core_->groups, &Groups::UpdateGroup,
                       request, CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return ReadGroup(response->group());
}

absl::Status Client::DeleteGroup(std::string_view name,
                                 const CallOptions& call) const {
  return Call(core_->connection, core_->groups, &Groups::DeleteGroup,
              GroupRequest<v1::DeleteGroupRequest>(options_.default_namespace,
                                                   name),
              CallPlan(options_, call, Repeat::kUnsafe))
      .status();
}

}  // namespace timecache
