// The consumer groups of FakeService: described, but without members.
#include <iterator>
#include <utility>

#include "tests/client/fake_service.h"

namespace timecache {
namespace {

grpc::Status GroupNotFound() {
  return MakeError(grpc::StatusCode::NOT_FOUND, "no such group",
                   v1::GROUP_NOT_FOUND);
}

// With statistics where they are asked for.
v1::Group Describe(const v1::Group& group, bool include_statistics) {
  v1::Group described = group;
  described.mutable_statistics();  // There, be it empty.
  if (!include_statistics) described.clear_statistics();
  return described;
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

v1::UpdateGroupRequest FakeService::last_group_update() const {
  absl::MutexLock lock(&mu_);
  return last_group_update_;
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
                     "the group exists already", v1::GROUP_EXISTS);
  }
  v1::Group& group = it->second;
  group.set_name(request->name());
  group.set_namespace_(request->namespace_());
  group.mutable_options()->mutable_ack_timeout()->set_seconds(30);
  group.mutable_options()->set_max_attempts(5);
  group.mutable_options()->set_max_backlog_bytes(256 << 20);
  UpdateOptions(request->options(), {}, group.mutable_options());
  group.mutable_statistics()->set_backlog(request->from_earliest() ? 1 : 0);
  *response->mutable_group() = Describe(group, false);
  return grpc::Status::OK;
}

grpc::Status FakeService::GetGroup(grpc::ServerContext* context,
                                   const v1::GetGroupRequest* request,
                                   v1::GetGroupResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  const auto it = ns->groups.find(request->name());
  if (it == ns->groups.end()) return GroupNotFound();
  *response->mutable_group() =
      Describe(it->second, request->include_statistics());
  return grpc::Status::OK;
}

grpc::Status FakeService::ListGroups(grpc::ServerContext* context,
                                     const v1::ListGroupsRequest* request,
                                     v1::ListGroupsResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  // The least page that there can be.
  const auto it = ns->groups.upper_bound(request->page_token());
  if (it == ns->groups.end()) return grpc::Status::OK;
  *response->add_groups() = Describe(it->second, request->include_statistics());
  if (std::next(it) != ns->groups.end()) {
    response->set_next_page_token(it->first);
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::UpdateGroup(grpc::ServerContext* context,
                                      const v1::UpdateGroupRequest* request,
                                      v1::UpdateGroupResponse* response) {
  absl::MutexLock lock(&mu_);
  last_group_update_ = *request;
  const v1::Group& change = request->group();
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, change.namespace_(), &ns);
  if (!status.ok()) return status;
  const auto it = ns->groups.find(change.name());
  if (it == ns->groups.end()) return GroupNotFound();
  UpdateOptions(change.options(), request->update_mask(),
                it->second.mutable_options());
  *response->mutable_group() = Describe(it->second, false);
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
