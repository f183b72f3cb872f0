// How late events were as their watcher got them.

#include "server/rpc/watch/watch_source.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "server/edge/response/response_ledger.h"
#include "server/engine/local_readers.h"
#include "server/rpc/watch/event_filters.h"

namespace timecache::server {
namespace {

constexpr int64_t kSecond = kMicrosPerSecond;
constexpr int64_t kStartUs = 1'000'000 * kSecond;

class WatchSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<WatchSource> Open(const std::string& prefix = "") {
    request_.filter = filters_.Find(prefix, false);
    auto reader = OpenLogReader(map_, LogStart::kNow, {}, kStartUs, [] {});
    EXPECT_TRUE(reader.ok());
    return std::make_unique<WatchSource>("map", &request_, *std::move(reader));
  }

  // Both die ten seconds after the start, and are published at once.
  void LetTwoDie(const std::string& value = "v") {
    for (const char* key : {"a", "b"}) {
      map_->Apply(Operation::Put(key, value), kStartUs);
    }
    map_->Advance(kDeathUs);
    while (map_->Sweep(kDeathUs, 1'000)) {
    }
  }

  DurationHistogram Deliveries() {
    return map_->GetStatistics(kDeathUs).delivery_lateness;
  }

  static NamespaceOptions Options() {
    NamespaceOptions options;
    options.ttl_us = 10 * kSecond;
    options.num_buckets = 11;
    return options;
  }

  static constexpr int64_t kDeathUs = kStartUs + 10 * kSecond;
  ResponseLedger ledger_{{.max_bytes = 16 << 20}};
  const ResponseAccountRef account_ = ledger_.Find("ipv4:10.0.0.1:1");
  EventFilters filters_;
  WatchRequest request_;
  const std::shared_ptr<TimeCacheMap> map_ =
      std::make_shared<TimeCacheMap>("map", Options(), nullptr, kStartUs);
};

TEST_F(WatchSourceTest, LatenessIncludesWhatTheWatcherWaitedForItsTurn) {
  const auto source = Open();
  LetTwoDie();
  WatchMessage message;
  source->Read(kDeathUs, &message);
  EXPECT_EQ(Deliveries().total(), 0u);
  source->OnWritten(kDeathUs + 4 * kSecond, kStartUs);
  EXPECT_EQ(Deliveries().total(), 2u);
  EXPECT_EQ(Deliveries().max_us(), 4 * kSecond);
  EXPECT_EQ(map_->GetStatistics(kDeathUs).lateness.max_us(), 0);
  source->OnWritten(kDeathUs + 9 * kSecond, kStartUs);
  EXPECT_EQ(Deliveries().total(), 2u);
}

TEST_F(WatchSourceTest, WhatAWatcherItselfCouldNotTakeIsNotLate) {
  const auto source = Open();
  LetTwoDie();
  WatchMessage message;
  source->Read(kDeathUs + 60 * kSecond, &message);
  source->OnWritten(kDeathUs + 60 * kSecond + 30, kDeathUs + 60 * kSecond);
  EXPECT_EQ(Deliveries().max_us(), 30);
}

TEST_F(WatchSourceTest, WhatAFilterLeavesOutIsNotDelivered) {
  const auto source = Open("a");
  LetTwoDie();
  WatchMessage message;
  source->Read(kDeathUs, &message);
  source->OnWritten(kDeathUs + 5, kStartUs);
  EXPECT_EQ(Deliveries().total(), 1u);
}

TEST_F(WatchSourceTest, WhatWasWrittenForAFilterCountsOnItsConnection) {
  const auto source = Open("a");
  LetTwoDie(std::string(100'000, 'v'));
  WatchMessage message(kDefaultMaxMessageBytes, account_.get());
  source->Read(kDeathUs, &message);
  grpc::ByteBuffer unread = message.Take("map");
  EXPECT_GE(account_->bytes(), 100'000);
  EXPECT_EQ(account_->impatient_bytes(), 0);
  unread.Clear();
  EXPECT_EQ(account_->bytes(), 0);
}

TEST_F(WatchSourceTest, TheLogsOwnBytesCountOnNoConnection) {
  const auto source = Open();
  LetTwoDie(std::string(100'000, 'v'));
  WatchMessage message(kDefaultMaxMessageBytes, account_.get());
  source->Read(kDeathUs, &message);
  const grpc::ByteBuffer unread = message.Take("map");
  EXPECT_GE(unread.Length(), 200'000u);
  EXPECT_EQ(account_->bytes(), 0);
}

}  // namespace
}  // namespace timecache::server
