#include "bench/service/paced_puts.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "bench/watch/watch_storm.h"

namespace timecache::bench {
namespace {

// What one call needs until it is answered.
template <typename Request, typename Response>
struct Call {
  explicit Call(absl::Time give_up) {
    context.set_deadline(absl::ToChronoTime(give_up));
  }

  grpc::ClientContext context;
  Request request;
  Response response;
};

void CheckPut(const grpc::Status& status) {
  if (!status.ok()) Fail("a put failed: " + status.error_message());
}

}  // namespace

PacedPuts::PacedPuts(const std::shared_ptr<grpc::Channel>& channel,
                     const Plan& plan)
    : plan_(plan),
      stub_(v1::TimeCacheService::NewStub(channel)),
      thread_([this] { Run(); }) {}

PacedPuts::~PacedPuts() { Stop(); }

std::vector<double> PacedPuts::TakeLatenciesUs() {
  std::vector<double> taken;
  absl::MutexLock lock(&mutex_);
  taken.swap(latencies_us_);
  return taken;
}

uint64_t PacedPuts::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return in_flight_ == 0;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&none));
  return puts_;
}

void PacedPuts::Run() {
  const absl::Duration one = absl::Seconds(1) / plan_.rate;
  const absl::Duration batch = absl::Seconds(1) / kBatchesPerSecond;
  absl::Time one_due = absl::Now();
  absl::Time batch_due =
      plan_.batched_rate > 0 ? one_due : absl::InfiniteFuture();
  while (!stopping_) {
    absl::SleepFor(std::min(one_due, batch_due) - absl::Now());
    const absl::Time now = absl::Now();
    for (; one_due <= now; one_due += one) PutOne(one_due);
    for (; batch_due <= now; batch_due += batch) PutBatch();
  }
}

void PacedPuts::Begin() {
  absl::MutexLock lock(&mutex_);
  if (++in_flight_ > kMaxInFlight) Fail("the server does not keep up");
}

void PacedPuts::End() {
  absl::MutexLock lock(&mutex_);
  --in_flight_;
}

void PacedPuts::PutOne(absl::Time due) {
  const auto call =
      std::make_shared<Call<v1::PutRequest, v1::PutResponse>>(plan_.give_up);
  v1::ExecuteRequest puts;
  AppendPuts(puts_++, 1, &puts);
  call->request = std::move(*puts.mutable_operations(0)->mutable_put());
  call->request.set_namespace_(plan_.map);
  Begin();
  stub_->async()->Put(
      &call->context, &call->request, &call->response,
      [this, call, due](const grpc::Status& status) {
        CheckPut(status);
        const absl::Duration took = absl::Now() - due;
        absl::MutexLock lock(&mutex_);
        latencies_us_.push_back(absl::ToDoubleMicroseconds(took));
        --in_flight_;
      });
}

void PacedPuts::PutBatch() {
  const auto call =
      std::make_shared<Call<v1::ExecuteRequest, v1::ExecuteResponse>>(
          plan_.give_up);
  const auto count =
      static_cast<uint64_t>(plan_.batched_rate / kBatchesPerSecond);
  call->request.set_namespace_(plan_.map);
  AppendPuts(puts_, count, &call->request);
  puts_ += count;
  Begin();
  stub_->async()->Execute(
      &call->context, &call->request, &call->response,
      [this, call](const grpc::Status& status) {
        CheckPut(status);
        for (const auto& result : call->response.results()) {
          if (!result.has_error()) continue;
          Fail("a put failed: " + result.error().message());
        }
        End();
      });
}

}  // namespace timecache::bench
