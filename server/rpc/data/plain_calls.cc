#include "server/rpc/data/plain_calls.h"

#include <array>
#include <cstddef>

#include "server/api/status.h"
#include "server/rpc/data/batch_details.h"

namespace timecache::server {
namespace {

// By OpKind.
constexpr std::array<const Method*, 8> kMethodsOfKinds = {
    &methods::kPut,      &methods::kGet,   &methods::kRemove,
    &methods::kContains, &methods::kTouch, &methods::kAppend,
    &methods::kCombine,  &methods::kGather};
static_assert(kMethodsOfKinds.size() ==
              static_cast<size_t>(OpKind::kGather) + 1);

class Reporter {
 public:
  Reporter(const Call& stream, const BatchRequest& request, int64_t took_us)
      : stream_(stream), request_(request), took_us_(took_us) {}

  // In the order of the request.
  void Add(OpKind kind, const absl::Status& status) {
    const size_t index = index_++;
    const BatchRequest::CallIds* const ids = request_.CallIdsOf(index);
    if (status.ok() && ids == nullptr) {
      ++succeeded_[static_cast<size_t>(kind)];
    } else {
      Report(static_cast<size_t>(kind), status, 1, ids);
    }
  }

  void ReportSucceeded() const {
    for (size_t kind = 0; kind < succeeded_.size(); ++kind) {
      if (succeeded_[kind] == 0) continue;
      Report(kind, absl::OkStatus(), succeeded_[kind], nullptr);
    }
  }

 private:
  void Report(size_t kind, const absl::Status& status, uint64_t calls,
              const BatchRequest::CallIds* ids) const {
    const BatchDetails details(stream_, request_.name(), calls, ids);
    const CallRecord record = {
        *kMethodsOfKinds[kind],
        status.ok() ? grpc::StatusCode::OK : ToGrpcStatus(status).error_code(),
        status.message(), took_us_, details};
    for (CallObserver* observer : stream_.observers()) {
      observer->OnCalls(record, calls);
    }
  }

  const Call& stream_;
  const BatchRequest& request_;
  const int64_t took_us_;
  size_t index_ = 0;
  std::array<uint64_t, kMethodsOfKinds.size()> succeeded_ = {};
};

}  // namespace

void ReportPlainCalls(const Call& stream, const BatchRequest& request,
                      absl::Span<const Result> results, int64_t took_us) {
  Reporter reporter(stream, request, took_us);
  absl::Span<const BatchRequest::Refused> refused = request.refused();
  const size_t count = results.size() + refused.size();
  const Operation* operation = request.operations().begin();
  const Result* result = results.begin();
  for (size_t i = 0; i < count; ++i) {
    if (!refused.empty() && refused.front().index == i) {
      reporter.Add(refused.front().kind, refused.front().status);
      refused.remove_prefix(1);
    } else {
      reporter.Add((operation++)->kind, (result++)->status);
    }
  }
  reporter.ReportSucceeded();
}

void ReportPlainDenial(const Call& stream, const BatchRequest& request,
                       size_t index, OpKind kind, const absl::Status& status,
                       Verbs lacks) {
  const BatchDetails details(stream, request.name(), 1,
                             request.CallIdsOf(index));
  const CallDenial denial = {*kMethodsOfKinds[static_cast<size_t>(kind)],
                             status, stream.Namespace(), lacks, details};
  for (CallObserver* observer : stream.observers()) {
    observer->OnDenied(denial);
  }
}

}  // namespace timecache::server
