#include "tests/integration/watch/delivery_stream.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

// Longer than any test may take: a storm on a loaded machine is no error.
constexpr std::chrono::minutes kStreamTimeout{5};
// A connection breaks within so many messages.
constexpr int kMaxMessages = 60;
// Rounds for which one that breaks may stay away.
constexpr int kMaxAway = 150;

}  // namespace

DeliveryStream::DeliveryStream(DeliveryStorm* storm,
                               std::shared_ptr<grpc::Channel> channel, int id,
                               uint64_t seed)
    : storm_(storm),
      stub_(v1::TimeCacheService::NewStub(std::move(channel))),
      id_(id),
      dice_(seed),
      seen_(static_cast<size_t>(storm->entries())) {
  Connect();
  EXPECT_TRUE(reader_->Read(&message_));
  Check(message_);
}

void DeliveryStream::Connect() {
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(std::chrono::system_clock::now() + kStreamTimeout);
  v1::WatchExpiredRequest request;
  request.add_namespaces(DeliveryStorm::kNamespace);
  if (!token_.empty()) request.add_resume_tokens(token_);
  reader_ = stub_->WatchExpired(context_.get(), request);
}

void DeliveryStream::Break() {
  context_->TryCancel();
  while (reader_->Read(&message_)) {
  }
  const grpc::Status status = reader_->Finish();
  ASSERT_EQ(status.error_code(), grpc::StatusCode::CANCELLED)
      << status.error_message();
}

void DeliveryStream::Run() {
  while (watermark_us_ < storm_->end_us() &&
         !::testing::Test::HasFatalFailure()) {
    for (int64_t left = dice_.Draw(0, kMaxMessages);
         left > 0 && watermark_us_ < storm_->end_us(); --left) {
      if (!reader_->Read(&message_)) {
        const grpc::Status status = reader_->Finish();
        storm_->Leave(id_, 0);
        FAIL() << status.error_code() << ": " << status.error_message();
      }
      Check(message_);
      storm_->Delivered(id_, watermark_us_);
    }
    Break();
    storm_->Leave(
        id_, dice_.Chance(200) ? static_cast<int>(dice_.Draw(1, kMaxAway)) : 0);
    Connect();
    ++resumes_;
  }
  Break();
  storm_->Leave(id_, 0);
}

void DeliveryStream::Check(const v1::WatchExpiredResponse& message) {
  lost_ += static_cast<int64_t>(message.lost());
  for (const v1::ExpiredEvent& event : message.events()) CheckEvent(event);
  ASSERT_GE(ToUs(message.watermark()), watermark_us_);
  watermark_us_ = ToUs(message.watermark());
  ASSERT_GE(delivered_ + lost_, storm_->DiedBy(watermark_us_))
      << "the watermark promises what was not told";
  ASSERT_FALSE(message.resume_token().empty());
  token_ = message.resume_token();
}

void DeliveryStream::CheckEvent(const v1::ExpiredEvent& event) {
  const int64_t number = storm_->NumberOf(event.key(), event.value());
  ASSERT_NE(number, -1) << event.key() << " = " << event.value();
  const int64_t death_us = ToUs(event.death_time());
  ASSERT_EQ(death_us, storm_->DeathOf(number));
  ASSERT_GE(death_us, death_us_) << "out of order";
  ASSERT_GT(death_us, watermark_us_) << "after a watermark that promised it";
  death_us_ = death_us;
  ASSERT_FALSE(seen_[static_cast<size_t>(number)]) << number << " twice";
  seen_[static_cast<size_t>(number)] = true;
  ++delivered_;
}

}  // namespace timecache::test
