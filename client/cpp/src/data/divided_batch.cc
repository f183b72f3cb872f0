#include "client/cpp/src/data/divided_batch.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/owners/owner_node.h"
#include "client/cpp/src/owners/owners.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_unary_call.h"
#include "server/base/key_partition.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// Those of a namespace's nodes to which a batch goes now.
class ReadyOwners {
 public:
  ReadyOwners(OwnerFinder& finder, const std::string& ns)
      : finder_(finder), ns_(ns), owners_(finder.Find(ns, now_)) {
    if (owners_ != nullptr) are_ready_.resize(owners_->nodes().size());
  }

  const Owners* owners() const { return owners_.get(); }
  // Of a key with this hash: the index of its node, 0 for the default one.
  size_t IndexOf(uint32_t hash) {
    const size_t index = owners_->IndexOf(hash);
    std::optional<bool>& is_ready = are_ready_[index];
    if (!is_ready) {
      is_ready = finder_.IsReady(owners_->nodes()[index], ns_, now_);
    }
    return *is_ready ? index : 0;
  }

 private:
  OwnerFinder& finder_;
  const std::string& ns_;
  const SteadyTime now_ = SteadyNow();
  const std::shared_ptr<const Owners> owners_;
  std::vector<std::optional<bool>> are_ready_;
};

// An attempt of a part.
struct Sending {
  Sending(BatchPart& of, const CallPlan& plan, grpc::CompletionQueue& queue)
      : part(of),
        to(part.route.Next()),
        endpoint(to.endpoints->current()),
        connected(endpoint.connection.Await(plan.deadline())) {
    Prepare(plan.call(), plan.deadline(), context);
    part.response.Clear();
    rpc = endpoint.cache.AsyncExecute(&context, part.request, &queue);
    rpc->Finish(&part.response, &status, this);
  }

  BatchPart& part;
  const Destination to;
  Endpoint& endpoint;
  const bool connected;
  grpc::ClientContext context;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ExecuteResponse>> rpc;
};

// Whether the part may be sent once more.
bool MayGoAgain(const BatchPart& part, const CallPlan& plan) {
  return IsConnectionLost(part.status) &&
         (plan.is_repeatable() || !MaybeApplied(part.status));
}

// The attempts of some parts, at the same time: this thread polls for all. Returns
// those parts that go on at the default node, and whether all were connected.
std::vector<BatchPart*> SendAll(const std::vector<BatchPart*>& parts,
                                const CallPlan& plan, bool& connected) {
  const CallOptions& call = plan.call();
  grpc::CompletionQueue queue;
  std::deque<Sending> sendings;
  for (BatchPart* part : parts) sendings.emplace_back(*part, plan, queue);
  {
    const std::stop_callback cancel(call.cancellation, [&sendings] {
      for (Sending& sending : sendings) sending.context.TryCancel();
    });
    void* tag = nullptr;
    bool ok = false;
    for (size_t i = 0; i < parts.size(); ++i) queue.Next(&tag, &ok);
  }
  std::vector<BatchPart*> go_on;
  for (Sending& sending : sendings) {
    BatchPart& part = sending.part;
    part.status = FromGrpcStatus(sending.status);
    connected = connected && sending.connected;
    if (!part.status.ok() && !call.cancellation.stop_requested()) {
      sending.to.endpoints->MoveOn(sending.endpoint, part.status);
    }
    if (part.route.GoesOn(part.status, call)) go_on.push_back(&part);
  }
  return go_on;
}

// An attempt of the parts that have no answer. Its status is that of one that may
// go again, if there is one.
Attempted AttemptParts(std::vector<BatchPart>& parts, const CallPlan& plan,
                       bool is_first) {
  std::vector<BatchPart*> send;
  for (BatchPart& part : parts) {
    if (!is_first && !MayGoAgain(part, plan)) continue;
    part.maybe_applied |= !is_first && MaybeApplied(part.status);
    send.push_back(&part);
  }
  bool connected = true;
  while (!send.empty()) send = SendAll(send, plan, connected);
  const BatchPart* decides = &parts.front();
  for (const BatchPart& part : parts) {
    if (decides->status.ok() || MayGoAgain(part, plan)) decides = &part;
  }
  return {decides->status, connected};
}

}  // namespace

