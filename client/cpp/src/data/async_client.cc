#include "timecache/async_client.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/rpc/async_call.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "server/base/steady_cond_var.h"

namespace timecache {
namespace {

using Stub = v1::TimeCacheService::Stub;

// A method of the stub, e.g. &Stub::async::Put.
template <typename Request, typename Response>
using Method = void (Stub::async::*)(grpc::ClientContext*, const Request*,
                                     Response*,
                                     std::function<void(grpc::Status)>);

template <typename Request, typename Response>
struct Exchange {
  Request request;
  Response response;
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
  void Call(Method<Request, Response> method, Request request, Repeat repeat,
            const CallOptions& call, Done<Result> done, Take take) {
    auto exchange = std::make_shared<Exchange<Request, Response>>();
    exchange->request = std::move(request);
    AttemptAsync(
        client_.core_->connection, client_.options(), call, repeat,
        [this, method, exchange](grpc::ClientContext* context,
                                 std::function<void(grpc::Status)> end) {
          (client_.core_->cache.async()->*method)(
              context, &exchange->request, &exchange->response, std::move(end));
        },
        [ticket = std::make_shared<Ticket>(this), exchange,
         done = std::move(done), take = std::move(take)](absl::Status status) {
          if (status.ok()) {
            done(take(exchange->request, exchange->response));
          } else {
            done(std::move(status));
          }
        });
  }

  // For a call whose response is the result.
  template <typename Result, typename Request, typename Response>
  void Call(Method<Request, Response> method, Request request, Repeat repeat,
            const CallOptions& call, Done<Result> done) {
    Call<Result, Request, Response>(method, std::move(request), repeat, call,
                                    std::move(done),
                                    [](const Request&, Response& response) {
                                      return TakeAnswer(response);
                                    });
  }

 private:
  // Counts a call while any part of it exists.
  class Ticket {
   public:
    explicit Ticket(State* state) : state_(*state) {
      absl::MutexLock lock(&state_.mu_);
      ++state_.calls_;
    }
    ~Ticket() {
      absl::MutexLock lock(&state_.mu_);
      if (--state_.calls_ == 0) state_.ended_.SignalAll();
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

   private:
    State& state_;
  };

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
      Repeat::kUnsafe, call, std::move(done));
}

void AsyncClient::Get(std::string_view key, Done<std::optional<Entry>> done,
                      const GetOptions& options,
                      const CallOptions& call) const {
  state_->Call<std::optional<Entry>, v1::GetRequest, v1::GetResponse>(
      &Stub::async::Get, MakeGetRequest(state_->ns(), key, options),
      Repeat::kSafe, call, std::move(done));
}

void AsyncClient::Remove(std::string_view key, Done<RemoveResult> done,
                         const RemoveOptions& options,
                         const CallOptions& call) const {
  state_->Call<RemoveResult, v1::RemoveRequest, v1::RemoveResponse>(
      &Stub::async::Remove, MakeRemoveRequest(state_->ns(), key, options),
      Repeat::kUnsafe, call, std::move(done));
}

void AsyncClient::Contains(std::string_view key, Done<bool> done,
                           const CallOptions& call) const {
  state_->Call<bool, v1::ContainsRequest, v1::ContainsResponse>(
      &Stub::async::Contains,
      KeyRequest<v1::ContainsRequest>(state_->ns(), key), Repeat::kSafe, call,
      std::move(done));
}

void AsyncClient::Size(Done<SizeResult> done, const CallOptions& call) const {
  v1::SizeRequest request;
  request.set_namespace_(state_->ns());
  state_->Call<SizeResult, v1::SizeRequest, v1::SizeResponse>(
      &Stub::async::Size, std::move(request), Repeat::kSafe, call,
      std::move(done));
}

void AsyncClient::Touch(std::string_view key,
                        Done<std::optional<uint64_t>> done,
                        const TouchOptions& options,
                        const CallOptions& call) const {
  state_->Call<std::optional<uint64_t>, v1::TouchRequest, v1::TouchResponse>(
      &Stub::async::Touch, MakeTouchRequest(state_->ns(), key, options),
      Repeat::kSafe, call, std::move(done));
}

void AsyncClient::Append(std::string_view key, std::string_view value,
                         Done<AppendResult> done, const AppendOptions& options,
                         const CallOptions& call) const {
  state_->Call<AppendResult, v1::AppendRequest, v1::AppendResponse>(
      &Stub::async::Append,
      MakeAppendRequest(state_->ns(), key, value, options), Repeat::kUnsafe,
      call, std::move(done));
}

void AsyncClient::Combine(std::string_view key, Combination combination,
                          int64_t operand, Done<CombineResult> done,
                          const CombineOptions& options,
                          const CallOptions& call) const {
  state_->Call<CombineResult, v1::CombineRequest, v1::CombineResponse>(
      &Stub::async::Combine,
      MakeCombineRequest(state_->ns(), key, combination, operand, options),
      Repeat::kUnsafe, call, std::move(done));
}

void AsyncClient::Gather(std::string_view key, std::string_view part,
                         std::string_view value, Done<GatherResult> done,
                         const GatherOptions& options,
                         const CallOptions& call) const {
  state_->Call<GatherResult, v1::GatherRequest, v1::GatherResponse>(
      &Stub::async::Gather,
      MakeGatherRequest(state_->ns(), key, part, value, options),
      Repeat::kUnsafe, call, std::move(done));
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
                                    Repeat::kUnsafe, call, std::move(done),
                                    TakeResults);
}

}  // namespace timecache
