#include "client/cpp/src/owners/owner_finder.h"

#include <utility>

#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/rpc_status.h"

namespace timecache {

OwnerFinder::~OwnerFinder() {
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
    if (context_ != nullptr) context_->TryCancel();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

std::shared_ptr<const Owners> OwnerFinder::Find(const std::string& ns,
                                                SteadyTime now) {
  OwnerMap::Found found = map_.Find(ns, now);
  if (found.is_due) Ask(ns, now);
  return std::move(found.owners);
}

bool OwnerFinder::IsReady(const std::shared_ptr<OwnerNode>& node,
                          const std::string& ns, SteadyTime now) {
  if (node == nullptr || node->IsLeftOut(now) ||
      node->address() == home_.current().address) {
    return false;
  }
  if (node->IsConnected()) return true;
  if (!node->BeginConnect()) return false;
  absl::MutexLock lock(&mu_);
  connects_.push_back({ns, node});
  Start();
  return false;
}

void OwnerFinder::Doubt(const std::string& ns) {
  map_.Doubt(ns);
  Ask(ns, SteadyNow());
}

void OwnerFinder::Ask(const std::string& ns, SteadyTime now) {
  absl::MutexLock lock(&mu_);
  if (questions_.size() == kQuestionsMax || !map_.Begin(ns, now)) return;
  questions_.push_back({ns, nullptr});
  Start();
}

void OwnerFinder::Start() {
  if (is_ending_ || thread_.joinable()) return;
  thread_ = std::thread([this] { Run(); });
}

void OwnerFinder::Run() {
  for (;;) {
    Errand errand;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &OwnerFinder::HasErrand));
      if (is_ending_) return;
      auto& errands = questions_.empty() ? connects_ : questions_;
      errand = std::move(errands.front());
      errands.pop_front();
    }
    Do(errand);
  }
}

void OwnerFinder::Do(const Errand& errand) {
  if (errand.node != nullptr) {
    if (!errand.node->Connect()) Doubt(errand.ns);
    return;
  }
  const auto answer = GetOwners(errand.ns);
  if (answer.ok()) {
    map_.Learn(errand.ns, nodes_.OwnersAt(*answer), SteadyNow());
  } else {
    map_.Fail(errand.ns, answer.status(), SteadyNow());
  }
  nodes_.CloseUnused();
}

absl::StatusOr<v1::GetOwnersResponse> OwnerFinder::GetOwners(
    const std::string& ns) {
  v1::GetOwnersRequest request;
  request.set_name(ns);
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(SteadyAfter(kQuestionTimeout)));
  {
    absl::MutexLock lock(&mu_);
    if (is_ending_) return CancelledByCaller();
    context_ = &context;
  }
  v1::GetOwnersResponse response;
  const absl::Status status = FromGrpcStatus(
      home_.current().namespaces.GetOwners(&context, request, &response));
  absl::MutexLock lock(&mu_);
  context_ = nullptr;
  if (!status.ok()) return status;
  return response;
}

}  // namespace timecache
