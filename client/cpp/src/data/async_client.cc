#include "timecache/async_client.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/data/divided_batch.h"
#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/owners/route.h"
#include "client/cpp/src/rpc/async_call.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "server/base/steady_cond_var.h"

namespace timecache {
namespace {

template <typename Request, typename Response>
struct Exchange {
  Request request;
  Response response;
};

// The same of an operation, which goes with others where it can.
template <typename DataCall>
struct SharedExchange {
  std::string ns;
  SharedCall call;
  typename DataCall::Request* request = nullptr;  // In the call's operation.
  typename DataCall::Response response;
  bool is_shared = false;  // The answer is the call's.

  auto Take(const DataCall& kind)
      -> absl::StatusOr<decltype(TakeAnswer(response))> {
    if (!is_shared) return TakeAnswer(response);
    const auto answer = ResponseIn(kind, *request, call.answer);
    if (!answer.ok()) return answer.status();
    return TakeAnswer(**answer);
  }
};

// For a call whose response is the result.
constexpr auto Take = [](const auto& /*request*/, auto& response) {
  return TakeAnswer(response);
};

}  // namespace

class AsyncClient::State {
 public:
  explicit State(const Client& client) : client_(client) {}

  ~State() {
    absl::MutexLock lock(&mu_);
    while (calls_ > 0) ended_.Wait(&mu_);
  }

  Client::Core& core() const { return *Client::Core::Of(client_); }
  const ClientOptions& options() const { return client_.options(); }
  const std::string& ns() const { return options().default_namespace; }

  // `take`: the result of a request and its response.
  template <typename DataCall, typename Done, typename TakeResult>
  void Send(Route route, const DataCall& kind,
            typename DataCall::Request request, const CallOptions& call,
            Done done, TakeResult take) {
    using Messages =
        Exchange<typename DataCall::Request, typename DataCall::Response>;
    auto exchange = std::make_shared<Messages>();
    exchange->request = std::move(request);
    const Repeat repeat =
        MakeRepeatable(kind, client_.options(), exchange->request);
    AttemptAsync(
        std::move(route), client_.options(), call, repeat,
        [start = kind.start, exchange](Endpoint& endpoint,
                                       grpc::ClientContext* context,
                                       std::function<void(grpc::Status)> end) {
          (endpoint.cache.async()->*start)(context, &exchange->request,
                                           &exchange->response, std::move(end));
        },
        [ticket = std::make_shared<Ticket>(this), exchange,
         done = std::move(done), take](absl::Status status) {
          if (status.ok()) {
            done(take(exchange->request, exchange->response));
          } else {
            done(std::move(status));
          }
        });
  }

  template <typename DataCall, typename Done>
  void Apply(const DataCall& kind, Operation operation, const CallOptions& call,
             Done done) {
    const ClientOptions& options = client_.options();
    const auto& core = Client::Core::Of(client_);
    auto exchange = std::make_shared<SharedExchange<DataCall>>();
    SharedCall& shared = exchange->call;
    shared.operation = std::move(operation).proto();
    exchange->request = (shared.operation.get()->*kind.in_operation)();
    exchange->ns = ns();
    const Repeat repeat = MakeRepeatable(kind, options, *exchange->request);
    std::optional<SharedAttempts> attempts;
    if (SharedCalls::Takes(options, call, shared)) {
      attempts.emplace(
          SharedAttempts{exchange->ns, shared, exchange->is_shared});
    }
    AttemptAsync(
        core->RouteTo(options, exchange->request->key()), options, call, repeat,
        [start = kind.start, exchange](Endpoint& endpoint,
                                       grpc::ClientContext* context,
                                       std::function<void(grpc::Status)> end) {
          exchange->request->set_namespace_(exchange->ns);
          (endpoint.cache.async()->*start)(context, exchange->request,
                                           &exchange->response, std::move(end));
        },
        [ticket = std::make_shared<Ticket>(this), exchange, &kind,
         done = std::move(done)](absl::Status status) {
          if (status.ok()) {
            done(exchange->Take(kind));
          } else {
            done(std::move(status));
          }
        },
        attempts);
  }

