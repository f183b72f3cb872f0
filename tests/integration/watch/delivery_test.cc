// Events over real connections that break: what each watcher is told, what a
// group settles, and what a watcher that stands costs the others.
//
// TIMECACHED_MODEL_SEED=n takes another run than the default one.
#include <malloc.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/watch/delivery_storm.h"
#include "tests/integration/watch/delivery_stream.h"
#include "tests/integration/watch/delivery_worker.h"
#include "tests/support/effort.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

// Under a sanitizer everything takes five to ten times as long.
constexpr int kRounds = kSanitized ? 100 : 1'000;

uint64_t Seed() {
  const char* const text = std::getenv("TIMECACHED_MODEL_SEED");
  uint64_t seed = 20111204;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seed)) << text;
  }
  std::cout << "seed " << seed << "\n";
  return seed;
}

TEST(DeliveryTest, WatchersThatBreakAndResumeAreToldOrCountEveryEventOnce) {
  constexpr int kWatchers = 20;
  constexpr int kPerRound = 1'000;
  // Some 90 rounds, or 10: who is away for longer has lost events.
  constexpr int64_t kRetentionBytes = (kRounds >= 1'000 ? 8 : 1) << 20;
  const uint64_t seed = Seed();
  TestServer server;
  DeliveryStorm storm(&server, kRounds, kPerRound, kRetentionBytes);
  std::vector<std::unique_ptr<DeliveryStream>> streams;
  for (int i = 0; i < kWatchers; ++i) {
    streams.push_back(std::make_unique<DeliveryStream>(
        &storm, server.NewChannel(), i, seed + static_cast<uint64_t>(i)));
  }
  std::vector<std::thread> threads;
  for (auto& stream : streams) {
    threads.emplace_back([&stream] { stream->Run(); });
  }
  storm.Run();
  for (std::thread& thread : threads) thread.join();
  int64_t resumes = 0;
  int64_t lost = 0;
  for (const auto& stream : streams) {
    EXPECT_EQ(stream->delivered() + stream->lost(), storm.entries());
    resumes += stream->resumes();
    lost += stream->lost();
  }
  std::cout << storm.entries() << " entries, " << resumes << " resumes, "
            << lost << " events lost to " << kWatchers << " watchers\n";
  EXPECT_GT(resumes, kWatchers);
  EXPECT_GT(lost, 0);
}

TEST(DeliveryTest, AGroupWhoseMembersAreKilledSettlesEveryEventOnce) {
  constexpr size_t kWorkers = 5;
  constexpr int kKeys = 1'000;
  constexpr int kGroupRounds = kRounds / 4;
  constexpr int64_t kEvents = int64_t{kGroupRounds} * kKeys;
  const uint64_t seed = Seed();
  Dice dice(seed);
  TestServer server;
  server.Create("jobs", "ttl { seconds: 1 } num_buckets: 2");
  // No time-outs: an event comes again only from a member that is gone, or
  // NACKs.
  Must(Call(server.groups(), &v1::GroupService::Stub::CreateGroup,
            Proto<v1::CreateGroupRequest>(
                "namespace: 'jobs' name: 'workers' "
                "options { ack_timeout { seconds: 604800 } }")));
  DeliveryTally tally;
  std::vector<std::unique_ptr<DeliveryWorker>> workers;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<DeliveryWorker>(
        &tally, server.NewChannel(), "jobs", "workers", seed + i));
    threads.emplace_back([worker = workers.back().get()] { worker->Run(); });
  }
  for (int round = 0; round < kGroupRounds; ++round) {
    server.Fill(kKeys, "k", absl::StrCat(round), "jobs");
    server.AdvanceBy(4 * server::kMicrosPerSecond);
    if (dice.Chance(500)) workers[dice.Index(kWorkers)]->Kill();
  }
  // What some hold and do not settle comes to those that do.
  for (auto& worker : workers) worker->Hurry();
  for (auto& worker : workers) worker->Kill();
  tally.AwaitSettled(
      kEvents, [&server] { server.AdvanceBy(60 * server::kMicrosPerSecond); });
  for (auto& worker : workers) worker->Stop();
  for (std::thread& thread : threads) thread.join();

  const v1::ListGroupsResponse groups =
      Must(Call(server.groups(), &v1::GroupService::Stub::ListGroups,
                Proto<v1::ListGroupsRequest>(
                    "namespace: 'jobs' include_statistics: true")));
  ASSERT_EQ(groups.groups_size(), 1);
  const v1::GroupStatistics& statistics = groups.groups(0).statistics();
  std::cout << statistics.ShortDebugString() << "\n";
  constexpr auto kAll = static_cast<uint64_t>(kEvents);
  EXPECT_EQ(statistics.acked(), kAll);
  EXPECT_EQ(statistics.delivered() - statistics.redelivered(), kAll);
  EXPECT_EQ(statistics.nacked(), static_cast<uint64_t>(tally.nacked()));
  EXPECT_GE(statistics.redelivered(),
            static_cast<uint64_t>(tally.redelivered()));
  EXPECT_GT(tally.redelivered(), tally.nacked() / 2);
  EXPECT_EQ(statistics.backlog(), 0u);
  EXPECT_EQ(statistics.in_flight(), 0u);
  EXPECT_EQ(statistics.timed_out(), 0u);
  EXPECT_EQ(statistics.lost(), 0u);
  for (const auto& worker : workers) EXPECT_GT(worker->lives(), 1);
}

