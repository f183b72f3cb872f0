#include "server/ops/loss_log.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/reaper.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LossLogTest : public ::testing::Test {
 protected:
  // What has died by now is published now.
  void Pass(int64_t us) {
    reaper_.Flush();
    clock_.AdvanceBy(us);
    reaper_.Flush();
  }
  std::shared_ptr<ConsumerGroup> CreateGroup(TimeCacheMap* map,
                                             const GroupOptions& options) {
    return map->groups()
        .Create("g", options, ExpiryLog::Start::kNow, clock_.NowUs())
        .value();
  }
  // A member that has been given the only event of a group, for the only time.
  std::unique_ptr<ConsumerGroup::Member> TakeLastAttempt(TimeCacheMap* map) {
    GroupOptions options;
    options.max_attempts = 1;
    options.ack_timeout_us = kMicrosPerSecond;
    const auto group = CreateGroup(map, options);
    map->Apply(Operation::Put("k", "v"), clock_.NowUs());
    Pass(60 * kMicrosPerSecond);
    auto member = group->Join(10, [] {});
    EXPECT_EQ(member->Take(clock_.NowUs(), 10, 1 << 20).deliveries.size(), 1u);
    return member;
  }
  std::vector<std::string> Look() {
    log_.Look();
    return std::exchange(lines_, {});
  }

  ManualClock clock_{1'000 * kMicrosPerSecond};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  Registries registries_{{&registry_, &reaper_, &clock_}};
  uint64_t refused_ = 0;
  uint64_t delayed_ = 0;
  std::vector<std::string> lines_;
  LossLog log_{
      &registries_,
      &clock_,
      {{"connections_refused", [this] { return refused_; }},
       {"connections_delayed", [this] { return delayed_; },
        [] { return std::string("192.0.2.1"); }}},
      [this](LogLevel level, std::string_view event, LogFields fields) {
        lines_.push_back(FormatLogLine(LogFormat::kText, absl::Time(), level,
                                       event, fields));
      }};
};

