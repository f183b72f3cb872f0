#include "timecache/batch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/data/divided_batch.h"
#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/owners/route.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "timecache/error_reason.h"
#include "timecache/status.h"

namespace timecache {

absl::Status CheckLimits(const Batch& batch) {
  if (batch.size() > Batch::kMaxOperations) {
    return NotSent(absl::InvalidArgumentError(absl::StrCat(
        "the batch has ", batch.size(), " operations; at most ",
        Batch::kMaxOperations, " are allowed: divide it, or use a Pipeline")));
  }
  if (batch.bytes() > Batch::kMaxBytes) {
    return NotSent(absl::InvalidArgumentError(absl::StrCat(
        "the batch has ", batch.bytes(), " bytes; at most ", Batch::kMaxBytes,
        " are allowed: divide it, or use a Pipeline")));
  }
  return absl::OkStatus();
}

Repeat RepeatOf(const v1::ExecuteRequest& request) {
  return std::all_of(request.operations().begin(), request.operations().end(),
                     IsRepeatable)
             ? Repeat::kSafe
             : Repeat::kUnsafe;
}

absl::StatusOr<std::vector<OperationResult>> TakeResults(
    const v1::ExecuteRequest& request, v1::ExecuteResponse& response) {
  if (response.results_size() != request.operations_size()) {
    return absl::InternalError(absl::StrCat(
        "the server gave ", response.results_size(), " results for ",
        request.operations_size(), " operations: is it of this version?"));
  }
  std::vector<OperationResult> results;
  results.reserve(response.results_size());
  for (int i = 0; i < response.results_size(); ++i) {
    results.push_back(
        TakeResult(request.operations(i), *response.mutable_results(i)));
  }
  return results;
}

Batch::Batch() : request_(std::make_unique<v1::ExecuteRequest>()) {}
Batch::Batch(const Batch& other)
    : request_(std::make_unique<v1::ExecuteRequest>(*other.request_)),
      bytes_(other.bytes_) {}
Batch& Batch::operator=(const Batch& other) { return *this = Batch(other); }
Batch::Batch(Batch&& other) noexcept = default;
Batch& Batch::operator=(Batch&& other) noexcept = default;
Batch::~Batch() = default;

void Batch::Add(Operation operation) {
  bytes_ += operation.bytes();
  request_->mutable_operations()->AddAllocated(
      std::move(operation).proto().release());
}

void Batch::set_atomic(bool atomic) { request_->set_atomic(atomic); }
bool Batch::atomic() const { return request_->atomic(); }

size_t Batch::size() const { return request_->operations_size(); }

void Batch::Clear() {
  request_->Clear();
  bytes_ = 0;
}

absl::Status AtomicStatus(const std::vector<OperationResult>& results) {
  absl::Status aborted;
  for (const OperationResult& result : results) {
    if (result.status.ok()) continue;
    if (!HasReason(result.status, ErrorReason::kNotApplied)) {
      return result.status;
    }
    aborted = result.status;
  }
  return aborted;
}

absl::StatusOr<std::vector<OperationResult>> Client::Execute(
    const Batch& batch, const CallOptions& call) const {
  if (batch.empty()) return std::vector<OperationResult>();
  if (absl::Status status = CheckLimits(batch); !status.ok()) return status;
  const CallPlan plan(options_, call, RepeatOf(batch.proto()));
  BatchRoutes routes = RoutesOf(*core_, options_, batch);
  if (!routes.parts.empty()) {
    return ExecuteParts(core_->endpoints, plan, routes.parts);
  }
  v1::ExecuteRequest request = batch.proto();
  request.set_namespace_(options_.default_namespace);
  v1::ExecuteResponse response;
  const absl::Status status =
      AttemptEach(routes.whole, plan, [&](const Destination& to) {
        return AttemptOnce(
            *to.endpoints, plan,
            [&](Endpoint& endpoint, grpc::ClientContext& context) {
              return endpoint.cache.Execute(&context, request, &response);
            });
      });
  if (!status.ok()) return status;
  return TakeResults(request, response);
}

}  // namespace timecache