int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

TEST(DeliveryTest, AWatcherThatStandsCostsTheOthersNothing) {
  constexpr int kOthers = 99;
  constexpr int kRoundsWithOthers = kRounds / 50;
  // Alone, the standing one shows what is kept for it.
  constexpr int kRoundsAlone = 200;
  // Little less than what is retained: who reads loses nothing.
  constexpr int kPerRound = 20;
  constexpr int kValueBytes = 50'000;
  constexpr int64_t kRoundBytes = int64_t{kPerRound} * kValueBytes;
  constexpr int64_t kRetentionBytes = 1 << 20;
  // One more batch than the limit says: the newest always stays.
  constexpr int64_t kMostBytes =
      kRetentionBytes + int64_t{server::kMaxEventBatchBytes} + (64 << 10);
  TestServer server;
  server.Create("small",
                absl::StrCat("event_retention_bytes: ", kRetentionBytes));
  int rounds = 0;
  const auto pass_round = [&] {
    const std::string prefix = absl::StrCat(++rounds, "/");
    server.Fill(kPerRound - 1, prefix, std::string(kValueBytes, 'v'), "small");
    EXPECT_NE(server.Put(prefix, "put", 0, "small"), 0u);
    server.AdvanceBy(2 * kTtlUs);
    const v1::NamespaceStatistics statistics =
        server.Describe("small").statistics();
    EXPECT_LE(statistics.events_retained_bytes(), kMostBytes);
  };
  // A connection of its own: it is full after a while.
  const auto stub = v1::TimeCacheService::NewStub(server.NewChannel());
  WatchReader standing(stub.get(), "small");
  ASSERT_TRUE(standing.Next());
  {
    std::vector<std::unique_ptr<WatchReader>> others;
    for (int i = 0; i < kOthers; ++i) {
      others.push_back(std::make_unique<WatchReader>(server.data(), "small"));
      ASSERT_TRUE(others.back()->Next());
    }
    for (int round = 0; round < kRoundsWithOthers; ++round) {
      pass_round();
      for (auto& other : others) {
        ASSERT_EQ(other->ReadUpTo(server.now_us(), "small").size(),
                  static_cast<size_t>(kPerRound));
      }
    }
    EXPECT_EQ(server.Describe("small").statistics().watchers(),
              static_cast<uint64_t>(kOthers + 1));
    for (const auto& other : others) EXPECT_EQ(other->lost(), 0u);
  }
  const int64_t heap_bytes = HeapBytes();
  for (int round = 0; round < kRoundsAlone; ++round) pass_round();
  EXPECT_LT(HeapBytes() - heap_bytes, kRoundsAlone * kRoundBytes / 4);

  const auto events = standing.ReadUpTo(server.now_us(), "small");
  EXPECT_GT(events.size(), 0u);
  EXPECT_GT(standing.lost(), 0u);
  EXPECT_EQ(events.size() + standing.lost(),
            static_cast<size_t>(rounds) * kPerRound);
  std::set<uint64_t> versions;
  for (const auto& event : events) {
    EXPECT_TRUE(versions.insert(event.version()).second);
  }
}

}  // namespace
}  // namespace timecache::test
