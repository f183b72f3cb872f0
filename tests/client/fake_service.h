// An in-process stand-in for the server, for tests of its clients.

#ifndef TIMECACHED_TESTS_CLIENT_FAKE_SERVICE_H_
#define TIMECACHED_TESTS_CLIENT_FAKE_SERVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "server/base/steady_cond_var.h"
#include "tests/client/fake_script.h"
#include "timecache/client.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"
#include "timecache/v1/data.grpc.pb.h"
#include "timecache/v1/groups.grpc.pb.h"
#include "timecache/v1/namespaces.grpc.pb.h"
#include "timecache/v1/server.grpc.pb.h"

namespace timecache {

// Maps without expiry, behind the real services' interfaces, on 127.0.0.1 and a
// free port. The data is exact enough for what clients do with it; deaths are
// scripted. Thread-safe.
class FakeService final : public v1::TimeCacheService::Service,
                          public v1::NamespaceService::Service,
                          public v1::GroupService::Service,
                          public v1::ServerService::Service,
                          public testing::v1::VirtualClockService::Service {
 public:
  using Context = grpc::ServerContext;

  // With a namespace "default". `listen` brings back one that is gone.
  explicit FakeService(const std::string& listen = "127.0.0.1:0");
  ~FakeService() override;

  const std::string& address() const { return address_; }
  Client MakeClient(ClientOptions options = {}) const {
    return Client(address_, std::move(options));
  }

  // From now on every unary call ends with this, and every operation of a batch
  // on its own; OK: answers again.
  void FailWith(grpc::Status status);
  // From now on every unary call, and every operation of a batch, waits until
  // its caller leaves it.
  void Hang(bool hang);
  // Called first in every unary call, from now on; what is not OK ends it.
  // Calls nothing of this.
  void OnCall(std::function<grpc::Status(const Context& context)> on_call);
  // What Pipeline calls that begin from now on do.
  void SetPipeline(PipelineScript script);
  // Operations of each request that Pipeline calls have read, in order.
  std::vector<int> pipeline_requests() const;
  // The next calls of WatchExpired, ConsumeExpired and WatchExpiring, in turn;
  // a call beyond them ends with NOT_FOUND.
  void AddWatch(WatchScript script);
  // The requests that calls of each came with.
  std::vector<v1::WatchExpiredRequest> watch_requests() const;
  std::vector<v1::ConsumeExpiredRequest> consume_requests() const;
  std::vector<v1::WatchExpiringRequest> expiring_requests() const;
  // The requests that SettleExpired calls came with, in order.
  std::vector<v1::SettleExpiredRequest> settle_requests() const;
  // How they are answered from now on. Else: every settlement is fine.
  void OnSettle(OnSettleFunction on_settle);
  // Makes or replaces a group of its namespace.
  void SetGroup(const v1::Group& group);
  // The next scans end so after a page, one after the other.
  void CutScans(std::vector<grpc::Status> statuses);
  // The last request of each.
  v1::PutRequest last_put() const;
  v1::UpdateNamespaceRequest last_namespace_update() const;
  v1::UpdateGroupRequest last_group_update() const;
  // What GetCluster answers, in place of NO_CLUSTER.
  void SetCluster(const v1::GetClusterResponse& cluster);
  // Of namespaces that are created or updated from now on.
  void SetWarnings(std::vector<std::string> warnings);
  // Called in every Put, before it stores.
  void OnPut(std::function<void(const v1::PutRequest&)> on_put);

  grpc::Status Put(Context*, const v1::PutRequest*, v1::PutResponse*) override;
  grpc::Status Get(Context*, const v1::GetRequest*, v1::GetResponse*) override;
  grpc::Status Remove(Context*, const v1::RemoveRequest*,
                      v1::RemoveResponse*) override;
  grpc::Status Contains(Context*, const v1::ContainsRequest*,
                        v1::ContainsResponse*) override;
  grpc::Status Size(Context*, const v1::SizeRequest*,
                    v1::SizeResponse*) override;
  grpc::Status Touch(Context*, const v1::TouchRequest*,
                     v1::TouchResponse*) override;
  // Without times to live, and a Gather's values alone.
  grpc::Status Append(Context*, const v1::AppendRequest*,
                      v1::AppendResponse*) override;
  grpc::Status Combine(Context*, const v1::CombineRequest*,
                       v1::CombineResponse*) override;
  grpc::Status Gather(Context*, const v1::GatherRequest*,
                      v1::GatherResponse*) override;
  grpc::Status Execute(Context*, const v1::ExecuteRequest*,
                       v1::ExecuteResponse*) override;
  grpc::Status Pipeline(Context*,
                        grpc::ServerReaderWriter<v1::ExecuteResponse,
                                                 v1::ExecuteRequest>*) override;
  grpc::Status Scan(Context*, const v1::ScanRequest*,
                    grpc::ServerWriter<v1::ScanResponse>*) override;
  grpc::Status WatchExpired(
      Context*, const v1::WatchExpiredRequest*,
      grpc::ServerWriter<v1::WatchExpiredResponse>*) override;
  grpc::Status ConsumeExpired(
      Context*, const v1::ConsumeExpiredRequest*,
      grpc::ServerWriter<v1::ConsumeExpiredResponse>*) override;
  grpc::Status WatchExpiring(
      Context*, const v1::WatchExpiringRequest*,
      grpc::ServerWriter<v1::WatchExpiringResponse>*) override;
  grpc::Status CreateNamespace(Context*, const v1::CreateNamespaceRequest*,
                               v1::CreateNamespaceResponse*) override;
  grpc::Status GetNamespace(Context*, const v1::GetNamespaceRequest*,
                            v1::GetNamespaceResponse*) override;
  grpc::Status ListNamespaces(Context*, const v1::ListNamespacesRequest*,
                              v1::ListNamespacesResponse*) override;
  grpc::Status UpdateNamespace(Context*, const v1::UpdateNamespaceRequest*,
                               v1::UpdateNamespaceResponse*) override;
  grpc::Status DeleteNamespace(Context*, const v1::DeleteNamespaceRequest*,
                               v1::DeleteNamespaceResponse*) override;
  grpc::Status RotateNamespace(Context*, const v1::RotateNamespaceRequest*,
                               v1::RotateNamespaceResponse*) override;
  grpc::Status GetServer(Context*, const v1::GetServerRequest*,
                         v1::GetServerResponse*) override;
  grpc::Status GetCluster(Context*, const v1::GetClusterRequest*,
                          v1::GetClusterResponse*) override;
  // The node of that name owns from the next GetCluster but one on.
  grpc::Status HandOver(Context*, const v1::HandOverRequest*,
                        v1::HandOverResponse*) override;
  grpc::Status SettleExpired(Context*, const v1::SettleExpiredRequest*,
                             v1::SettleExpiredResponse*) override;
  grpc::Status CreateGroup(Context*, const v1::CreateGroupRequest*,
                           v1::CreateGroupResponse*) override;
  grpc::Status GetGroup(Context*, const v1::GetGroupRequest*,
                        v1::GetGroupResponse*) override;
  grpc::Status ListGroups(Context*, const v1::ListGroupsRequest*,
                          v1::ListGroupsResponse*) override;
  grpc::Status UpdateGroup(Context*, const v1::UpdateGroupRequest*,
                           v1::UpdateGroupResponse*) override;
  grpc::Status DeleteGroup(Context*, const v1::DeleteGroupRequest*,
                           v1::DeleteGroupResponse*) override;
  grpc::Status Advance(Context*, const testing::v1::AdvanceRequest*,
                       testing::v1::AdvanceResponse*) override;
  grpc::Status Now(Context*, const testing::v1::NowRequest*,
                   testing::v1::NowResponse*) override;

 private:
  struct FakeNamespace {
    v1::NamespaceOptions options;
    std::map<std::string, v1::Entry> entries;
    std::map<std::string, v1::Group> groups;
  };

  // What every call does first: fail or hang as told, and find the namespace.
  grpc::Status Enter(Context* context, const std::string& name,
                     FakeNamespace** found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  grpc::Status EnterUnary(Context* context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits until the caller leaves, or `hang` is false.
  void AwaitLeave(const Context& context, const bool& hang)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // One of the calls that AddWatch scripts. `requests`: where it is noted.
  template <typename Request, typename Response>
  grpc::Status PlayWatch(Context* context, const Request& request,
                         std::vector<Request> FakeService::*requests,
                         grpc::ServerWriter<Response>* writer);

  // One of a batch.
  void Do(Context* context, const std::string& ns, v1::Operation operation,
          v1::OperationResult& result);

  mutable absl::Mutex mu_;
  std::map<std::string, FakeNamespace> namespaces_ ABSL_GUARDED_BY(mu_);
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  grpc::Status failure_ ABSL_GUARDED_BY(mu_);
  bool hang_ ABSL_GUARDED_BY(mu_) = false;
  SteadyCondVar hang_changed_;
  std::function<grpc::Status(const Context& context)> on_call_
      ABSL_GUARDED_BY(mu_);
  std::vector<WatchScript> watches_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::WatchExpiredRequest> watch_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::ConsumeExpiredRequest> consume_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::WatchExpiringRequest> expiring_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::SettleExpiredRequest> settle_requests_ ABSL_GUARDED_BY(mu_);
  OnSettleFunction on_settle_ ABSL_GUARDED_BY(mu_);
  PipelineScript pipeline_ ABSL_GUARDED_BY(mu_);
  std::vector<int> pipeline_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<grpc::Status> scan_cuts_ ABSL_GUARDED_BY(mu_);
  v1::PutRequest last_put_ ABSL_GUARDED_BY(mu_);
  v1::UpdateNamespaceRequest last_namespace_update_ ABSL_GUARDED_BY(mu_);
  v1::UpdateGroupRequest last_group_update_ ABSL_GUARDED_BY(mu_);
  std::function<void(const v1::PutRequest&)> on_put_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mu_);
  absl::Time now_ ABSL_GUARDED_BY(mu_) = absl::UnixEpoch();

  std::string address_;
  // Last: calls come as soon as it stands.
  std::unique_ptr<grpc::Server> server_;
  v1::GetClusterResponse cluster_ ABSL_GUARDED_BY(mu_);
  std::string successor_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_FAKE_SERVICE_H_
