#include "client/cpp/src/owners/route.h"

#include "client/cpp/src/rpc/steady_time.h"
#include "timecache/error_reason.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// Whether the node itself was not reached, or is going.
bool IsOfNode(const absl::Status& status) {
  return IsConnectionLost(status) &&
         (!ReasonName(status) || HasReason(status, ErrorReason::kDraining));
}

}  // namespace

Destination Route::Next() {
  node_ = nullptr;
  if (finder_ == nullptr) return home_;
  const SteadyTime now = SteadyNow();
  owners_ = finder_->Find(*ns_, now);
  if (owners_ == nullptr) return home_;
  const auto& node = owners_->Of(hash_);
  if (!finder_->IsReady(node, *ns_, now)) return home_;
  node_ = node.get();
  return node_->destination();
}

bool Route::GoesOn(const absl::Status& status, const CallOptions& call) {
  if (node_ == nullptr) return false;
  const bool is_lost = IsConnectionLost(status);
  if (status.ok() || (!is_lost && !absl::IsDeadlineExceeded(status))) {
    node_->Answered();
    return false;
  }
  if (call.cancellation.stop_requested()) return false;
  if (IsOfNode(status)) node_->NotReached(SteadyNow());
  finder_->Doubt(*ns_);
  finder_ = nullptr;
  return is_lost && !MaybeApplied(status);
}

absl::Status AttemptEach(
    Route& route, const CallPlan& plan,
    absl::FunctionRef<Attempted(const Destination& to)> attempt) {
  return AttemptEach(route.home(), plan, [&] {
    for (;;) {
      Attempted attempted = attempt(route.Next());
      if (!route.GoesOn(attempted.status, plan.call())) return attempted;
    }
  });
}

}  // namespace timecache
