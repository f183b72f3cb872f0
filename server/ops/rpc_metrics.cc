#include "server/ops/rpc_metrics.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "server/base/error.h"
#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

using prometheus::MetricType;

constexpr double kMicros = 1e6;
// Below 16 us the differences do not matter.
constexpr size_t kLeastBucket = 4;

constexpr MetricInfo kStarted = {"grpc_server_started_total",
                                 "Calls whose handler has started."};
constexpr MetricInfo kHandled = {"grpc_server_handled_total",
                                 "Calls that have ended, by their status."};
constexpr MetricInfo kHandling = {
    "grpc_server_handling_seconds",
    "Time from a handler's start to the call's end; for a stream its whole "
    "lifetime."};
constexpr MetricInfo kReceived = {"grpc_server_msg_received_total",
                                  "Messages received."};
constexpr MetricInfo kSent = {"grpc_server_msg_sent_total", "Messages sent."};
constexpr MetricInfo kDenied = {
    "timecache_access_denied_total",
    "Permissions that a caller lacked, by reason. A batch counts once for each "
    "missing permission; its other operations are applied."};

// As gRPC's interceptors write them: "ResourceExhausted".
constexpr std::array<const char*, 17> kCodeNames = {
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
};

size_t ThisThreadsStripe(size_t stripes) {
  static std::atomic<size_t> next{0};
  thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine % stripes;
}

std::string Text(absl::string_view text) { return std::string(text); }

MetricLabels LabelsOf(const Method& method) {
  return {{"grpc_type", Text(MethodTypeName(method.type))},
          {"grpc_service", Text(method.service)},
          {"grpc_method", Text(method.name)}};
}

}  // namespace

RpcMetrics::RpcMetrics()
    : stripes_(std::make_unique<std::array<Stripe, kStripes>>()) {}

RpcMetrics::Counters& RpcMetrics::CountersOf(const Method& method) {
  return (*stripes_)[ThisThreadsStripe(kStripes)][method.index];
}

void RpcMetrics::Count(const CallRecord& record, uint64_t calls) {
  Counters& counters = CountersOf(record.method);
  auto code = static_cast<size_t>(record.code);
  if (code >= kCodes) code = grpc::StatusCode::UNKNOWN;
  Add(&counters.handled[code], calls);
  const auto took_us =
      static_cast<uint64_t>(std::max<int64_t>(record.took_us, 0));
  Add(&counters.took_us, took_us * calls);
  const size_t bucket = took_us <= 1 ? 0 : std::bit_width(took_us - 1);
  Add(&counters.took[std::min(bucket, kBuckets - 1)], calls);
}

void RpcMetrics::OnDenied(const CallDenial& denial) {
  std::string reason(ReasonNameOf(denial.status));
  if (reason.empty()) reason = "OTHER";
  absl::MutexLock lock(&mu_);
  if (denied_.size() >= kMaxDenialReasons && !denied_.contains(reason)) {
    reason = "OTHER";
  }
  ++denied_[reason];
}

RpcMetrics::Sums RpcMetrics::SumsOf(const Method& method) const {
  Sums sums;
  const auto value = [](const Counter& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  for (const Stripe& stripe : *stripes_) {
    const Counters& counters = stripe[method.index];
    // First what happens last, so that no call has ended without having
    // started.
    for (size_t i = 0; i < kCodes; ++i) {
      sums.handled[i] += value(counters.handled[i]);
    }
    for (size_t i = 0; i < kBuckets; ++i) {
      sums.took[i] += value(counters.took[i]);
    }
    sums.took_us += value(counters.took_us);
    sums.received += value(counters.received);
    sums.sent += value(counters.sent);
    sums.started += value(counters.started);
  }
  if (method.type == MethodType::kUnary) {
    sums.received = sums.started;
    sums.sent = sums.handled[grpc::StatusCode::OK];
  }
  return sums;
}

std::vector<prometheus::MetricFamily> RpcMetrics::Collect() const {
  prometheus::MetricFamily started = NewFamily(kStarted);
  prometheus::MetricFamily handled = NewFamily(kHandled);
  prometheus::MetricFamily took = NewFamily(kHandling, MetricType::Histogram);
  prometheus::MetricFamily received = NewFamily(kReceived);
  prometheus::MetricFamily sent = NewFamily(kSent);
  for (const Method& method : kMethods) {
    const Sums sums = SumsOf(method);
    const MetricLabels labels = LabelsOf(method);
    AddSample(labels, static_cast<double>(sums.started), &started);
    AddSample(labels, static_cast<double>(sums.received), &received);
    AddSample(labels, static_cast<double>(sums.sent), &sent);
    for (size_t code = 0; code < kCodes; ++code) {
      // Most codes never happen.
      if (code != grpc::StatusCode::OK && sums.handled[code] == 0) continue;
      MetricLabels with_code = labels;
      with_code.push_back({"grpc_code", kCodeNames[code]});
      AddSample(with_code, static_cast<double>(sums.handled[code]), &handled);
    }
    // Most methods of most servers are never called.
    if (sums.handled == Sums().handled) continue;
    prometheus::ClientMetric& metric = took.metric.emplace_back();
    metric.label = labels;
    metric.histogram.sample_sum = static_cast<double>(sums.took_us) / kMicros;
    for (size_t i = 0; i < kBuckets; ++i) {
      metric.histogram.sample_count += sums.took[i];
      if (i < kLeastBucket || i == kBuckets - 1) continue;
      const auto bound_us = static_cast<double>(uint64_t{1} << i);
      metric.histogram.bucket.push_back(
          {metric.histogram.sample_count, bound_us / kMicros});
    }
  }
  prometheus::MetricFamily denied = NewFamily(kDenied);
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [reason, count] : denied_) {
      AddSample({{"reason", reason}}, static_cast<double>(count), &denied);
    }
  }
  return {std::move(started),  std::move(handled), std::move(took),
          std::move(received), std::move(sent),    std::move(denied)};
}

}  // namespace timecache::server