  // All at the same time; the last one that ends puts the answers together.
  void SendParts(std::vector<BatchPart> parts, Repeat repeat,
                 const CallOptions& call,
                 const Done<std::vector<OperationResult>>& done) {
    struct Joined {
      std::vector<BatchPart> parts;
      std::atomic<size_t> left;
    };
    auto joined = std::make_shared<Joined>();
    joined->parts = std::move(parts);
    joined->left = joined->parts.size();
    auto ticket = std::make_shared<Ticket>(this);
    for (BatchPart& part : joined->parts) {
      AttemptAsync(
          part.route, options(), call, repeat,
          [&part](Endpoint& endpoint, grpc::ClientContext* context,
                  std::function<void(grpc::Status)> end) {
            endpoint.cache.async()->Execute(context, &part.request,
                                            &part.response, std::move(end));
          },
          [ticket, joined, &part, done](absl::Status status) {
            part.status = std::move(status);
            if (--joined->left == 0) done(JoinResults(joined->parts));
          });
    }
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
  state_->Apply(kPut, Operation::Put(key, value, options), call,
                std::move(done));
}

void AsyncClient::Get(std::string_view key, Done<std::optional<Entry>> done,
                      const GetOptions& options,
                      const CallOptions& call) const {
  state_->Apply(kGet, Operation::Get(key, options), call, std::move(done));
}

void AsyncClient::Remove(std::string_view key, Done<RemoveResult> done,
                         const RemoveOptions& options,
                         const CallOptions& call) const {
  state_->Apply(kRemove, Operation::Remove(key, options), call,
                std::move(done));
}

void AsyncClient::Contains(std::string_view key, Done<bool> done,
                           const ContainsOptions& options,
                           const CallOptions& call) const {
  state_->Apply(kContains, Operation::Contains(key, options), call,
                std::move(done));
}

void AsyncClient::Size(Done<SizeResult> done, const CallOptions& call) const {
  v1::SizeRequest request;
  request.set_namespace_(state_->ns());
  state_->Send(state_->core().RouteHome(), kSize, std::move(request), call,
               std::move(done), Take);
}

void AsyncClient::Touch(std::string_view key,
                        Done<std::optional<uint64_t>> done,
                        const TouchOptions& options,
                        const CallOptions& call) const {
  state_->Apply(kTouch, Operation::Touch(key, options), call, std::move(done));
}

void AsyncClient::Append(std::string_view key, std::string_view value,
                         Done<AppendResult> done, const AppendOptions& options,
                         const CallOptions& call) const {
  state_->Apply(kAppend, Operation::Append(key, value, options), call,
                std::move(done));
}

void AsyncClient::Combine(std::string_view key, Combination combination,
                          int64_t operand, Done<CombineResult> done,
                          const CombineOptions& options,
                          const CallOptions& call) const {
  state_->Apply(kCombine,
                Operation::Combine(key, combination, operand, options), call,
                std::move(done));
}

void AsyncClient::Gather(std::string_view key, std::string_view part,
                         std::string_view value, Done<GatherResult> done,
                         const GatherOptions& options,
                         const CallOptions& call) const {
  state_->Apply(kGather, Operation::Gather(key, part, value, options), call,
                std::move(done));
}

void AsyncClient::Execute(const Batch& batch,
                          Done<std::vector<OperationResult>> done,
                          const CallOptions& call) const {
  if (batch.empty()) return done(std::vector<OperationResult>());
  if (absl::Status status = CheckLimits(batch); !status.ok()) {
    return done(std::move(status));
  }
  BatchRoutes routes = RoutesOf(state_->core(), state_->options(), batch);
  if (!routes.parts.empty()) {
    return state_->SendParts(std::move(routes.parts), RepeatOf(batch.proto()),
                             call, done);
  }
  v1::ExecuteRequest request = batch.proto();
  request.set_namespace_(state_->ns());
  state_->Send(std::move(routes.whole), kExecute, std::move(request), call,
               std::move(done), TakeResults);
}

}  // namespace timecache
