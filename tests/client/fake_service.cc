#include "tests/client/fake_service.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/src/data/convert.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "timecache/channel.h"

namespace timecache {
namespace {

grpc::Status Refuse(v1::ErrorReason reason) {
  return MakeError(grpc::StatusCode::FAILED_PRECONDITION,
                   "the condition does not hold", reason);
}

// Of a Put or a Touch; the entry's own time to live is what it is to keep.
template <typename Request>
void BeginLife(const Request& request, absl::Time now, v1::Entry* entry) {
  if (request.has_ttl()) *entry->mutable_own_ttl() = request.ttl();
  const absl::Duration ttl =
      entry->has_own_ttl() ? FromProto(entry->own_ttl()) : kFakeTtl;
  *entry->mutable_put_time() = ToProto(now);
  *entry->mutable_deadline() =
      request.has_expire_at() ? request.expire_at() : ToProto(now + ttl);
}

v1::Namespace Describe(const std::string& name,
                       const v1::NamespaceOptions& options) {
  v1::Namespace result;
  result.set_name(name);
  *result.mutable_options() = options;
  *result.mutable_bucket_width() = ToProto(absl::Milliseconds(300));
  return result;
}

}  // namespace

FakeService::FakeService(const std::string& listen) {
  {
    absl::MutexLock lock(&mu_);
    *namespaces_["default"].options.mutable_ttl() = ToProto(kFakeTtl);
  }
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::TimeCacheService::Service*>(this));
  builder.RegisterService(static_cast<v1::NamespaceService::Service*>(this));
  builder.RegisterService(static_cast<v1::GroupService::Service*>(this));
  builder.RegisterService(static_cast<v1::ServerService::Service*>(this));
  builder.RegisterService(
      static_cast<testing::v1::VirtualClockService::Service*>(this));
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeService::~FakeService() {
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
  server_->Wait();
}

void FakeService::FailWith(grpc::Status status) {
  absl::MutexLock lock(&mu_);
  failure_ = std::move(status);
}

void FakeService::Hang(bool hang) {
  absl::MutexLock lock(&mu_);
  hang_ = hang;
  hang_changed_.SignalAll();
}

void FakeService::OnCall(
    std::function<grpc::Status(const Context& context)> on_call) {
  absl::MutexLock lock(&mu_);
  on_call_ = std::move(on_call);
}

void FakeService::SetPipeline(PipelineScript script) {
  absl::MutexLock lock(&mu_);
  pipeline_ = std::move(script);
}

std::vector<int> FakeService::pipeline_requests() const {
  absl::MutexLock lock(&mu_);
  return pipeline_requests_;
}

v1::PutRequest FakeService::last_put() const {
  absl::MutexLock lock(&mu_);
  return last_put_;
}

v1::UpdateNamespaceRequest FakeService::last_namespace_update() const {
  absl::MutexLock lock(&mu_);
  return last_namespace_update_;
}

void FakeService::SetWarnings(std::vector<std::string> warnings) {
  absl::MutexLock lock(&mu_);
  warnings_ = std::move(warnings);
}

void FakeService::OnPut(std::function<void(const v1::PutRequest&)> on_put) {
  absl::MutexLock lock(&mu_);
  on_put_ = std::move(on_put);
}

void FakeService::CutScans(std::vector<grpc::Status> statuses) {
  absl::MutexLock lock(&mu_);
  scan_cuts_ = std::move(statuses);
}

grpc::Status FakeService::EnterUnary(grpc::ServerContext* context) {
  if (on_call_) {
    const grpc::Status status = on_call_(*context);
    if (!status.ok()) return status;
  }
  AwaitLeave(*context, hang_);
  return failure_;
}

void FakeService::AwaitLeave(const Context& context, const bool& hang) {
  // A cancellation wakes nothing in gRPC's synchronous calls.
  while (hang && !context.IsCancelled()) hang_changed_.WaitFor(&mu_, kFakeLook);
}

grpc::Status FakeService::Enter(grpc::ServerContext* context,
                                const std::string& name,
                                FakeNamespace** found) {
  const grpc::Status status = EnterUnary(context);
  if (!status.ok()) return status;
  const auto it = namespaces_.find(name);
  if (it == namespaces_.end()) return NamespaceNotFound(name);
  *found = &it->second;
  return grpc::Status::OK;
}

grpc::Status FakeService::Put(grpc::ServerContext* context,
                              const v1::PutRequest* request,
                              v1::PutResponse* response) {
  std::function<void(const v1::PutRequest&)> on_put;
  {
    absl::MutexLock lock(&mu_);
    on_put = on_put_;
  }
  if (on_put) on_put(*request);
  absl::MutexLock lock(&mu_);
  last_put_ = *request;
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  if (request->has_ttl() && FromProto(request->ttl()) <= absl::ZeroDuration()) {
    return MakeError(grpc::StatusCode::INVALID_ARGUMENT,
                     "ttl: must be at least 1ms", v1::INVALID_FIELD);
  }
  const auto it = ns->entries.find(request->key());
  const bool there = it != ns->entries.end();
  if (request->condition() == v1::PUT_CONDITION_IF_ABSENT && there) {
    return Refuse(v1::KEY_EXISTS);
  }
  if (request->condition() == v1::PUT_CONDITION_IF_PRESENT && !there) {
    return Refuse(v1::KEY_NOT_FOUND);
  }
  if (request->has_if_version() &&
      (!there || it->second.version() != request->if_version())) {
    return Refuse(there ? v1::VERSION_MISMATCH : v1::KEY_NOT_FOUND);
  }
  v1::Entry& entry = ns->entries[request->key()];
  if (there && request->return_previous()) {
    *response->mutable_previous() = entry;
  }
  entry.set_key(request->key());
  entry.set_value(request->value());
  entry.set_version(++version_);
  if (!there) *entry.mutable_create_time() = ToProto(now_);
  entry.clear_own_ttl();
  BeginLife(*request, now_, &entry);
  response->set_version(version_);
  return grpc::Status::OK;
}

grpc::Status FakeService::Get(grpc::ServerContext* context,
                              const v1::GetRequest* request,
                              v1::GetResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  const auto it = ns->entries.find(request->key());
  if (it == ns->entries.end()) return grpc::Status::OK;
  *response->mutable_entry() = it->second;
  return grpc::Status::OK;
}

grpc::Status FakeService::Remove(grpc::ServerContext* context,
                                 const v1::RemoveRequest* request,
                                 v1::RemoveResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  const auto it = ns->entries.find(request->key());
  if (it == ns->entries.end()) {
    return request->has_if_version() ? Refuse(v1::KEY_NOT_FOUND)
                                     : grpc::Status::OK;
  }
  if (request->has_if_version() &&
      it->second.version() != request->if_version()) {
    return Refuse(v1::VERSION_MISMATCH);
  }
  response->set_removed(true);
  if (request->return_previous()) *response->mutable_previous() = it->second;
  ns->entries.erase(it);
  return grpc::Status::OK;
}

grpc::Status FakeService::Contains(grpc::ServerContext* context,
                                   const v1::ContainsRequest* request,
                                   v1::ContainsResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  response->set_contains(ns->entries.count(request->key()) == 1);
  return grpc::Status::OK;
}

grpc::Status FakeService::Size(grpc::ServerContext* context,
                               const v1::SizeRequest* request,
                               v1::SizeResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  uint64_t bytes = 0;
  for (const auto& [key, entry] : ns->entries) {
    bytes += key.size() + entry.value().size();
  }
  response->set_entries(ns->entries.size());
  response->set_bytes(bytes);
  return grpc::Status::OK;
}

grpc::Status FakeService::Touch(grpc::ServerContext* context,
                                const v1::TouchRequest* request,
                                v1::TouchResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  const auto it = ns->entries.find(request->key());
  if (it == ns->entries.end()) {
    return request->has_if_version() ? Refuse(v1::KEY_NOT_FOUND)
                                     : grpc::Status::OK;
  }
  if (request->has_if_version() &&
      it->second.version() != request->if_version()) {
    return Refuse(v1::VERSION_MISMATCH);
  }
  BeginLife(*request, now_, &it->second);
  response->set_touched(true);
  response->set_version(it->second.version());
  return grpc::Status::OK;
}

grpc::Status FakeService::Append(grpc::ServerContext* context,
                                 const v1::AppendRequest* request,
                                 v1::AppendResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  response->set_created(ns->entries.count(request->key()) == 0);
  if (request->condition() == v1::PUT_CONDITION_IF_PRESENT &&
      response->created()) {
    return Refuse(v1::KEY_NOT_FOUND);
  }
  v1::Entry& entry = ns->entries[request->key()];
  entry.mutable_value()->append(request->value());
  entry.set_version(++version_);
  response->set_version(version_);
  response->set_value_bytes(entry.value().size());
  return grpc::Status::OK;
}

grpc::Status FakeService::Combine(grpc::ServerContext* context,
                                  const v1::CombineRequest* request,
                                  v1::CombineResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  const bool there = ns->entries.count(request->key()) == 1;
  v1::Entry& entry = ns->entries[request->key()];
  int64_t number = request->initial();
  if (there && !absl::SimpleAtoi(entry.value(), &number)) {
    return Refuse(v1::NOT_A_NUMBER);
  }
  number =
      request->has_add() ? number + request->add() : number ^ request->xor_();
  response->set_result(number);
  response->set_removed(number == 0 && request->remove_if_zero());
  response->set_created(!there && !response->removed());
  if (response->removed()) {
    ns->entries.erase(request->key());
    return grpc::Status::OK;
  }
  entry.set_value(absl::StrCat(number));
  entry.set_version(++version_);
  response->set_version(version_);
  return grpc::Status::OK;
}

grpc::Status FakeService::Gather(grpc::ServerContext* context,
                                 const v1::GatherRequest* request,
                                 v1::GatherResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->namespace_(), &ns);
  if (!status.ok()) return status;
  v1::Entry& entry = ns->entries[request->key()];
  v1::GatheredParts& parts = *entry.mutable_parts();
  parts.set_expected_parts(request->expected_parts());
  *parts.mutable_expected_names() = request->expected_names();
  v1::GatheredPart& part = *parts.add_parts();
  part.set_name(request->part());
  part.set_value(request->value());
  response->set_count(static_cast<uint32_t>(parts.parts_size()));
  const int expected = static_cast<int>(request->expected_parts()) +
                       request->expected_names_size();
  if (parts.parts_size() == expected) {
    *response->mutable_parts() = parts;
    ns->entries.erase(request->key());
    return grpc::Status::OK;
  }
  entry.set_version(++version_);
  response->set_version(version_);
  return grpc::Status::OK;
}

