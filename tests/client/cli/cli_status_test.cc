// status and top: what they show of two samples, and as a process.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/ui/server_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using cli::ServerSample;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

// A server after `seconds`, of two namespaces that count `puts` and `hits`.
ServerSample Sample(int seconds, uint64_t puts, uint64_t hits) {
  ServerSample sample;
  sample.server = {.version = "1.2.3",
                   .start_time = kStart,
                   .now = kStart + absl::Seconds(seconds),
                   .entries = LimitUse{.used = 1234},
                   .watchers = LimitUse{.used = 7, .max = 10'000}};
  for (const char* name : {"a", "b"}) {
    NamespaceStatistics statistics;
    statistics.lateness_p99 = absl::Milliseconds(2);
    sample.namespaces.push_back({.name = name,
                                 .options = {.ttl = absl::Seconds(30)},
                                 .statistics = statistics,
                                 .bucket_width = absl::Milliseconds(300)});
  }
  NamespaceStatistics& statistics = *sample.namespaces[1].statistics;
  statistics.puts = puts;
  statistics.hits = hits;
  statistics.expired = puts / 2;
  return sample;
}

TEST(ServerTextTest, TellsAgeLimitsAndLateness) {
  const std::string text = ServerText("host:1", Sample(3700, 0, 0), nullptr);
  EXPECT_THAT(
      text, AllOf(HasSubstr("timecached 1.2.3 at host:1: serving, up 1h1m40s"),
                  HasSubstr("watchers 7 of 10,000"),
                  HasSubstr("entries 1,234 "), HasSubstr("2ms/300ms"),
                  Not(HasSubstr("PUT/S")), Not(HasSubstr("GROUP"))));
}

TEST(ServerTextTest, LimitsThatAreNotToldAreNoZeros) {
  ServerSample sample = Sample(100, 0, 0);
  EXPECT_EQ(ServerJson("host:1", sample, nullptr)["limits"],
            cli::Json({{"entries", {{"used", 1234}, {"max", 0}}},
                       {"watchers", {{"used", 7}, {"max", 10'000}}}}));
  EXPECT_THAT(ServerText("host:1", sample, nullptr),
              Not(HasSubstr("namespaces 0")));
  sample.server.entries.reset();
  sample.server.watchers.reset();
  EXPECT_EQ(ServerJson("host:1", sample, nullptr)["limits"], nullptr);
  const std::string text = ServerText("host:1", sample, nullptr);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_EQ(lines[1],
            "limits: only shown to callers that may read all namespaces");
}

// A sample with a journal that has made so many commits of two appends and
// 1,000 bytes, in 2 ms each.
ServerSample WithJournal(int seconds, uint64_t commits) {
  ServerSample sample = Sample(seconds, 0, 0);
  sample.namespaces[1].options.durability = Durability::kSync;
  sample.server.journal = JournalStatus{
      .directory = "/var/lib/journal",
      .disk_bytes = 5 << 20,
      .waiting_bytes = {.used = 2048, .max = 64 << 20},
      .commits = commits,
      .appends = 2 * commits,
      .written_bytes = 1000 * commits,
      .commit_time = absl::Milliseconds(2) * static_cast<int64_t>(commits),
      .commit_p99 = absl::Microseconds(4096),
      .checkpoints = 3,
      .checkpoint_state = CheckpointState::kIdle};
  return sample;
}

TEST(ServerTextTest, AServerWithoutAJournalSaysSo) {
  ServerSample sample = Sample(100, 0, 0);
  EXPECT_THAT(
      ServerText("host:1", sample, nullptr),
      AllOf(HasSubstr("up 1m40s, memory only\n"), Not(HasSubstr("journal "))));
  EXPECT_EQ(ServerJson("host:1", sample, nullptr)["journal"], nullptr);
  // It may have one that it does not show to this caller.
  sample.server.entries.reset();
  sample.server.watchers.reset();
  EXPECT_THAT(ServerText("host:1", sample, nullptr),
              Not(HasSubstr("memory only")));
}

TEST(ServerTextTest, TheJournalTellsOfItsCommits) {
  const ServerSample sample = WithJournal(100, 1500);
  EXPECT_THAT(
      ServerText("host:1", sample, nullptr),
      AllOf(HasSubstr(
                "journal /var/lib/journal   5 MiB   waiting 2 KiB of 64 MiB"),
            HasSubstr("commits 1,500   each 2ms, 99 % below 4.096ms"),
            HasSubstr("groups of 2.0 appends, 1000 B   checkpoints 3\n"),
            Not(HasSubstr("memory only")), Not(HasSubstr("FULL")),
            HasSubstr("DURABILITY"), HasSubstr(" sync")));
  const cli::Json json = ServerJson("host:1", sample, nullptr)["journal"];
  EXPECT_EQ(json["directory"], "/var/lib/journal");
  EXPECT_EQ(json["waiting_bytes"]["used"], 2048);
  EXPECT_EQ(json["disk_full"], false);
  EXPECT_EQ(json["group_appends"], 2.0);
  EXPECT_EQ(json["commit_ms"], 2.0);
  EXPECT_EQ(json["checkpoint_state"], "idle");
  EXPECT_FALSE(json.contains("rates"));
}

TEST(ServerTextTest, ACommitIsThatOfTheTimeBetween) {
  const ServerSample before = WithJournal(10, 1500);
  ServerSample now = WithJournal(20, 2500);
  now.server.journal->commit_time =
      before.server.journal->commit_time + absl::Seconds(5);
  now.server.journal->disk_full = true;
  now.server.journal->checkpoint_state = CheckpointState::kWaiting;
  EXPECT_THAT(ServerText("host:1", now, &before),
              AllOf(HasSubstr("DISK FULL: changes are refused"),
                    HasSubstr("commits 100/s, 97.66 KiB/s   each 5ms"),
                    HasSubstr("checkpoints 3, one waits for retained events")));
  const cli::Json json = ServerJson("host:1", now, &before)["journal"];
  EXPECT_EQ(json["rates"]["commits"], 100.0);
  EXPECT_EQ(json["commit_ms"], 5.0);
  EXPECT_EQ(json["checkpoint_state"], "waiting");
  // Of a server that was started again in between: since its start.
  now.server.start_time += absl::Seconds(15);
  EXPECT_FALSE(JournalRatesOf(&before, now).commits_per_second);
  EXPECT_EQ(JournalRatesOf(&before, now).group_bytes, 1000);
}

TEST(ServerTextTest, RatesAreOfTheTimeBetweenAndTheBusiestComesFirst) {
  const ServerSample before = Sample(10, 1000, 50);
  const ServerSample now = Sample(20, 31'000, 50);
  const std::string text = ServerText("host:1", now, &before);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_THAT(lines[3], HasSubstr("PUT/S"));
  EXPECT_THAT(lines[4], AllOf(HasSubstr("b "), HasSubstr("3,000"),
                              HasSubstr(" 0.0 "), HasSubstr("1,500")));
  EXPECT_THAT(lines[5], HasSubstr("a "));
  const cli::Json json = ServerJson("host:1", now, &before);
  EXPECT_EQ(json["namespaces"][1]["rates"]["puts"], 3000.0);
  EXPECT_EQ(json["namespaces"][0]["rates"]["puts"], 0.0);
}

TEST(ServerTextTest, ACounterThatWentBackIsNoRate) {
  const ServerSample before = Sample(10, 1000, 1000);
  const ServerSample now = Sample(20, 5, 5);
  EXPECT_EQ(RatesOf(before, now, now.namespaces[1]).operations(), 0);
}

TEST(ServerTextTest, TheHottestKeysComeLastWhereThereIsRoom) {
  ServerSample sample = Sample(100, 0, 0);
  EXPECT_EQ(ServerJson("host:1", sample, nullptr)["hot"], cli::Json());
  sample.hot_namespace = "b";
  sample.hot.keys = {{.key = "first\n", .reads_per_second = 12'345},
                     {.key = "second", .writes_per_second = 1.5}};
  EXPECT_THAT(ServerText("host:1", sample, nullptr),
              AllOf(HasSubstr("\n\nKEY OF b "), HasSubstr("first\\x0a "),
                    HasSubstr("12,345"), HasSubstr("1.5")));
  EXPECT_THAT(ServerText("host:1", sample, nullptr, /*rows=*/9),
              Not(HasSubstr("KEY OF")));
  EXPECT_EQ(ServerJson("host:1", sample, nullptr)["hot"]["keys"].size(), 2u);
}

TEST(ServerTextTest, GroupsTellHowFarTheyAreBehind) {
  ServerSample sample = Sample(100, 0, 0);
  Group group;
  group.name = "g";
  group.ns = "a";
  group.statistics = GroupStatistics{
      .backlog = 42, .oldest_unsettled = kStart + absl::Seconds(10)};
  sample.groups.push_back(group);
  EXPECT_THAT(ServerText("host:1", sample, nullptr),
              AllOf(HasSubstr("LAG"), HasSubstr("a/g"), HasSubstr("1m30s"),
                    HasSubstr("42")));
  EXPECT_EQ(ServerJson("host:1", sample, nullptr)["groups"][0]["lag_ms"],
            90'000.0);
}

TEST(ServerTextTest, FitsIntoTheRowsThatThereAre) {
  ServerSample sample = Sample(100, 0, 0);
  for (int i = 0; i < 50; ++i) {
    Namespace ns = sample.namespaces[0];
    ns.name = absl::StrCat("more", i);
    sample.namespaces.push_back(ns);
    Group group;
    group.name = absl::StrCat("g", i);
    group.ns = "a";
    sample.groups.push_back(group);
  }
  for (const int rows : {10, 24, 60}) {
    const std::string text = ServerText("host:1", sample, nullptr, rows);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    EXPECT_LE(lines.size(), static_cast<size_t>(rows));
    EXPECT_THAT(text, HasSubstr(" more"));
  }
}

TEST(ServerTextTest, RatesAreSeenOnANarrowScreen) {
  const ServerSample before = Sample(10, 1000, 50);
  ServerSample now = Sample(20, 31'000, 50);
  now.server.entries->max = 1'000'000'000;
  now.server.memory_bytes = LimitUse{.max = 4ull << 30};
  now.server.connections = LimitUse{.max = 10'000};
  for (const std::string& name : {std::string("short"), std::string(63, 'n')}) {
    now.namespaces[0].name = name;
    for (const int columns : {60, 80, 132}) {
      const std::string text =
          ServerText("host:1", now, &before, cli::kAllRows, columns);
      for (const absl::string_view line : absl::StrSplit(text, '\n')) {
        EXPECT_LE(line.size(), static_cast<size_t>(columns)) << line;
      }
      for (const char* rate : {"PUT/S", "HIT/S", "MISS/S", "DIED/S"}) {
        EXPECT_THAT(text, HasSubstr(rate)) << columns;
      }
      EXPECT_THAT(text, AllOf(HasSubstr("3,000"), HasSubstr("connections")));
    }
  }
  EXPECT_THAT(ServerText("host:1", now, &before), HasSubstr("TTL"));
}

class StatusTest : public CliTest {};

TEST_F(StatusTest, ShowsTheServerAndItsNamespaces) {
  ASSERT_TRUE(client_.CreateNamespace("sessions").ok());
  const test::Exit result = Run({"status"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("timecached fake at "),
                                HasSubstr("NAMESPACE"), HasSubstr("sessions")));
  const nlohmann::json json = RunJson({"status", "--interval", "100ms"});
  EXPECT_EQ(json["version"], "fake");
  EXPECT_EQ(json["limits"]["namespaces"]["used"], 2);
  EXPECT_EQ(json["serving"], true);
  EXPECT_EQ(json["namespaces"][1]["name"], "sessions");
  EXPECT_EQ(json["journal"], nullptr);
  EXPECT_EQ(json["namespaces"][1]["rates"]["puts"], 0.0);
}

TEST_F(StatusTest, TopPrintsBlocksWhereThereIsNoTerminal) {
  const test::Exit result = Run({"top", "--count", "2", "--interval", "100ms"});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::vector<std::string> blocks = absl::StrSplit(
      result.out, absl::ByString("timecached fake at "), absl::SkipEmpty());
  EXPECT_THAT(blocks, SizeIs(2));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace timecache
