#include "client/cpp/src/events/shared_settles.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "client/cpp/src/shared/call_stream.h"
#include "server/base/steady_cond_var.h"
#include "timecache/settle.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// Whether the server refused a request, without an effect, for what may be the
// fault of some of its settlements.
bool IsRefused(const absl::Status& status) {
  return !MaybeApplied(status) &&
         (absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status));
}

}  // namespace

// A call that waits. Guarded by mu_, but for what is constant.
struct SharedSettles::Waiting {
  enum class Stage { kQueued, kSent, kLeads, kAlone, kDone };

  Waiting(v1::SettleExpiredRequest own_request, SteadyTime own_deadline)
      : request(std::move(own_request)),
        bytes(request.ByteSizeLong()),
        deadline(own_deadline) {}

  const v1::SettleExpiredRequest request;
  const size_t bytes;
  const SteadyTime deadline;
  Stage stage = Stage::kQueued;
  Queue batch;            // Of kLeads: the calls to send.
  Response response;      // Of kDone.
  SteadyCondVar changed;  // The stage.
};

bool SharedSettles::Takes(const ClientOptions& client, const CallOptions& call,
                          const v1::SettleExpiredRequest& request) {
  return client.batching && call.batching && call.metadata.empty() &&
         !call.repeatable && !call.cancellation.stop_possible() &&
         std::cmp_less_equal(request.settlements_size(), kMaxSettlements) &&
         request.ByteSizeLong() <= kSharedCallBytesMax;
}

SharedSettles::Response SharedSettles::Do(v1::SettleExpiredRequest request,
                                          SteadyTime deadline, Send send) {
  const Group group(request.group(), request.namespace_());
  std::shared_ptr<Waiting> own;
  {
    absl::MutexLock lock(&mu_);
    const auto [queue, is_first] = queues_.try_emplace(group);
    if (!is_first) {
      own = std::make_shared<Waiting>(std::move(request), deadline);
      queue->second.push_back(own);
    }
  }
  if (own != nullptr) return Await(group, *own, send);
  Response response = send(request);
  absl::MutexLock lock(&mu_);
  Next(group);
  return response;
}

SharedSettles::Response SharedSettles::Await(const Group& group, Waiting& own,
                                             Send send) {
  using Stage = Waiting::Stage;
  {
    absl::MutexLock lock(&mu_);
    while ((own.stage == Stage::kQueued || own.stage == Stage::kSent) &&
           SteadyNow() < own.deadline) {
      own.changed.WaitUntil(&mu_, own.deadline);
    }
    const absl::Status late =
        absl::DeadlineExceededError("the call's time was up before its answer");
    if (own.stage == Stage::kSent) return late;
    if (own.stage == Stage::kQueued) {
      std::erase_if(queues_[group],
                    [&](const auto& call) { return call.get() == &own; });
      return NotSent(late);
    }
  }
  // From here on only this thread changes it.
  if (own.stage == Stage::kLeads) Lead(group, own, send);
  if (own.stage == Stage::kAlone) return send(own.request);
  return std::move(own.response);
}

void SharedSettles::Lead(const Group& group, Waiting& own, Send send) {
  const Queue batch = std::move(own.batch);
  v1::SettleExpiredRequest request;
  request.set_group(group.first);
  request.set_namespace_(group.second);
  for (const auto& call : batch) {
    request.mutable_settlements()->MergeFrom(call->request.settlements());
  }
  Response response = send(request);
  const bool is_each_alone = batch.size() > 1 && IsRefused(response.status());
  int next = 0;
  absl::MutexLock lock(&mu_);
  for (const auto& call : batch) {
    if (response.ok()) {
      call->response.emplace();
      for (int i = 0; i < call->request.settlements_size(); ++i) {
        call->response->add_results()->Swap(response->mutable_results(next++));
      }
    } else {
      call->response = response.status();
    }
    call->stage =
        is_each_alone ? Waiting::Stage::kAlone : Waiting::Stage::kDone;
    call->changed.Signal();
  }
  Next(group);
}

void SharedSettles::Next(const Group& group) {
  const auto found = queues_.find(group);
  Queue& queue = found->second;
  size_t count = 0;
  size_t bytes = 0;
  auto end = queue.begin();
  for (; end != queue.end(); ++end) {
    count += static_cast<size_t>((*end)->request.settlements_size());
    bytes += (*end)->bytes;
    if (count > kMaxSettlements || bytes > kSharedCallBytesMax) break;
    (*end)->stage = Waiting::Stage::kSent;
  }
  if (end == queue.begin()) {
    queues_.erase(found);
    return;
  }
  // Its time is up last: it never returns before the others' answer.
  Waiting& leader = **std::max_element(
      queue.begin(), end,
      [](const auto& a, const auto& b) { return a->deadline < b->deadline; });
  leader.batch.assign(queue.begin(), end);
  leader.stage = Waiting::Stage::kLeads;
  queue.erase(queue.begin(), end);
  leader.changed.Signal();
}

size_t SharedSettles::Queued(const std::string& ns,
                             const std::string& group) const {
  absl::MutexLock lock(&mu_);
  const auto found = queues_.find(Group(group, ns));
  return found == queues_.end() ? 0 : found->second.size();
}

}  // namespace timecache
