// Members of a group in a namespace of several partitions.

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/engine/parts/parts_harness.h"
#include "tests/support/effort.h"

namespace timecache::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Settlement Of(const Delivery& delivery,
              SettleAction action = SettleAction::kAck) {
  return {.event_id = delivery.event_id,
          .attempt = delivery.attempt,
          .action = action,
          .returns = delivery.returns,
          .group_id = delivery.group_id,
          .partition = delivery.partition};
}

class MergedMembersTest : public testing::Test {
 protected:
  void Make(int partitions) { parts_.emplace(partitions); }
  // With these options, from the oldest event on.
  void MakeGroup(const GroupOptions& options) {
    const auto made = Inline<GroupInfo>([&](auto done) {
      parts_->store().CreateGroup(PartsHarness::kGroupName,
                                  GroupWith(options, LogStart::kEarliest),
                                  std::move(done));
    });
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void Kill(int events, absl::string_view value = "v") {
    for (int i = 0; i < events; ++i) {
      parts_->Put(absl::StrCat("key-", ++keys_), value, kSecond);
    }
    parts_->Pass(3 * kSecond);
  }
  EventChunk Read(TestReader* member, int most = 8192,
                  int64_t bytes = kMessageBytes) {
    return (*member)->Read(parts_->now_us(), most, bytes);
  }
  // All of these.
  std::vector<SettleResult> Settle(const std::vector<Settlement>& settlements) {
    std::vector<SettleResult> results(settlements.size());
    const absl::Status status = InlineStatus([&](auto done) {
      parts_->store().Settle(PartsHarness::kGroupName, settlements,
                             absl::MakeSpan(results), std::move(done));
    });
    EXPECT_TRUE(status.ok()) << status;
    return results;
  }
  void Ack(const std::vector<Delivery>& deliveries) {
    std::vector<Settlement> settlements;
    for (const Delivery& each : deliveries) settlements.push_back(Of(each));
    for (const SettleResult& result : Settle(settlements)) {
      EXPECT_TRUE(result.status.ok()) << result.status;
    }
  }
  GroupStatistics Statistics() {
    const auto info = Inline<GroupInfo>([&](auto done) {
      parts_->store().GetGroup(PartsHarness::kGroupName, true, std::move(done));
    });
    EXPECT_TRUE(info.ok()) << info.status();
    return *info->statistics;
  }
  std::vector<MemberInfo> Members() {
    const auto members = Inline<std::vector<MemberInfo>>([&](auto done) {
      parts_->store().ListMembers(PartsHarness::kGroupName, std::move(done));
    });
    EXPECT_TRUE(members.ok()) << members.status();
    return *members;
  }

  std::optional<PartsHarness> parts_;
  int keys_ = 0;
};

TEST_F(MergedMembersTest, HoldsNoMoreThanItsLimitInAllPartitions) {
  Make(4);
  TestReader member = parts_->Join(PartsHarness::kGroup, 3);
  ASSERT_TRUE(member.status().ok()) << member.status();
  Kill(20);
  std::vector<Delivery> held = Read(&member).deliveries;
  EXPECT_THAT(held, SizeIs(3));
  EXPECT_FALSE(Read(&member).more);
  EXPECT_EQ(Statistics().in_flight, 3u);
  // Room that a settlement makes is for events of any partition.
  int delivered = 3;
  while (!held.empty()) {
    member.TakeWakes();
    Ack({held.back()});
    held.pop_back();
    if (delivered < 20) {
      ASSERT_EQ(member.TakeWakes(), 1);
    }
    for (bool more = true; more;) {
      EventChunk chunk = Read(&member);
      more = chunk.more;
      for (Delivery& each : chunk.deliveries) {
        held.push_back(std::move(each));
        ++delivered;
      }
    }
    ASSERT_LE(held.size(), 3u);
  }
  EXPECT_EQ(delivered, 20);
  EXPECT_EQ(Statistics().acked, 20u);
  EXPECT_EQ(Statistics().backlog, 0u);
}

TEST_F(MergedMembersTest, AMemberAtItsLimitLeavesEventsToOthersAtOnce) {
  Make(4);
  TestReader full = parts_->Join(PartsHarness::kGroup, 1);
  Kill(1);
  EXPECT_THAT(Read(&full).deliveries, SizeIs(1));
  TestReader other = parts_->Join(PartsHarness::kGroup, 100);
  EXPECT_FALSE(Read(&other).more);
  EXPECT_FALSE(Read(&full).more);
  for (int i = 0; i < 40; ++i) parts_->Put(absl::StrCat("x", i), "v", kSecond);
  parts_->Pass(3 * kSecond);
  int got = 0;
  for (int turn = 0; turn < 20 && got < 40; ++turn) {
    if (full.TakeWakes() > 0) {
      const EventChunk chunk = Read(&full);
      EXPECT_THAT(chunk.deliveries, IsEmpty());
      EXPECT_FALSE(chunk.more);
    }
    if (other.TakeWakes() == 0) continue;
    for (bool more = true; more;) {
      const EventChunk chunk = Read(&other);
      got += static_cast<int>(chunk.deliveries.size());
      more = chunk.more;
    }
  }
  EXPECT_EQ(got, 40);
}

// Members read only when they are woken, settle, fail, leave and come again.
TEST_F(MergedMembersTest, EveryEventIsSettledOnceWhateverMembersDo) {
  std::mt19937_64 random(test::Seed());
  for (const int partitions : {2, 5, 16}) {
    SCOPED_TRACE(partitions);
    Make(partitions);
    MakeGroup({.ack_timeout_us = kMaxAckTimeoutUs, .max_attempts = 1'000'000});
    struct Member {
      TestReader reader;
      int max_in_flight;
      bool more = true;
      std::vector<Delivery> held = {};
    };
    std::vector<Member> members;
    std::set<std::string> acked;
    int put = 0;
    const auto read = [&](Member* member) {
      EventChunk chunk =
          Read(&member->reader, static_cast<int>(1 + random() % 20), 2'000);
      member->more = chunk.more;
      for (Delivery& each : chunk.deliveries) {
        member->held.push_back(std::move(each));
      }
      ASSERT_LE(member->held.size(),
                static_cast<size_t>(member->max_in_flight));
      ASSERT_EQ(chunk.lost, 0u);
    };
    for (int round = 0; round < 1'500; ++round) {
      const bool ending = round >= 600;
      if (!ending && random() % 10 == 0) {
        const int count = static_cast<int>(random() % 30);
        put += count;
        Kill(count);
      }
      if (members.empty() ||
          (!ending && members.size() < 4 && random() % 50 == 0)) {
        const int limit = static_cast<int>(1 + random() % 8);
        members.push_back({parts_->Join(PartsHarness::kGroup, limit), limit});
        ASSERT_TRUE(members.back().reader.status().ok());
      }
      Member& member = members[random() % members.size()];
      if (member.reader.TakeWakes() > 0 || member.more) {
        ASSERT_NO_FATAL_FAILURE(read(&member));
      }
      if (!member.held.empty() && random() % 2 == 0) {
        const size_t at = random() % member.held.size();
        const Delivery delivery = member.held[at];
        member.held.erase(member.held.begin() + static_cast<ptrdiff_t>(at));
        const bool nack = !ending && random() % 3 == 0;
        Settlement settlement =
            Of(delivery, nack ? SettleAction::kNack : SettleAction::kAck);
        if (nack) settlement.delay_us = 0;
        const SettleResult result = Settle({settlement}).front();
        ASSERT_TRUE(result.status.ok()) << result.status;
        if (!nack) {
          ASSERT_TRUE(acked.insert(std::string(delivery.event().key)).second);
        }
      }
      if (!ending && random() % 60 == 0) {
        const size_t at = random() % members.size();
        members[at].reader.Leave(parts_->now_us(), StreamEnd::kByServer);
        members.erase(members.begin() + static_cast<ptrdiff_t>(at));
      }
    }
    // Without a wake there is nothing to read.
    for (int rounds = 0; rounds < 10'000 && acked.size() < size_t(put);
         ++rounds) {
      bool any = false;
      for (Member& member : members) {
        while (member.reader.TakeWakes() > 0 || member.more) {
          ASSERT_NO_FATAL_FAILURE(read(&member));
          any = true;
        }
        if (!member.held.empty()) any = true;
        for (const Delivery& each : member.held) {
          ASSERT_TRUE(acked.insert(std::string(each.event().key)).second);
        }
        Ack(std::exchange(member.held, {}));
      }
      // Woken members that did not come had their time.
      if (!any) parts_->Pass(kSecond);
    }
    EXPECT_EQ(acked.size(), static_cast<size_t>(put));
    EXPECT_EQ(Statistics().acked, static_cast<uint64_t>(put));
  }
}

TEST_F(MergedMembersTest, AStreamIsOneMember) {
  Make(4);
  TestReader first = parts_->Join(PartsHarness::kGroup, 7);
  TestReader second = parts_->Join(PartsHarness::kGroup, 9);
  Kill(30);
  const size_t held = Read(&first).deliveries.size();
  EXPECT_EQ(held, 7u);
  std::vector<MemberInfo> members = Members();
  ASSERT_THAT(members, SizeIs(2));
  EXPECT_EQ(members[0].in_flight, 7);
  EXPECT_EQ(members[0].max_in_flight, 7);
  EXPECT_EQ(members[1].in_flight, 0);
  EXPECT_EQ(members[1].max_in_flight, 9);
  EXPECT_NE(members[0].id, members[1].id);
  EXPECT_EQ(Statistics().members, 2);
  first.Leave(parts_->now_us(), StreamEnd::kByServer);
  EXPECT_THAT(Members(), SizeIs(1));
  EXPECT_EQ(Statistics().in_flight, 0u);
}

TEST_F(MergedMembersTest, TheSameStreamIsActiveInAllPartitions) {
  Make(8);
  MakeGroup({.single_active = true});
  std::vector<TestReader> members;
  {
    std::vector<std::optional<TestReader>> joined(8);
    std::vector<std::thread> threads;
    for (auto& member : joined) {
      threads.emplace_back([this, &member] {
        member.emplace(parts_->Join(PartsHarness::kGroup, 100));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (auto& member : joined) members.push_back(*std::move(member));
  }
  Kill(64);
  while (!members.empty()) {
    size_t with_events = 0;
    size_t active = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      size_t got = 0;
      for (bool more = true; more;) {
        const EventChunk chunk = Read(&members[i]);
        got += chunk.deliveries.size();
        more = chunk.more;
      }
      if (got == 0) continue;
      EXPECT_EQ(got, 64u);
      ++with_events;
      active = i;
    }
    ASSERT_EQ(with_events, 1u);
    const std::vector<MemberInfo> listed = Members();
    ASSERT_EQ(listed.size(), members.size());
    EXPECT_TRUE(listed.front().active);
    for (size_t i = 1; i < listed.size(); ++i) EXPECT_FALSE(listed[i].active);
    members[active].Leave(parts_->now_us(), StreamEnd::kByServer);
    members.erase(members.begin() + static_cast<ptrdiff_t>(active));
  }
}

TEST_F(MergedMembersTest, WatermarksAreThoseOfThePartitionBehind) {
  Make(3);
  TestReader member = parts_->Join(PartsHarness::kGroup, 100);
  const int64_t begin_us = parts_->now_us();
  for (int i = 0; i < 3; ++i) {
    parts_->Put(parts_->KeyIn(i, "a"), "v", (i + 1) * kSecond);
  }
  parts_->Pass(9 * kSecond);
  const std::vector<Delivery> held = Read(&member).deliveries;
  ASSERT_THAT(held, SizeIs(3));
  member->RefreshWatermark(parts_->now_us(), 0);
  EventChunk chunk = Read(&member);
  EXPECT_EQ(chunk.watermark_us, begin_us + kSecond - 1);
  EXPECT_EQ(chunk.delivered_us, parts_->now_us());
  Ack({held[0], held[2]});
  member->RefreshWatermark(parts_->now_us(), 0);
  EXPECT_EQ(Read(&member).watermark_us, begin_us + 2 * kSecond - 1);
  Ack({held[1]});
  member->RefreshWatermark(parts_->now_us(), 0);
  EXPECT_EQ(Read(&member).watermark_us, parts_->now_us());
}

TEST_F(MergedMembersTest, SaysOnceAllIsDeliveredAtOnceWithItsTime) {
  Make(4);
  TestReader member = parts_->Join(PartsHarness::kGroup, 100);
  EXPECT_FALSE(Read(&member).more);
  Kill(1);
  EXPECT_GT(member.TakeWakes(), 0);
  bool told = false;
  for (bool more = true; more;) {
    const EventChunk chunk = Read(&member);
    more = chunk.more;
    told |= chunk.all_delivered;
    if (told) {
      EXPECT_EQ(chunk.delivered_us, parts_->now_us());
    }
  }
  EXPECT_TRUE(told);
}

TEST_F(MergedMembersTest, AFetchIsOneAnswerWithinItsLimits) {
  Make(4);
  Kill(40, std::string(1'000, 'v'));
  TestReader fetch = parts_->Join(PartsHarness::kGroup, 10, /*fetches=*/true);
  ASSERT_TRUE(fetch.status().ok()) << fetch.status();
  std::vector<Delivery> events = Read(&fetch, 10).deliveries;
  EXPECT_THAT(events, SizeIs(10));
  fetch->StopReading();
  fetch.Leave(parts_->now_us(), StreamEnd::kAnswered);
  EXPECT_EQ(Statistics().fetched, 10u);
  Ack(events);
  // By bytes, in several reads.
  TestReader small = parts_->Join(PartsHarness::kGroup, 100, /*fetches=*/true);
  int64_t left = 5'000;
  size_t got = 0;
  for (bool more = true; more && left > 0;) {
    const EventChunk chunk = small->Read(parts_->now_us(), 100, left,
                                         /*at_least_one=*/got == 0);
    for (const Delivery& each : chunk.deliveries) {
      left -= static_cast<int64_t>(each.batch->encoded(each.index).size());
    }
    got += chunk.deliveries.size();
    more = chunk.more && !chunk.deliveries.empty();
  }
  EXPECT_EQ(got, 4u);
  EXPECT_GE(left, 0);
  // One that is not answered gives all back.
  small.Leave(parts_->now_us(), StreamEnd::kByServer);
  EXPECT_EQ(Statistics().in_flight, 0u);
}

TEST_F(MergedMembersTest, StreamsEndWithTheirGroup) {
  Make(3);
  TestReader member = parts_->Join(PartsHarness::kGroup, 10);
  EXPECT_FALSE(Read(&member).closed);
  ASSERT_TRUE(InlineStatus([&](auto done) {
                parts_->store().DeleteGroup(PartsHarness::kGroupName,
                                            std::move(done));
              }).ok());
  EXPECT_EQ(member.TakeWakes(), 1);
  EXPECT_TRUE(Read(&member).closed);
  EXPECT_EQ(ReasonOf(member->WhyClosed()), Reason::kGroupNotFound);
}

}  // namespace
}  // namespace timecache::server
