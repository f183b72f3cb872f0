#include "client/cpp/batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/call.h"

namespace timecache::inline client {
namespace {

absl::Status CheckLimits(const Batch& batch) {
  if (batch.size() > Batch::kMaxOperations) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the batch has ", batch.size(), " operations; at most ",
        Batch::kMaxOperations, " are allowed: divide it, or use a Pipeline"));
  }
  if (batch.bytes() > Batch::kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the batch has ", batch.bytes(), " bytes; at most ", Batch::kMaxBytes,
        " are allowed: divide it, or use a Pipeline"));
  }
  return absl::OkStatus();
}

}  // namespace

void Batch::Add(Operation operation) {
  bytes_ += operation.bytes();
  *request_.add_operations() = std::move(operation).proto();
}

void Batch::Clear() {
  request_.Clear();
  bytes_ = 0;
}

absl::StatusOr<std::vector<OperationResult>> Client::Execute(
    const Batch& batch) const {
  std::vector<OperationResult> results;
  if (batch.empty()) return results;
  if (absl::Status status = CheckLimits(batch); !status.ok()) return status;
  v1::ExecuteRequest request = batch.proto();
  request.set_namespace_(options_.default_namespace);
  auto response =
      Call(*connection_, *cache_, &v1::TimeCacheService::Stub::Execute, request,
           options_.timeout);
  if (!response.ok()) return response.status();
  if (response->results_size() != request.operations_size()) {
    return absl::InternalError(absl::StrCat(
        "the server gave ", response->results_size(), " results for ",
        request.operations_size(), " operations: is it of this version?"));
  }
  results.reserve(batch.size());
  for (int i = 0; i < response->results_size(); ++i) {
    results.push_back(
        TakeResult(request.operations(i), *response->mutable_results(i)));
  }
  return results;
}

}  // namespace timecache::inline client
