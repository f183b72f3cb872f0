// Dead letters whose namespace may be on another node.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/slots_store.h"

namespace timecache::server {
namespace {

using Start = ExpiryLog::Start;

class DeadLetterStoreTest : public testing::Test {
 protected:
  DeadLetterStoreTest() {
    registry_->LeaveRoutesToCaller();
    registry_->SetDeadLetterStore(&store_);
    NamespaceOptions options = WithBuckets(10 * kSecond, 11);
    options.dead_letter_namespace = "dead";
    map_ = *registry_->Create("work", options);
    GroupOptions group_options;
    group_options.max_attempts = 1;
    group_options.ack_timeout_us = kSecond;
    group_ = *map_->groups().Create("g", group_options, Start::kNow,
                                    clock_.NowUs(), "maker");
  }

  std::shared_ptr<TimeCacheMap> MakeDead(int64_t max_bytes = 0) {
    NamespaceOptions options;
    options.ttl_us = 3'600 * kSecond;
    options.max_value_bytes = 1;
    options.max_operations_per_second = 1;
    options.max_bytes = max_bytes;
    return *store_.RegistryOf("dead").Create("dead", options);
  }
  // So many events have failed for good.
  void FailEvents(int count) {
    for (int i = 0; i < count; ++i) {
      map_->Apply(Operation::Put(absl::StrCat("k", i), "v"), clock_.NowUs());
    }
    TestMember member(group_.get(), count);
    Pass(11 * kSecond);
    size_t taken = 0;
    for (bool more = true; more;) {
      const EventChunk chunk = member.Take(clock_.NowUs());
      taken += chunk.deliveries.size();
      more = chunk.more;
    }
    ASSERT_EQ(taken, static_cast<size_t>(count));
    Pass(kSecond);
  }
  void Pass(int64_t step_us) {
    clock_.AdvanceBy(step_us);
    reaper_.Flush();
  }
  GroupStatistics Statistics() { return group_->GetStatistics(); }

  ManualClock clock_{kStartUs};
  SlotsStore store_{3, &clock_};
  Reaper reaper_{&clock_};
  std::optional<Registry> registry_{std::in_place, &clock_, &reaper_,
                                    RegistryLimits()};
  std::shared_ptr<TimeCacheMap> map_;
  std::shared_ptr<ConsumerGroup> group_;
};

// Of any size, and past the limit of the rate.
TEST_F(DeadLetterStoreTest, GoesToItsNamespaceOnAnotherNode) {
  const auto dead = MakeDead();
  FailEvents(3);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 3);
  EXPECT_EQ(Statistics().dead_lettered, 3u);
  EXPECT_EQ(Statistics().backlog, 0u);
  EXPECT_EQ(Statistics().dead_letter_failures, 0u);
}

TEST_F(DeadLetterStoreTest, IsSettledOnlyByTheAnswer) {
  const auto dead = MakeDead();
  store_.Hold();
  FailEvents(1);
  EXPECT_EQ(store_.waiting(), 1u);
  // It is not sent twice at a time.
  Pass(60 * kSecond);
  EXPECT_EQ(store_.waiting(), 1u);
  EXPECT_EQ(Statistics().dead_lettered, 0u);
  store_.Release();
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 1);
  EXPECT_EQ(Statistics().dead_lettered, 1u);
}

TEST_F(DeadLetterStoreTest, IsSettledWhenItMayBe) {
  std::vector<absl::AnyInvocable<void()>> later;
  registry_->SetDeadLetterStore(&store_,
                                [&](absl::AnyInvocable<void()> settle) {
                                  later.push_back(std::move(settle));
                                });
  const auto dead = MakeDead();
  FailEvents(2);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 2);
  // It is not sent again meanwhile.
  Pass(60 * kSecond);
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(Statistics().dead_lettered, 0u);
  EXPECT_EQ(Statistics().backlog, 2u);
  later[0]();
  EXPECT_EQ(Statistics().dead_lettered, 1u);
  EXPECT_EQ(Statistics().backlog, 1u);
  // One that is never settled ends with the registry.
  later.pop_back();
  registry_.reset();
}

TEST_F(DeadLetterStoreTest, IsTriedAgainWhateverAFailedCallSays) {
  const auto dead = MakeDead();
  store_.Fail(absl::InvalidArgumentError("an answer of another version"));
  FailEvents(1);
  EXPECT_EQ(Statistics().dead_letter_failures, 1u);
  store_.Fail(absl::PermissionDeniedError("not a peer"));
  Pass(kSecond);
  EXPECT_EQ(Statistics().dead_letter_failures, 2u);
  EXPECT_EQ(Statistics().dead_letters_denied, 0u);
  EXPECT_EQ(Statistics().dead_letters_dropped, 0u);
  EXPECT_EQ(Statistics().backlog, 1u);
  store_.Fail(absl::OkStatus());
  Pass(kSecond);
  EXPECT_EQ(Statistics().dead_lettered, 1u);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 1);
}

TEST_F(DeadLetterStoreTest, WaitsForItsNamespaceAndForItsRight) {
  bool allowed = false;
  registry_->SetDeadLetterRight([&](absl::string_view, absl::string_view) {
    return allowed ? absl::OkStatus() : absl::PermissionDeniedError("no");
  });
  FailEvents(1);
  EXPECT_EQ(store_.calls(), 0u);
  EXPECT_EQ(Statistics().dead_letters_denied, 1u);
  allowed = true;
  Pass(kSecond);
  EXPECT_EQ(Statistics().dead_letter_failures, 2u);
  MakeDead();
  Pass(kSecond);
  EXPECT_EQ(Statistics().dead_lettered, 1u);
}

TEST_F(DeadLetterStoreTest, IsDroppedWhereAllOfItsNamespaceIsTooSmall) {
  MakeDead(/*max_bytes=*/10);
  FailEvents(1);
  EXPECT_EQ(Statistics().dead_letters_dropped, 1u);
  EXPECT_EQ(Statistics().backlog, 0u);
}

TEST_F(DeadLetterStoreTest, FewOfManyAreOnTheirWayAtOnce) {
  const auto dead = MakeDead();
  constexpr int kMany = 3 * ConsumerGroups::kMaxDeadLetters;
  store_.Hold();
  FailEvents(kMany);
  EXPECT_EQ(store_.waiting(), size_t{ConsumerGroups::kMaxDeadLetters});
  Pass(60 * kSecond);
  EXPECT_EQ(store_.waiting(), size_t{ConsumerGroups::kMaxDeadLetters});
  store_.Release();
  Pass(0);
  EXPECT_EQ(Statistics().dead_lettered, uint64_t{kMany});
  EXPECT_EQ(Statistics().dead_letter_failures, 0u);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, kMany);
}

// The next owner of the slot puts it again, under the same key.
TEST_F(DeadLetterStoreTest, AnAnswerMayComeAfterTheRegistry) {
  const auto dead = MakeDead();
  store_.Hold();
  FailEvents(1);
  group_ = nullptr;
  std::weak_ptr<TimeCacheMap> map = std::exchange(map_, nullptr);
  registry_.reset();
  EXPECT_FALSE(map.expired());
  store_.Release();
  EXPECT_TRUE(map.expired());
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 1);
}

}  // namespace
}  // namespace timecache::server
