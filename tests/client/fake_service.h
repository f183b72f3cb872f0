// A server in this process whose streams, settlements and failures are
// scripted, for tests of its clients.

#ifndef TIMECACHED_TESTS_CLIENT_FAKE_SERVICE_H_
#define TIMECACHED_TESTS_CLIENT_FAKE_SERVICE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "grpcpp/server.h"
#include "server/base/steady_cond_var.h"
#include "tests/client/fake_script.h"
#include "tests/support/test_server.h"
#include "timecache/client.h"

namespace timecache {

// A unary call that goes on to the server.
#define TIMECACHE_FORWARD(package, service, name)                    \
  grpc::Status name(grpc::ServerContext* context,                    \
                    const package::name##Request* request,           \
                    package::name##Response* response) override {    \
    return Forward(context, &package::service::Stub::name, *request, \
                   response);                                        \
  }

// Stands before a TestServer whose clock begins at 1970, on 127.0.0.1 and a
// free port: unary calls and scans go on to that. Thread-safe.
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
  void AdvanceClock(absl::Duration by) {
    server().AdvanceBy(absl::ToInt64Microseconds(by));
  }

  // From now on every unary call ends with this, and every operation of a batch
  // on its own; OK: answers again.
  void FailWith(grpc::Status status);
  // From now on every unary call, and every request of a pipeline, waits until
  // its caller leaves it.
  void Hang(bool hang);
  // Called first in every unary call, from now on; what is not OK ends it.
  // Calls nothing of this.
  void OnCall(std::function<grpc::Status(const Context& context)> on_call);
  // The next unary call with such a response gets this one; the last that was
  // given stays.
  void Answer(const google::protobuf::Message& response);
  // The next calls of Scan, in turn; those beyond them go on to the server.
  void AddScan(ScanScript script);
  // What GetCluster answers, in place of NO_CLUSTER.
  void SetCluster(const v1::GetClusterResponse& cluster);
  // Called in every Put, also of a batch, before it goes on.
  void OnPut(std::function<void(const v1::PutRequest&)> on_put);
  // What Pipeline calls that begin from now on do.
  void SetPipeline(PipelineScript script);
  // Operations of each request that Pipeline calls have read, in order.
  std::vector<int> pipeline_requests() const;
  // The next calls of WatchExpired and its likes, in turn;
  // a call beyond them ends with NOT_FOUND.
  void AddWatch(WatchScript script);
  // How SettleExpired calls are answered from now on. Else: every settlement is
  // fine.
  void OnSettle(OnSettleFunction on_settle);
  // The requests of this type that calls came with, in order; the Puts also of
  // batches.
  template <typename Request>
  std::vector<Request> Requests() const {
    absl::MutexLock lock(&mu_);
    std::vector<Request> requests;
    const auto found = requests_.find(Request::descriptor()->full_name());
    if (found == requests_.end()) return requests;
    for (const std::string& bytes : found->second) {
      requests.emplace_back().ParseFromString(bytes);
    }
    return requests;
  }
  template <typename Request>
  Request Last() const {
    const std::vector<Request> all = Requests<Request>();
    return all.empty() ? Request() : all.back();
  }

  TIMECACHE_FORWARD(v1, TimeCacheService, Get)
  TIMECACHE_FORWARD(v1, TimeCacheService, Remove)
  TIMECACHE_FORWARD(v1, TimeCacheService, Contains)
  TIMECACHE_FORWARD(v1, TimeCacheService, Size)
  TIMECACHE_FORWARD(v1, TimeCacheService, Touch)
  TIMECACHE_FORWARD(v1, TimeCacheService, Append)
  TIMECACHE_FORWARD(v1, TimeCacheService, Combine)
  TIMECACHE_FORWARD(v1, TimeCacheService, Gather)
  TIMECACHE_FORWARD(v1, TimeCacheService, FetchExpired)
  TIMECACHE_FORWARD(v1, NamespaceService, CreateNamespace)
  TIMECACHE_FORWARD(v1, NamespaceService, GetNamespace)
  TIMECACHE_FORWARD(v1, NamespaceService, ListNamespaces)
  TIMECACHE_FORWARD(v1, NamespaceService, UpdateNamespace)
  TIMECACHE_FORWARD(v1, NamespaceService, DeleteNamespace)
  TIMECACHE_FORWARD(v1, NamespaceService, RotateNamespace)
  TIMECACHE_FORWARD(v1, NamespaceService, GetDeaths)
  TIMECACHE_FORWARD(v1, NamespaceService, GetHotKeys)
  TIMECACHE_FORWARD(v1, NamespaceService, GetOwners)
  TIMECACHE_FORWARD(v1, GroupService, CreateGroup)
  TIMECACHE_FORWARD(v1, GroupService, GetGroup)
  TIMECACHE_FORWARD(v1, GroupService, ListGroups)
  TIMECACHE_FORWARD(v1, GroupService, UpdateGroup)
  TIMECACHE_FORWARD(v1, GroupService, DeleteGroup)
  TIMECACHE_FORWARD(v1, GroupService, ListMembers)
  TIMECACHE_FORWARD(v1, GroupService, SeekGroup)
  TIMECACHE_FORWARD(v1, GroupService, ListUnsettled)
  TIMECACHE_FORWARD(v1, ServerService, GetServer)
  TIMECACHE_FORWARD(testing::v1, VirtualClockService, Advance)
  TIMECACHE_FORWARD(testing::v1, VirtualClockService, Now)

