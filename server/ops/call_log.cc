#include "server/ops/call_log.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

constexpr char kLimitRefused[] = "limit_refused";
constexpr char kLost[] = "events_lost";

std::string PathOf(const Method& method) {
  return absl::StrCat(method.service, "/", method.name);
}

std::string CodeName(int code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

}  // namespace

bool LineBudget::Take(int64_t now_us, uint64_t* suppressed) {
  absl::MutexLock lock(&mu_);
  if (const int64_t second = now_us / kMicrosPerSecond; second != second_) {
    second_ = second;
    lines_ = 0;
  }
  if (lines_ == lines_max_) {
    ++suppressed_;
    return false;
  }
  ++lines_;
  *suppressed = std::exchange(suppressed_, 0);
  return true;
}

CallLog::CallLog(int64_t slow_call_us, const Clock* clock, Write write)
    : slow_call_us_(slow_call_us), clock_(clock), write_(std::move(write)) {}

void CallLog::OnHandled(const CallRecord& record) {
  const int64_t slow_us = slow_call_us();
  if (slow_us > 0 && record.took_us >= slow_us &&
      record.method.type == MethodType::kUnary) {
    slow_calls_.Add(record, clock_->NowUs());
    WriteCall(LogLevel::kWarning, "slow_call", &slow_, record);
  }
  if (record.code == grpc::StatusCode::INTERNAL ||
      record.code == grpc::StatusCode::DATA_LOSS) {
    WriteCall(LogLevel::kError, "call_failed", &failed_, record);
  }
}

void CallLog::WriteCall(LogLevel level, std::string_view event,
                        LineBudget* budget, const CallRecord& record) {
  uint64_t suppressed = 0;
  if (!budget->Take(clock_->NowUs(), &suppressed)) return;
  write_(level, event,
         {{"method", PathOf(record.method)},
          {"namespace", record.details.Namespace()},
          {"code", CodeName(record.code)},
          {"message", record.message},
          {"took_ms", static_cast<double>(record.took_us) / 1000},
          {"principal", record.details.Principal()},
          {"peer", record.details.Peer()},
          {"request_id", record.details.RequestId()},
          {"traceparent", record.details.TraceParent()},
          {"suppressed", suppressed}});
}

void CallLog::OnDenied(const CallDenial& denial) {
  uint64_t suppressed = 0;
  if (!denied_.Take(clock_->NowUs(), &suppressed)) return;
  write_(LogLevel::kWarning, "access_denied",
         {{"reason", ReasonNameOf(denial.status)},
          {"principal", denial.details.Principal()},
          {"peer", denial.details.Peer()},
          {"method", PathOf(denial.method)},
          {"namespace", denial.name},
          {"verb", denial.verbs.ToString()},
          {"request_id", denial.details.RequestId()},
          {"traceparent", denial.details.TraceParent()},
          {"suppressed", suppressed}});
}

void CallLog::OnRefused(const CallRefusal& refusal) {
  const std::string reason(ReasonNameOf(refusal.status));
  const absl::string_view name = refusal.details.Namespace();
  if (!folded_.Add({kLimitRefused, reason, std::string(name), ""},
                   refusal.operations, clock_->NowUs())) {
    return;
  }
  write_(LogLevel::kWarning, kLimitRefused,
         {{"reason", reason},
          {"namespace", name},
          {"count", refusal.operations},
          {"message", refusal.status.message()},
          {"method", PathOf(refusal.method)},
          {"principal", refusal.details.Principal()},
          {"peer", refusal.details.Peer()},
          {"request_id", refusal.details.RequestId()},
          {"traceparent", refusal.details.TraceParent()}});
}

void CallLog::OnLost(const CallLoss& loss) {
  if (!folded_.Add({kLost, "", std::string(loss.name), ""}, loss.events,
                   clock_->NowUs())) {
    return;
  }
  write_(LogLevel::kWarning, kLost,
         {{"namespace", loss.name},
          {"count", loss.events},
          {"method", PathOf(loss.method)},
          {"principal", loss.details.Principal()},
          {"peer", loss.details.Peer()},
          {"request_id", loss.details.RequestId()},
          {"traceparent", loss.details.TraceParent()}});
}

void CallLog::WriteFolded(int64_t now_us) {
  for (const FoldedLines::Line& line : folded_.TakeDue(now_us)) {
    if (line.kind.reason.empty()) {
      write_(LogLevel::kWarning, line.kind.event,
             {{"namespace", line.kind.name}, {"count", line.count}});
      continue;
    }
    write_(LogLevel::kWarning, line.kind.event,
           {{"reason", line.kind.reason},
            {"namespace", line.kind.name},
            {"count", line.count}});
  }
}

}  // namespace timecache::server
