#include "client/cli/commands/many_operations.h"

#include <utility>

#include "timecache/batch.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

// Enough that the round trips do not count, and few enough that a request is
// done in milliseconds.
constexpr size_t kMaxOperations = 1'000;
constexpr size_t kMaxBytes = 1 << 20;

bool DidNotFit(const OperationResult& result) {
  return HasReason(result.status, ErrorReason::kMaxResponseBytes);
}

}  // namespace

absl::Status ManyOperations::Add(Operation operation) {
  if (!failure_.ok()) return failure_;
  const size_t bytes = operation.bytes();
  if (waiting_.size() == kMaxOperations ||
      (!waiting_.empty() && bytes_ + bytes > kMaxBytes)) {
    const absl::Status status = Finish();
    if (!status.ok()) return status;
  }
  bytes_ += bytes;
  waiting_.push_back(std::move(operation));
  return absl::OkStatus();
}

absl::Status ManyOperations::Finish() {
  if (!failure_.ok()) return failure_;
  Batch batch;
  for (const Operation& operation : waiting_) batch.Add(operation);
  auto results = client_.Execute(batch);
  if (!results.ok()) return failure_ = results.status();
  for (size_t i = 0; i < results->size(); ++i) {
    OperationResult& result = (*results)[i];
    if (i > 0 && DidNotFit(result)) {
      // By itself: those behind it may have been done.
      Batch alone;
      alone.Add(waiting_[i]);
      auto again = client_.Execute(alone);
      if (!again.ok()) return failure_ = again.status();
      result = std::move(again->front());
    }
    failure_ = visit_(done_, result);
    if (!failure_.ok()) return failure_;
    ++done_;
  }
  waiting_.clear();
  bytes_ = 0;
  return absl::OkStatus();
}

}  // namespace timecache::cli