  grpc::Status GetCluster(Context*, const v1::GetClusterRequest*,
                          v1::GetClusterResponse*) override;
  // The node of that name owns from the next GetCluster but one on.
  grpc::Status HandOver(Context*, const v1::HandOverRequest*,
                        v1::HandOverResponse*) override;
  grpc::Status Put(Context*, const v1::PutRequest*, v1::PutResponse*) override;
  grpc::Status Execute(Context*, const v1::ExecuteRequest*,
                       v1::ExecuteResponse*) override;
  grpc::Status Pipeline(Context*,
                        grpc::ServerReaderWriter<v1::ExecuteResponse,
                                                 v1::ExecuteRequest>*) override;
  grpc::Status Scan(Context*, const v1::ScanRequest*,
                    grpc::ServerWriter<v1::ScanResponse>*) override;
  grpc::Status SettleExpired(Context*, const v1::SettleExpiredRequest*,
                             v1::SettleExpiredResponse*) override;
  grpc::Status WatchExpired(
      Context*, const v1::WatchExpiredRequest*,
      grpc::ServerWriter<v1::WatchExpiredResponse>*) override;
  grpc::Status ConsumeExpired(
      Context*, const v1::ConsumeExpiredRequest*,
      grpc::ServerWriter<v1::ConsumeExpiredResponse>*) override;
  grpc::Status WatchChanges(
      Context*, const v1::WatchChangesRequest*,
      grpc::ServerWriter<v1::WatchChangesResponse>*) override;
  grpc::Status WatchExpiring(
      Context*, const v1::WatchExpiringRequest*,
      grpc::ServerWriter<v1::WatchExpiringResponse>*) override;

 private:
  // What every call does first: fail or hang as scripted.
  grpc::Status Enter(const Context& context);
  grpc::Status EachAsItsOwn(Context* context, v1::ExecuteRequest& request,
                            v1::ExecuteResponse* response);
  // Waits until the caller leaves, or `hang` is false.
  void AwaitLeave(const Context& context, const bool& hang)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const google::protobuf::Message& request);
  void NotePut(const v1::PutRequest& request);
  // Whether there is one from Answer.
  bool TakeAnswer(google::protobuf::Message* response);

  // Calls the server, with the caller's deadline.
  template <typename Stub, typename Request, typename Response>
  grpc::Status Forward(Context* context,
                       grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                    const Request&, Response*),
                       const Request& request, Response* response) {
    Note(request);
    const grpc::Status status = Enter(*context);
    if (!status.ok()) return status;
    if (TakeAnswer(response)) return grpc::Status::OK;
    return (Stub(channel()).*method)(
        grpc::ClientContext::FromServerContext(*context).get(), request,
        response);
  }

  // One of the calls that AddWatch scripts.
  template <typename Request, typename Response>
  grpc::Status PlayWatch(Context* context, const Request& request,
                         grpc::ServerWriter<Response>* writer);

  // Made at the first call that goes on to it.
  test::TestServer& server();
  std::shared_ptr<grpc::Channel> channel() {
    server();
    return channel_;
  }

  std::once_flag made_;
  std::unique_ptr<test::TestServer> server_;
  std::shared_ptr<grpc::Channel> channel_;

  mutable absl::Mutex mu_;
  // By their types, serialized.
  std::map<std::string, std::vector<std::string>> requests_
      ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::deque<std::string>> answers_ ABSL_GUARDED_BY(mu_);
  grpc::Status failure_ ABSL_GUARDED_BY(mu_);
  bool hang_ ABSL_GUARDED_BY(mu_) = false;
  SteadyCondVar hang_changed_;
  std::function<grpc::Status(const Context& context)> on_call_
      ABSL_GUARDED_BY(mu_);
  std::vector<WatchScript> watches_ ABSL_GUARDED_BY(mu_);
  OnSettleFunction on_settle_ ABSL_GUARDED_BY(mu_);
  PipelineScript pipeline_ ABSL_GUARDED_BY(mu_);
  std::vector<int> pipeline_requests_ ABSL_GUARDED_BY(mu_);
  std::deque<ScanScript> scans_ ABSL_GUARDED_BY(mu_);
  std::function<void(const v1::PutRequest&)> on_put_ ABSL_GUARDED_BY(mu_);
  v1::GetClusterResponse cluster_ ABSL_GUARDED_BY(mu_);
  std::string successor_ ABSL_GUARDED_BY(mu_);

  std::string address_;
  // Last: calls come as soon as it stands.
  std::unique_ptr<grpc::Server> front_;
};

#undef TIMECACHE_FORWARD

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_FAKE_SERVICE_H_
