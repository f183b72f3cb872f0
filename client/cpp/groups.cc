#include <utility>

#include "client/cpp/call.h"
#include "client/cpp/client.h"
#include "client/cpp/convert.h"

namespace timecache::inline client {
namespace {

using Namespaces = v1::NamespaceService::Stub;

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
      .dead_letters_denied = proto.dead_letters_denied()};
  if (proto.has_oldest_unsettled()) {
    statistics.oldest_unsettled = FromProto(proto.oldest_unsettled());
  }
  if (proto.has_unused_since()) {
    statistics.unused_since = FromProto(proto.unused_since());
  }
  return statistics;
}

Group ReadGroup(const v1::Group& proto) {
  return {.name = proto.name(),
          .ns = proto.namespace_(),
          .options = ReadOptions(proto.options()),
          .statistics = ReadStatistics(proto.statistics()),
          .created_by = proto.created_by()};
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
                                          WatchStart start) const {
  auto request =
      GroupRequest<v1::CreateGroupRequest>(options_.default_namespace, name);
  *request.mutable_options() = MakeOptions(options);
  request.set_from_earliest(start == WatchStart::kEarliest);
  auto response = Call(*connection_, *namespaces_, &Namespaces::CreateGroup,
                       request, options_.timeout);
  if (!response.ok()) return response.status();
  return ReadGroup(response->group());
}

absl::StatusOr<std::vector<Group>> Client::ListGroups() const {
  v1::ListGroupsRequest request;
  request.set_namespace_(options_.default_namespace);
  auto response = Call(*connection_, *namespaces_, &Namespaces::ListGroups,
                       request, options_.timeout);
  if (!response.ok()) return response.status();
  std::vector<Group> groups;
  groups.reserve(response->groups_size());
  for (const v1::Group& group : response->groups()) {
    groups.push_back(ReadGroup(group));
  }
  return groups;
}

absl::StatusOr<Group> Client::UpdateGroup(std::string_view name,
                                          const GroupOptions& options) const {
  auto request =
      GroupRequest<v1::UpdateGroupRequest>(options_.default_namespace, name);
  *request.mutable_options() = MakeOptions(options);
  auto response = Call(*connection_, *namespaces_, &Namespaces::UpdateGroup,
                       request, options_.timeout);
  if (!response.ok()) return response.status();
  return ReadGroup(response->group());
}

absl::Status Client::DeleteGroup(std::string_view name) const {
  return Call(*connection_, *namespaces_, &Namespaces::DeleteGroup,
              GroupRequest<v1::DeleteGroupRequest>(options_.default_namespace,
                                                   name),
              options_.timeout)
      .status();
}

}  // namespace timecache::inline client