grpc::Status FakeService::Scan(grpc::ServerContext* context,
                               const v1::ScanRequest* request,
                               grpc::ServerWriter<v1::ScanResponse>* writer) {
  std::vector<v1::Entry> entries;
  grpc::Status end;
  {
    absl::MutexLock lock(&mu_);
    FakeNamespace* ns;
    const grpc::Status status = Enter(context, request->namespace_(), &ns);
    if (!status.ok()) return status;
    if (!scan_cuts_.empty()) {
      end = scan_cuts_.front();
      scan_cuts_.erase(scan_cuts_.begin());
    }
    for (const auto& [key, entry] : ns->entries) {
      if (!absl::StartsWith(key, request->key_prefix())) continue;
      if (key <= request->position()) continue;
      entries.push_back(entry);
      if (request->keys_only()) entries.back().clear_value();
    }
  }
  constexpr int kPageEntries = 2;  // Small, so that a test sees several.
  v1::ScanResponse page;
  for (v1::Entry& entry : entries) {
    page.set_position(entry.key());
    *page.add_entries() = std::move(entry);
    if (page.entries_size() < kPageEntries) continue;
    if (!writer->Write(page)) return grpc::Status::CANCELLED;
    if (!end.ok()) return end;
    page.Clear();
  }
  if (page.entries_size() > 0) writer->Write(page);
  return grpc::Status::OK;
}

