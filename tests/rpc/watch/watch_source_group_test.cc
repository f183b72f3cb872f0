// A member of a consumer group, without a stream around it.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/proto_time.h"
#include "server/base/clock.h"
#include "server/base/error.h"
#include "server/engine/local_readers.h"
#include "server/engine/store/operation.h"
#include "server/rpc/watch/watch_source.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kGroupStartUs = 1'000 * kMicrosPerSecond;

class WatchSourceGroupTest : public ::testing::Test {
 protected:
  WatchSourceGroupTest() { request_.group = "g"; }

  std::unique_ptr<WatchSource> Open() {
    auto reader =
        JoinGroupReader(map_, membership_, now_us_, [this] { ++wakes_; });
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return nullptr;
    return std::make_unique<WatchSource>("map", &request_, *std::move(reader));
  }
  // Entries are put, and die.
  void Kill(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      EXPECT_TRUE(
          map_->Apply(Operation::Put(key, "value"), now_us_).status.ok());
    }
    now_us_ += 31 * kMicrosPerSecond;
    map_->Advance(now_us_);
    while (map_->Sweep(now_us_, 1'000)) {
    }
  }
  // What the source tells; `*reading` is how.
  v1::ConsumeExpiredResponse Read(WatchSource* source,
                                  WatchSource::Reading* reading) {
    source->RefreshWatermark(now_us_, 0);
    WatchMessage message;
    *reading = source->Read(now_us_, &message);
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(message.Take("map").Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    v1::ConsumeExpiredResponse parsed;
    EXPECT_TRUE(parsed.ParseFromString(bytes));
    return parsed;
  }
  std::vector<std::string> Keys(WatchSource* source) {
    WatchSource::Reading reading;
    std::vector<std::string> keys;
    do {
      const v1::ConsumeExpiredResponse message = Read(source, &reading);
      EXPECT_TRUE(reading.end.ok()) << reading.end;
      for (const auto& event : message.events()) keys.push_back(event.key());
    } while (reading.more);
    return keys;
  }
  // Why the source says that there is nothing more.
  absl::Status End(WatchSource* source) {
    WatchSource::Reading reading;
    Read(source, &reading);
    return reading.end;
  }

  int64_t now_us_ = kGroupStartUs;
  int wakes_ = 0;
  WatchRequest request_;
  Membership membership_{.group = "g", .created_by = "alice"};
  std::shared_ptr<TimeCacheMap> map_ = std::make_shared<TimeCacheMap>(
      "map", NamespaceOptions(), nullptr, kGroupStartUs);
};

TEST_F(WatchSourceGroupTest, ReadsWhatItIsGivenAndIsWokenForMore) {
  const auto source = Open();
  EXPECT_THAT(Keys(source.get()), IsEmpty());
  EXPECT_EQ(wakes_, 0);
  Kill({"a", "b"});
  EXPECT_GE(wakes_, 1);
  EXPECT_THAT(Keys(source.get()), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(Keys(source.get()), IsEmpty());
}

TEST_F(WatchSourceGroupTest, TellsTheWatermarksOfTheGroup) {
  const auto source = Open();
  Kill({"a"});
  WatchSource::Reading reading;
  const v1::ConsumeExpiredResponse message = Read(source.get(), &reading);
  ASSERT_EQ(message.events_size(), 1);
  EXPECT_EQ(message.events(0).attempt(), 1u);
  EXPECT_EQ(message.events(0).event_id(), 1u);
  EXPECT_EQ(message.lost(), 0u);
  EXPECT_EQ(*ToMicros(message.delivered_watermark(), ""), now_us_);
  EXPECT_LT(*ToMicros(message.watermark(), ""),
            *ToMicros(message.events(0).death_time(), ""));
  EXPECT_FALSE(reading.more);
}

TEST_F(WatchSourceGroupTest, TakesNothingMoreOnceTheServerDrains) {
  const auto source = Open();
  Keys(source.get());
  source->OnDrain();
  Kill({"a"});
  WatchSource::Reading reading;
  const v1::ConsumeExpiredResponse message = Read(source.get(), &reading);
  EXPECT_EQ(message.events_size(), 0);
  EXPECT_TRUE(message.has_watermark());
  EXPECT_FALSE(reading.more);
  EXPECT_TRUE(reading.end.ok());
  EXPECT_THAT(Keys(Open().get()), ElementsAre("a"));
}

TEST_F(WatchSourceGroupTest, GivesBackWhatItHoldsWhenTheStreamEnds) {
  const auto source = Open();
  Kill({"a"});
  EXPECT_THAT(Keys(source.get()), ElementsAre("a"));
  const auto other = Open();
  EXPECT_THAT(Keys(other.get()), IsEmpty());
  source->OnEnd(now_us_, StreamEnd::kByClient);
  EXPECT_THAT(Keys(other.get()), ElementsAre("a"));
  // As after a cancelled write.
  source->OnEnd(now_us_, StreamEnd::kByClient);
}

TEST_F(WatchSourceGroupTest, SaysWhetherTheGroupOrTheNamespaceIsGone) {
  const auto first = Open();
  EXPECT_TRUE(map_->groups().Delete("g").ok());
  const auto second = Open();
  absl::Status status = End(first.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), Reason::kGroupNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("group g"));
  map_->Close();
  status = End(second.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), Reason::kNamespaceNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("map was deleted"));
  // Who comes too late: to this group, and to one that is not there.
  EXPECT_EQ(ReasonOf(End(Open().get())), Reason::kNamespaceNotFound);
  membership_.group = "other";
  EXPECT_EQ(
      ReasonOf(JoinGroupReader(map_, membership_, now_us_, [] {}).status()),
      Reason::kNamespaceNotFound);
}

}  // namespace
}  // namespace timecache::server
