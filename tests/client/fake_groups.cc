// The consumer groups of FakeService: described, but without members.
#include <utility>

#include "tests/client/fake_service.h"

namespace timecache {
namespace {

grpc::Status GroupNotFound() {
  return MakeError(grpc::StatusCode::NOT_FOUND, "no such group",
                   "GROUP_NOT_FOUND");
}

// A duration that is set replaces the other, instead of being merged into it.
void Update(const v1::GroupOptions& options, v1::Group& group) {
  if (options.has_ack_timeout()) {
    group.mutable_options()->clear_ack_timeout();
  }
  group.mutable_options()->MergeFrom(options);
}

}  // namespace

std::vector<v1::SettleExpiredRequest> FakeService::settle_requests() const {
  absl::MutexLock lock(&mu_);
  return settle_requests_;
}

void FakeService::OnSettle(OnSettleFunction on_settle) {
  absl::MutexLock lock(&mu_);
  on_settle_ = std::move(on_settle);
}

void FakeService::SetGroup(const v1::Group& group) {
  absl::MutexLock lock(&mu_);
  namespaces_[group.namespace_()].groups[group.name()] = group;
}

grpc::Status FakeService::SettleExpired(grpc::ServerContext* context,
                                        const v1::SettleExpiredRequest* request,
                                        v1::SettleExpiredResponse* response) {
  OnSettleFunction on_settle;
  {
    absl::MutexLock lock(&mu_);
    settle_requests_.push_back(*request);
    FakeNamespace* ns;
    const grpc::Status status = Enter(context, request->namespace_(), &ns);
    if (!status.ok()) return status;
    on_settle = on_settle_;
  }
  for (int i = 0; i < request->settlements_size(); ++i) response->add_results();
  return on_settle ? on_settle(*request, response) : grpc::Status::OK;
}

grpc::Status FakeService::CreateGroup(grpc::ServerContext* context,
                                      const v1::CreateGroupRequest* request,
                                      v1::CreateGroupResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  const auto [it, made] = ns->groups.try_emplace(request->name());
  if (!made) {
    return MakeError(grpc::StatusCode::ALREADY_EXISTS,
                     "the group exists already", "GROUP_EXISTS");
  }
  v1::Group& group = it->second;
  group.set_name(request->name());
  group.set_namespace_(request->namespace_());
  group.mutable_options()->mutable_ack_timeout()->set_seconds(30);
  group.mutable_options()->set_max_attempts(5);
  group.mutable_options()->set_max_backlog_bytes(256 << 20);
  Update(request->options(), group);
  group.mutable_statistics()->set_backlog(request->from_earliest() ? 1 : 0);
  *response->mutable_group() = group;
  return grpc::Status::OK;
}

grpc::Status FakeService::ListGroups(grpc::ServerContext* context,
                                     const v1::ListGroupsRequest* request,
                                     v1::ListGroupsResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  for (const auto& [name, group] : ns->groups) *response->add_groups() = group;
  return grpc::Status::OK;
}

grpc::Status FakeService::UpdateGroup(grpc::ServerContext* context,
                                      const v1::UpdateGroupRequest* request,
                                      v1::UpdateGroupResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  const auto it = ns->groups.find(request->name());
  if (it == ns->groups.end()) return GroupNotFound();
  Update(request->options(), it->second);
  *response->mutable_group() = it->second;
  return grpc::Status::OK;
}

grpc::Status FakeService::DeleteGroup(grpc::ServerContext* context,
                                      const v1::DeleteGroupRequest* request,
                                      v1::DeleteGroupResponse*) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  return ns->groups.erase(request->name()) == 1 ? grpc::Status::OK
                                                : GroupNotFound();
}

}  // namespace timecache
