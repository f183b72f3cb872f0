#include "tests/integration/watch/delivery_worker.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/rpc.h"

namespace timecache::test {
namespace {

// Longer than any test may take: a storm on a loaded machine is no error.
constexpr std::chrono::minutes kWorkerTimeout{5};
// A member dies by itself within so many messages.
constexpr int kMaxWorkerMessages = 20;
constexpr int kMaxInFlight = 1'000;

}  // namespace

// --- What all know.

void DeliveryTally::Given(const Name& name, const v1::ExpiredEvent& event) {
  absl::MutexLock lock(&mu_);
  std::vector<Event>& of_key = events_[name.first];
  const auto number = static_cast<size_t>(name.second);
  if (of_key.size() <= number) of_key.resize(number + 1);
  Event& known = of_key[number];
  ASSERT_FALSE(known.settled_while_held)
      << name.first << " again after it was settled";
  // Each delivery is another attempt, or another return of the same.
  ASSERT_GE(event.attempt(), known.attempts) << name.first;
  ASSERT_GE(event.returns(), known.returns) << name.first;
  ASSERT_GT(event.attempt() + event.returns(), known.attempts + known.returns)
      << name.first;
  ASSERT_TRUE(known.id == 0 || known.id == event.event_id()) << name.first;
  ASSERT_TRUE(number == 0 || of_key[number - 1].settling)
      << name.first << " before its earlier event is settled";
  known.id = event.event_id();
  known.attempts = event.attempt();
  known.returns = event.returns();
  if (event.attempt() > 1 || event.returns() > 0) ++redelivered_;
}

void DeliveryTally::Settling(const Name& name) {
  absl::MutexLock lock(&mu_);
  events_.at(name.first).at(static_cast<size_t>(name.second)).settling = true;
}

void DeliveryTally::Settled(const Name& name, bool held) {
  absl::MutexLock lock(&mu_);
  Event& event = events_.at(name.first).at(static_cast<size_t>(name.second));
  ASSERT_FALSE(event.settled) << name.first << " was settled twice";
  event.settled = true;
  event.settled_while_held = held;
  ++settled_;
}

void DeliveryTally::Nacked() {
  absl::MutexLock lock(&mu_);
  ++nacked_;
}

void DeliveryTally::AwaitSettled(int64_t events,
                                 absl::FunctionRef<void()> let_time_pass) {
  const absl::Time end = absl::Now() + absl::FromChrono(kWorkerTimeout);
  const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return settled_ >= events;
  };
  absl::MutexLock lock(&mu_);
  while (
      !mu_.AwaitWithTimeout(absl::Condition(&done), absl::Milliseconds(100))) {
    ASSERT_LT(absl::Now(), end)
        << settled_ << " of " << events << " are settled";
    mu_.Unlock();
    let_time_pass();
    mu_.Lock();
  }
}

int64_t DeliveryTally::nacked() const {
  absl::MutexLock lock(&mu_);
  return nacked_;
}

int64_t DeliveryTally::redelivered() const {
  absl::MutexLock lock(&mu_);
  return redelivered_;
}

// --- One worker.

DeliveryWorker::DeliveryWorker(DeliveryTally* tally,
                               std::shared_ptr<grpc::Channel> channel,
                               std::string name, std::string group,
                               uint64_t seed)
    : tally_(tally),
      stub_(v1::TimeCacheService::NewStub(std::move(channel))),
      name_(std::move(name)),
      group_(std::move(group)),
      dice_(seed) {}

void DeliveryWorker::Run() {
  for (;;) {
    grpc::ClientContext* context = nullptr;
    {
      absl::MutexLock lock(&mu_);
      if (stopped_) return;
      context_ = std::make_unique<grpc::ClientContext>();
      context_->set_deadline(std::chrono::system_clock::now() + kWorkerTimeout);
      context = context_.get();
      killed_ = false;
    }
    ++lives_;
    Live(context);
  }
}

void DeliveryWorker::Live(grpc::ClientContext* context) {
  v1::ConsumeExpiredRequest request;
  request.add_namespaces(name_);
  request.set_group(group_);
  request.set_max_in_flight(static_cast<uint32_t>(dice_.Draw(1, kMaxInFlight)));
  const auto reader = stub_->ConsumeExpired(context, request);
  v1::ConsumeExpiredResponse message;
  for (int64_t left = dice_.Draw(1, kMaxWorkerMessages); left > 0; --left) {
    if (!reader->Read(&message)) break;
    EXPECT_EQ(message.lost(), 0u);
    Settle(Take(message));
  }
  const bool broken = killed();
  Kill();
  while (reader->Read(&message)) {
  }
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED)
      << (broken ? "killed: " : "") << status.error_message();
}

std::vector<v1::Settlement> DeliveryWorker::Take(
    const v1::ConsumeExpiredResponse& message) {
  std::vector<v1::Settlement> settlements;
  names_.clear();
  absl::MutexLock lock(&mu_);
  if (killed_) return settlements;
  for (const v1::ExpiredEvent& event : message.events()) {
    DeliveryTally::Name name = {event.key(), -1};
    EXPECT_TRUE(absl::SimpleAtoi(event.value(), &name.second));
    tally_->Given(name, event);
    if (!hurry_ && dice_.Chance(50)) continue;
    v1::Settlement& settlement = settlements.emplace_back();
    settlement.set_delivery_token(event.delivery_token());
    // A member that is gone must not end the delivery after its own.
    const bool nack = !hurry_ && dice_.Chance(50);
    if (nack) {
      settlement.mutable_nack();
    } else {
      settlement.mutable_ack();
      tally_->Settling(name);
    }
    names_[event.delivery_token()] = std::move(name);
  }
  return settlements;
}

void DeliveryWorker::Settle(const std::vector<v1::Settlement>& settlements) {
  if (settlements.empty()) return;
  v1::SettleExpiredRequest request;
  request.set_namespace_(name_);
  request.set_group(group_);
  for (const v1::Settlement& settlement : settlements) {
    *request.add_settlements() = settlement;
  }
  const auto response = Must(
      Call(stub_.get(), &v1::TimeCacheService::Stub::SettleExpired, request));
  ASSERT_EQ(response.results_size(), request.settlements_size());
  const bool held = !killed();
  for (int i = 0; i < response.results_size(); ++i) {
    if (response.results(i).has_error()) {
      // An ACK of one that is dead by now may have come before.
      const google::rpc::Status& error = response.results(i).error();
      EXPECT_TRUE(!held || error.code() == grpc::StatusCode::NOT_FOUND)
          << error.message();
    } else if (settlements[i].has_nack()) {
      tally_->Nacked();
    } else {
      tally_->Settled(names_.at(settlements[i].delivery_token()), held);
    }
  }
}

bool DeliveryWorker::killed() const {
  absl::MutexLock lock(&mu_);
  return killed_;
}

void DeliveryWorker::Kill() {
  absl::MutexLock lock(&mu_);
  killed_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

void DeliveryWorker::Hurry() {
  absl::MutexLock lock(&mu_);
  hurry_ = true;
}

void DeliveryWorker::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = killed_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

}  // namespace timecache::test