TEST_F(LossLogTest, SaysWhatAGroupDrops) {
  const auto map = registry_.Create("orders", NamespaceOptions()).value();
  GroupOptions options;
  options.max_backlog_bytes = 1 << 20;
  const auto group = CreateGroup(map.get(), options);
  EXPECT_THAT(Look(), IsEmpty());
  const std::string large(600 << 10, 'v');
  for (int i = 0; i < 3; ++i) {
    map->Apply(Operation::Put(absl::StrCat("secret-key", i), large),
               clock_.NowUs());
    Pass(60 * kMicrosPerSecond);
  }
  const uint64_t lost = group->GetStatistics().lost;
  ASSERT_GT(lost, 0u);
  const auto lines = Look();
  EXPECT_THAT(lines, ElementsAre(AllOf(
                         HasSubstr("warn"), HasSubstr("group_events_lost"),
                         HasSubstr("namespace=orders"), HasSubstr("group=g"),
                         HasSubstr(absl::StrCat("count=", lost)),
                         Not(HasSubstr("secret-key")))));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(LossLogTest, SaysWhatBecomesOfDeadLetters) {
  NamespaceOptions with_dead_letters;
  with_dead_letters.dead_letter_namespace = "dead";
  const auto map = registry_.Create("orders", with_dead_letters).value();
  const auto member = TakeLastAttempt(map.get());
  // Timed out, and there is no namespace to put it into.
  Pass(2 * kMicrosPerSecond);
  const std::vector<std::string> failed = Look();
  EXPECT_THAT(failed, ElementsAre(AllOf(HasSubstr("dead_letters_failed"),
                                        HasSubstr("namespace=orders group=g"),
                                        HasSubstr("count="))));
  ASSERT_TRUE(registry_.Create("dead", NamespaceOptions()).ok());
  Pass(2 * kMicrosPerSecond);
  EXPECT_THAT(Look(), ElementsAre(AllOf(HasSubstr("dead_letters "),
                                        HasSubstr("namespace=orders group=g"),
                                        HasSubstr("count=1"))));
}

TEST_F(LossLogTest, NamesAnEventThatMayCrashItsWorkers) {
  const auto map = registry_.Create("orders", NamespaceOptions()).value();
  const auto group = CreateGroup(map.get(), GroupOptions());
  const std::string key = "bomb\n" + std::string(200, 'x');
  map->Apply(Operation::Put(key, "v"), clock_.NowUs());
  Pass(60 * kMicrosPerSecond);
  for (int returns = 1; returns <= 5; ++returns) {
    SCOPED_TRACE(returns);
    const auto member = group->Join(10, [] {});
    ASSERT_EQ(member->Take(clock_.NowUs(), 10, 1 << 20).deliveries.size(), 1u);
    member->Leave(clock_.NowUs(), StreamEnd::kByClient);
    Pass(20 * kMicrosPerSecond);
    const std::vector<std::string> lines = Look();
    if (returns < 3) {
      EXPECT_THAT(lines, IsEmpty());
      continue;
    }
    EXPECT_THAT(lines,
                ElementsAre(AllOf(
                    HasSubstr("warn"), HasSubstr("suspect_events"),
                    HasSubstr("namespace=orders group=g"), HasSubstr("bomb"),
                    HasSubstr(absl::StrCat("returns=", returns, " count=1")),
                    Not(HasSubstr(std::string(65, 'x'))))));
  }
}

TEST_F(LossLogTest, SaysWhichAddressWasDelayedLast) {
  delayed_ = 3;
  EXPECT_THAT(Look(), ElementsAre(AllOf(HasSubstr("connections_delayed"),
                                        HasSubstr("last_address=192.0.2.1"),
                                        HasSubstr("count=3"))));
}

TEST_F(LossLogTest, SaysThatAGroupsMakerMayNotPutItsDeadLetters) {
  registry_.SetDeadLetterRight([](absl::string_view, absl::string_view) {
    return absl::PermissionDeniedError("no");
  });
  NamespaceOptions with_dead_letters;
  with_dead_letters.dead_letter_namespace = "dead";
  const auto map = registry_.Create("orders", with_dead_letters).value();
  ASSERT_TRUE(registry_.Create("dead", NamespaceOptions()).ok());
  const auto member = TakeLastAttempt(map.get());
  Pass(kMicrosPerSecond);
  EXPECT_THAT(Look(), testing::UnorderedElementsAre(
                          AllOf(HasSubstr("dead_letters_denied"),
                                HasSubstr("namespace=orders group=g count=1")),
                          HasSubstr("dead_letters_failed")));
}

TEST_F(LossLogTest, SaysWhichGroupsExpiredAndWhatWasLostWithThem) {
  const auto map = registry_.Create("orders", NamespaceOptions()).value();
  ASSERT_TRUE(map->groups()
                  .FindOrCreate("idle", ExpiryLog::Start::kNow, clock_.NowUs())
                  .ok());
  map->Apply(Operation::Put("k", "v"), clock_.NowUs());
  Pass(60 * kMicrosPerSecond);
  EXPECT_THAT(Look(), IsEmpty());
  Pass(NamespaceOptions().unused_group_ttl_us);
  EXPECT_THAT(Look(), ElementsAre(AllOf(
                          HasSubstr("warn"), HasSubstr("group_expired"),
                          HasSubstr("namespace=orders group=idle count=1"))));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(LossLogTest, SaysHowManyConnectionsWereRefusedOnceAnInterval) {
  refused_ = 3;
  EXPECT_THAT(Look(), ElementsAre(AllOf(HasSubstr("connections_refused"),
                                        HasSubstr("count=3"))));
  refused_ = 10;
  EXPECT_THAT(Look(), IsEmpty());
  clock_.AdvanceBy(FoldedLines::kIntervalUs);
  EXPECT_THAT(Look(), ElementsAre(HasSubstr("count=7")));
  refused_ = 12;
  log_.Finish();
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("count=2")));
}

}  // namespace
}  // namespace timecache::server
