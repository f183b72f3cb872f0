#include "timecache/async_client.h"

#include <optional>
#include <stop_token>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "server/common/steady_cond_var.h"

namespace timecache {
namespace {

using Stub = v1::TimeCacheService::Stub;

// A method of the stub, e.g. &Stub::async::Put.
template <typename Request, typename Response>
using Method = void (Stub::async::*)(grpc::ClientContext*, const Request*,
                                     Response*,
                                     std::function<void(grpc::Status)>);

struct Cancel {
  grpc::ClientContext* context;
  void operator()() const { context->TryCancel(); }
};

// What a call needs until its answer is in.
template <typename Request, typename Response>
struct Pending {
  grpc::ClientContext context;
  Request request;
  Response response;
  std::optional<std::stop_callback<Cancel>> cancel;
};

}  // namespace

class AsyncClient::State {
 public:
  explicit State(const Client& client) : client_(client) {}

  ~State() {
    absl::MutexLock lock(&mu_);
    while (calls_ > 0) ended_.Wait(&mu_);
  }

  const std::string& ns() const { return client_.options().default_namespace; }

  template <typename Result, typename Request, typename Response, typename Take>
  void Call(Method<Request, Response> method, Request request,
            const CallOptions& call, Done<Result> done, Take take) {
    if (absl::Status status = CheckMetadata(call); !status.ok()) {
      return done(std::move(status));
    }
    auto pending = std::make_shared<Pending<Request, Response>>();
    pending->request = std::move(request);
    Prepare(call, SteadyAfter(call.timeout.value_or(client_.options().timeout)),
            pending->context);
    // Before the call begins, because its end takes this back.
    if (call.cancellation.stop_possible()) {
      pending->cancel.emplace(call.cancellation, Cancel{&pending->context});
    }
    {
      absl::MutexLock lock(&mu_);
      ++calls_;
    }
    auto end = [this, pending, done = std::move(done),
                take = std::move(take)](const grpc::Status& status) mutable {
      pending->cancel.reset();
      if (status.ok()) {
        done(take(pending->request, pending->response));
      } else {
        done(FromGrpcStatus(status));
      }
      pending.reset();
      absl::MutexLock lock(&mu_);
      if (--calls_ == 0) ended_.SignalAll();
    };
    (client_.core_->cache.async()->*method)(&pending->context,
                                            &pending->request,
                                            &pending->response, std::move(end));
  }

  // Of a call whose answer says all.
  template <typename Result, typename Request, typename Response>
  void Call(Method<Request, Response> method, Request request,
            const CallOptions& call, Done<Result> done) {
    Call<Result, Request, Response>(method, std::move(request), call,
                                    std::move(done),
                                    [](const Request&, Response& response) {
                                      return TakeAnswer(response);
                                    });
  }

 private:
  const Client client_;

  absl::Mutex mu_;
  SteadyCondVar ended_;
  size_t calls_ ABSL_GUARDED_BY(mu_) = 0;  // Under way.
};

AsyncClient::AsyncClient(const Client& client)
    : state_(std::make_unique<State>(client)) {}

AsyncClient::~AsyncClient() = default;

void AsyncClient::Put(std::string_view key, std::string_view value,
                      Done<PutResult> done, const PutOptions& options,
                      const CallOptions& call) const {
  state_->Call<PutResult, v1::PutRequest, v1::PutResponse>(
      &Stub::async::Put, MakePutRequest(state_->ns(), key, value, options),
      call, std::move(done));
}

void AsyncClient::Get(std::string_view key, Done<std::optional<Entry>> done,
                      const GetOptions& options,
                      const CallOptions& call) const {
  state_->Call<std::optional<Entry>, v1::GetRequest, v1::GetResponse>(
      &Stub::async::Get, MakeGetRequest(state_->ns(), key, options), call,
      std::move(done));
}

void AsyncClient::Remove(std::string_view key, Done<RemoveResult> done,
                         const RemoveOptions& options,
                         const CallOptions& call) const {
  state_->Call<RemoveResult, v1::RemoveRequest, v1::RemoveResponse>(
      &Stub::async::Remove, MakeRemoveRequest(state_->ns(), key, options), call,
      std::move(done));
}

void AsyncClient::Contains(std::string_view key, Done<bool> done,
                           const CallOptions& call) const {
  state_->Call<bool, v1::ContainsRequest, v1::ContainsResponse>(
      &Stub::async::Contains,
      KeyRequest<v1::ContainsRequest>(state_->ns(), key), call,
      std::move(done));
}

void AsyncClient::Size(Done<SizeResult> done, const CallOptions& call) const {
  v1::SizeRequest request;
  request.set_namespace_(state_->ns());
  state_->Call<SizeResult, v1::SizeRequest, v1::SizeResponse>(
      &Stub::async::Size, std::move(request), call, std::move(done));
}

void AsyncClient::Touch(std::string_view key,
                        Done<std::optional<uint64_t>> done,
                        const TouchOptions& options,
                        const CallOptions& call) const {
  state_->Call<std::optional<uint64_t>, v1::TouchRequest, v1::TouchResponse>(
      &Stub::async::Touch, MakeTouchRequest(state_->ns(), key, options), call,
      std::move(done));
}

void AsyncClient::Execute(const Batch& batch,
                          Done<std::vector<OperationResult>> done,
                          const CallOptions& call) const {
  if (batch.empty()) return done(std::vector<OperationResult>());
  if (absl::Status status = CheckLimits(batch); !status.ok()) {
    return done(std::move(status));
  }
  v1::ExecuteRequest request = batch.proto();
  request.set_namespace_(state_->ns());
  state_->Call<std::vector<OperationResult>, v1::ExecuteRequest,
               v1::ExecuteResponse>(&Stub::async::Execute, std::move(request),
                                    call, std::move(done), TakeResults);
}

}  // namespace timecache