grpc::Status FakeService::CreateNamespace(
    grpc::ServerContext* context, const v1::CreateNamespaceRequest* request,
    v1::CreateNamespaceResponse* response) {
  absl::MutexLock lock(&mu_);
  const grpc::Status status = EnterUnary(context);
  if (!status.ok()) return status;
  const auto [it, made] = namespaces_.try_emplace(request->name());
  if (!made) {
    return MakeError(grpc::StatusCode::ALREADY_EXISTS,
                     "the namespace exists already", v1::NAMESPACE_EXISTS);
  }
  it->second.options = request->options();
  *response->mutable_namespace_() = Describe(it->first, it->second.options);
  response->mutable_warnings()->Assign(warnings_.begin(), warnings_.end());
  return grpc::Status::OK;
}

grpc::Status FakeService::GetNamespace(grpc::ServerContext* context,
                                       const v1::GetNamespaceRequest* request,
                                       v1::GetNamespaceResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->name(), &ns);
  if (!status.ok()) return status;
  v1::Namespace& described = *response->mutable_namespace_();
  described = Describe(request->name(), ns->options);
  if (request->include_statistics()) {
    described.mutable_statistics()->set_entries(ns->entries.size());
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::ListNamespaces(
    grpc::ServerContext* context, const v1::ListNamespacesRequest* request,
    v1::ListNamespacesResponse* response) {
  absl::MutexLock lock(&mu_);
  const grpc::Status status = EnterUnary(context);
  if (!status.ok()) return status;
  // The least page that there can be.
  auto it = namespaces_.upper_bound(request->page_token());
  if (it == namespaces_.end()) return grpc::Status::OK;
  v1::Namespace& described = *response->add_namespaces();
  described = Describe(it->first, it->second.options);
  if (request->include_statistics()) {
    described.mutable_statistics()->set_entries(it->second.entries.size());
  }
  if (std::next(it) != namespaces_.end()) {
    response->set_next_page_token(it->first);
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::GetServer(grpc::ServerContext* context,
                                    const v1::GetServerRequest*,
                                    v1::GetServerResponse* response) {
  absl::MutexLock lock(&mu_);
  const grpc::Status status = EnterUnary(context);
  if (!status.ok()) return status;
  response->set_version("fake");
  *response->mutable_now() = ToProto(now_);
  return grpc::Status::OK;
}

void FakeService::SetCluster(const v1::GetClusterResponse& cluster) {
  absl::MutexLock lock(&mu_);
  cluster_ = cluster;
}

grpc::Status FakeService::GetCluster(grpc::ServerContext* context,
                                     const v1::GetClusterRequest*,
                                     v1::GetClusterResponse* response) {
  absl::MutexLock lock(&mu_);
  const grpc::Status status = EnterUnary(context);
  if (!status.ok()) return status;
  if (cluster_.name().empty()) return Refuse(v1::NO_CLUSTER);
  *response = cluster_;
  if (successor_.empty()) return grpc::Status::OK;
  cluster_.set_owner(successor_);
  for (v1::ClusterNode& node : *cluster_.mutable_nodes()) {
    node.set_role(node.name() == successor_ ? v1::NODE_ROLE_OWNER
                                            : v1::NODE_ROLE_STANDBY);
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::HandOver(grpc::ServerContext* context,
                                   const v1::HandOverRequest* request,
                                   v1::HandOverResponse* response) {
  absl::MutexLock lock(&mu_);
  const grpc::Status status = EnterUnary(context);
  if (!status.ok()) return status;
  successor_ = request->to();
  response->set_to(successor_);
  return grpc::Status::OK;
}

grpc::Status FakeService::UpdateNamespace(
    grpc::ServerContext* context, const v1::UpdateNamespaceRequest* request,
    v1::UpdateNamespaceResponse* response) {
  absl::MutexLock lock(&mu_);
  last_namespace_update_ = *request;
  const v1::Namespace& change = request->namespace_();
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, change.name(), &ns);
  if (!status.ok()) return status;
  UpdateOptions(change.options(), request->update_mask(), &ns->options);
  *response->mutable_namespace_() = Describe(change.name(), ns->options);
  response->mutable_warnings()->Assign(warnings_.begin(), warnings_.end());
  return grpc::Status::OK;
}

grpc::Status FakeService::DeleteNamespace(
    grpc::ServerContext* context, const v1::DeleteNamespaceRequest* request,
    v1::DeleteNamespaceResponse*) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->name(), &ns);
  if (!status.ok()) return status;
  namespaces_.erase(request->name());
  return grpc::Status::OK;
}

grpc::Status FakeService::RotateNamespace(
    grpc::ServerContext* context, const v1::RotateNamespaceRequest* request,
    v1::RotateNamespaceResponse* response) {
  absl::MutexLock lock(&mu_);
  FakeNamespace* ns;
  const grpc::Status status = Enter(context, request->name(), &ns);
  if (!status.ok()) return status;
  response->set_entries(ns->entries.size());
  ns->entries.clear();
  return grpc::Status::OK;
}

grpc::Status FakeService::Advance(grpc::ServerContext*,
                                  const testing::v1::AdvanceRequest* request,
                                  testing::v1::AdvanceResponse* response) {
  absl::MutexLock lock(&mu_);
  const absl::Time to = request->has_to() ? FromProto(request->to())
                                          : now_ + FromProto(request->by());
  if (to < now_) {
    return MakeError(grpc::StatusCode::INVALID_ARGUMENT,
                     "the clock does not go back", v1::INVALID_FIELD);
  }
  now_ = to;
  *response->mutable_now() = ToProto(now_);
  return grpc::Status::OK;
}

grpc::Status FakeService::Now(grpc::ServerContext*,
                              const testing::v1::NowRequest*,
                              testing::v1::NowResponse* response) {
  absl::MutexLock lock(&mu_);
  *response->mutable_now() = ToProto(now_);
  return grpc::Status::OK;
}

}  // namespace timecache