BatchRoutes RoutesOf(Client::Core& core, const ClientOptions& options,
                     const Batch& batch) {
  BatchRoutes routes = {core.RouteHome()};
  if (!core.IsRouted(options)) return routes;
  ReadyOwners ready(core.owners, options.default_namespace);
  if (ready.owners() == nullptr) return routes;
  const auto& operations = batch.proto().operations();
  std::vector<uint32_t> hashes;
  hashes.reserve(operations.size());
  for (const v1::Operation& operation : operations) {
    hashes.push_back(server::PartitionHash(KeyOf(operation)));
  }
  const auto is_with_first = [&](uint32_t hash) {
    return batch.atomic() ? ready.owners()->PartitionOf(hash) ==
                                ready.owners()->PartitionOf(hashes[0])
                          : ready.IndexOf(hash) == ready.IndexOf(hashes[0]);
  };
  if (std::ranges::all_of(hashes, is_with_first)) {
    if (ready.IndexOf(hashes[0]) != 0) {
      routes.whole = core.RouteToOwner(options, hashes[0]);
    }
    return routes;
  }
  if (batch.atomic()) return routes;
  std::vector<BatchPart*> part_of(ready.owners()->nodes().size());
  // They stay where they are.
  routes.parts.reserve(part_of.size());
  for (size_t i = 0; i < hashes.size(); ++i) {
    const size_t index = ready.IndexOf(hashes[i]);
    BatchPart*& part = part_of[index];
    if (part == nullptr) {
      part = &routes.parts.emplace_back(BatchPart{
          index == 0 ? core.RouteHome() : core.RouteToOwner(options, hashes[i]),
          {},
          {}});
      part->request.set_namespace_(options.default_namespace);
    }
    *part->request.add_operations() = operations.Get(static_cast<int>(i));
    part->places.push_back(i);
  }
  return routes;
}

absl::StatusOr<std::vector<OperationResult>> JoinResults(
    std::vector<BatchPart>& parts) {
  absl::Status failure;
  bool is_any_done = false;
  bool is_any_lost = false;
  size_t size = 0;
  for (BatchPart& part : parts) {
    if (part.maybe_applied) part.status = MaybeSent(std::move(part.status));
    size += part.places.size();
    is_any_done |= part.status.ok();
    is_any_lost |= MaybeApplied(part.status);
    if (!part.status.ok() && (failure.ok() || absl::IsCancelled(part.status))) {
      failure = part.status;
    }
  }
  if (absl::IsCancelled(failure) || !is_any_done) {
    return is_any_lost ? MaybeSent(failure) : failure;
  }
  std::vector<OperationResult> all(size);
  for (BatchPart& part : parts) {
    if (!part.status.ok()) {
      for (const size_t place : part.places) all[place].status = part.status;
      continue;
    }
    auto results = TakeResults(part.request, part.response);
    if (!results.ok()) return results.status();
    for (size_t i = 0; i < part.places.size(); ++i) {
      all[part.places[i]] = std::move((*results)[i]);
    }
  }
  return all;
}

absl::StatusOr<std::vector<OperationResult>> ExecuteParts(
    Endpoints& home, const CallPlan& plan, std::vector<BatchPart>& parts) {
  bool is_first = true;
  const absl::Status status = AttemptEach(home, plan, [&] {
    return AttemptParts(parts, plan, std::exchange(is_first, false));
  });
  if (is_first) return status;  // It was not sent at all.
  if (absl::IsCancelled(status)) return MaybeSent(status);
  return JoinResults(parts);
}

}  // namespace timecache
