// load, and dump, as processes, against a stand-in for the server.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using namespace std::string_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using CliLoadTest = CliTest;

TEST_F(CliLoadTest, TakesTsv) {
  const test::Exit result = Run({"load", "--ttl", "60s"}, "a\t1\n\nb\t2\na\t3");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("loaded 3 entries in "));
  EXPECT_EQ(client_.Get("a").value()->value, "3");
  EXPECT_EQ(client_.Get("b").value()->value, "2");
  EXPECT_EQ(service_.Last<v1::PutRequest>().ttl().seconds(), 60);
}

TEST_F(CliLoadTest, TakesJsonLinesFromAFile) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/timecachectl_load.", getpid());
  std::ofstream(path) << R"({"key":"a","value":"1","ttl":"10s"})"
                      << "\n"
                      << R"({"key_hex":"ff","value_base64":"AA=="})"
                      << "\n";
  const json summary = RunJson({"load", path});
  unlink(path.c_str());
  EXPECT_EQ(summary["loaded"], 2);
  EXPECT_EQ(summary["bad_lines"], 0);
  EXPECT_EQ(client_.Get("\xff").value()->value, "\0"s);
}

TEST_F(CliLoadTest, ReportsBadLinesAndStoresTheRest) {
  const std::string input = "a\t1\nno tab\nb\t2\n";
  test::Exit result = Run({"load"}, input);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("line 2: no tab"));
  EXPECT_THAT(result.out, HasSubstr("1 bad lines"));
  EXPECT_EQ(client_.Size()->entries, 2u);
  EXPECT_EQ(Run({"load", "--skip-bad"}, input).code, 0);
}

TEST_F(CliLoadTest, CountsWhatTheServerFindsMalformed) {
  const test::Exit result =
      Run({"load"}, R"({"key":"a","value":"1","ttl":"0s"})"s + "\n" +
                        R"({"key":"b","value":"1"})" + "\n");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("line 1: ttl"));
  EXPECT_EQ(client_.Size()->entries, 1u);
}

TEST_F(CliLoadTest, GivesUpAtAnErrorThatIsNotTheLines) {
  const test::Exit result = Run({"load", "-n", "none"}, "a\t1\nb\t2\n");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("timecachectl ns create none"));
  EXPECT_EQ(Run({"load", "/no/such/file"}).code, 2);
}

TEST_F(CliLoadTest, StopsAtTheStreamsEndAndNamesTheFirstLineNotStored) {
  service_.SetPipeline({.answers_max = 1,
                        .end = MakeError(grpc::StatusCode::UNAVAILABLE,
                                         "draining", v1::DRAINING)});
  const test::Exit result = Run({"load"}, "a\t1\nb\t2\nc\t3\n");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, HasSubstr("loaded 1 entries"));
  EXPECT_THAT(result.out, HasSubstr("then gave up"));
  EXPECT_THAT(result.err, HasSubstr("line 2 was not stored"));
  EXPECT_THAT(result.err, HasSubstr("draining"));
}

TEST_F(CliLoadTest, KeepsTheOrderOfOneKeyWhateverIsInFlight) {
  std::string input;
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&input, "key\t", i, "\n");
  for (const std::string in_flight : {"1", "2", "100", "65536"}) {
    const test::Exit result = Run({"load", "--in-flight", in_flight}, input);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(client_.Get("key").value()->value, "2999");
  }
}

TEST_F(CliLoadTest, ALoneBackslashIsABadLineUnlessTheFormatIsRaw) {
  const std::string input = "path\tC:\\temp\n";
  const test::Exit result = Run({"load"}, input);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("line 1: value: byte 3: a backslash"));
  EXPECT_EQ(Run({"load", "--format", "raw"}, input).code, 0);
  EXPECT_EQ(client_.Get("path").value()->value, "C:\\temp");
}

TEST_F(CliLoadTest, ADumpKeepsDeadlinesAndLeavesOutWhatHasPassed) {
  ASSERT_TRUE(client_.Put("short", "s", {.ttl = absl::Seconds(10)}).ok());
  ASSERT_TRUE(client_.Put("\xff", "\0"s, {.ttl = absl::Hours(1)}).ok());
  ASSERT_TRUE(client_.CreateNamespace("copy").ok());
  const test::Exit dumped = Run({"dump"});
  EXPECT_EQ(dumped.code, 0) << dumped.err;
  const Client copy = client_.In("copy");
  const absl::Time deadline = absl::UnixEpoch() + absl::Hours(1);

  service_.AdvanceClock(absl::Seconds(20));
  const json summary = json::parse(
      Run({"load", "-n", "copy", "--json"}, dumped.out).out, nullptr, false);
  EXPECT_EQ(summary["loaded"], 1);
  EXPECT_EQ(summary["expired"], 1);
  EXPECT_EQ(summary["complete"], true);
  EXPECT_EQ(copy.Get("\xff").value()->value, "\0"s);
  EXPECT_EQ(copy.Get("\xff").value()->deadline, deadline);

  EXPECT_EQ(
      Run({"load", "-n", "copy", "--deadlines", "pause"}, dumped.out).code, 0);
  EXPECT_EQ(copy.Get("\xff").value()->deadline, deadline + absl::Seconds(20));
  EXPECT_EQ(copy.Get("short").value()->deadline,
            absl::UnixEpoch() + absl::Seconds(30));

  EXPECT_EQ(Run({"load", "-n", "copy", "--deadlines", "ignore", "--ttl", "5s"},
                dumped.out)
                .code,
            0);
  EXPECT_EQ(copy.Get("\xff").value()->deadline, deadline + absl::Seconds(20));
}

TEST_F(CliLoadTest, WhatIsLoadedIsRenewedAsWhatWasDumped) {
  ASSERT_TRUE(client_.Put("own", "v", {.ttl = absl::Minutes(10)}).ok());
  ASSERT_TRUE(client_.Put("other", "v").ok());
  service_.AdvanceClock(absl::Seconds(5));
  ASSERT_TRUE(client_.Touch("own").ok());
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(5);
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/timecachectl_own.", getpid());
  ASSERT_EQ(Run({"dump", path, "--format", "binary"}).code, 0);
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"json", Run({"dump"}).out},
      {"scan", Run({"scan", "--json"}).out},
      {"file", ""}};
  for (const auto& [ns, input] : inputs) {
    SCOPED_TRACE(ns);
    ASSERT_TRUE(client_.CreateNamespace(ns).ok());
    std::vector<std::string> load = {"load", "-n", ns};
    if (input.empty()) load.push_back(path);
    const test::Exit loaded = Run(load, input);
    EXPECT_EQ(loaded.code, 0) << loaded.err;
    const Client copy = client_.In(ns);
    EXPECT_EQ(copy.Get("own").value()->deadline, now + absl::Minutes(10));
    EXPECT_EQ(copy.Get("own").value()->own_ttl, absl::Minutes(10));
    EXPECT_EQ(copy.Get("other").value()->deadline,
              absl::UnixEpoch() + kFakeTtl);
    EXPECT_EQ(copy.Get("other").value()->own_ttl, std::nullopt);
  }
  unlink(path.c_str());
}

// As an earlier version wrote it.
TEST_F(CliLoadTest, AnEntryOfAnOldDumpHasNoOwnTtl) {
  const std::string dump =
      R"({"dump":{"version":1,"namespace":"a","time":"1970-01-01T00:00:00Z"}})"
      "\n"
      R"({"deadline":"1970-01-01T02:00:00Z","key":"k","value":"v"})"
      "\n"
      R"({"dump_end":{"entries":1}})"
      "\n";
  const test::Exit result = Run({"load"}, dump);
  EXPECT_EQ(result.code, 0) << result.err;
  const Entry entry = *client_.Get("k").value();
  EXPECT_EQ(entry.deadline, absl::UnixEpoch() + absl::Hours(2));
  EXPECT_EQ(entry.own_ttl, std::nullopt);
}

TEST_F(CliLoadTest, ADumpThatIsCutOffIsSaidToBe) {
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(client_.Put(key, "v").ok());
  }
  const std::string dump = Run({"dump"}).out;
  const size_t last = dump.rfind('\n', dump.size() - 2) + 1;
  const test::Exit cut = Run({"load"}, dump.substr(0, last));
  EXPECT_EQ(cut.code, 2);
  EXPECT_THAT(cut.out, StartsWith("loaded 3 entries"));
  EXPECT_THAT(cut.err, HasSubstr("the dump is cut off"));
  const size_t before = dump.rfind('\n', last - 2) + 1;
  const test::Exit short_of_one =
      Run({"load"}, dump.substr(0, before) + dump.substr(last));
  EXPECT_EQ(short_of_one.code, 2);
  EXPECT_THAT(short_of_one.err, HasSubstr("it has 2 entries, and says 3"));
}

TEST_F(CliLoadTest, AClockBeforeTheDumpIsWarnedOf) {
  const std::string dump =
      R"({"dump":{"version":1,"namespace":"a","time":"1970-01-01T02:00:00Z"}})"
      "\n"
      R"({"dump_end":{"entries":0}})"
      "\n";
  const test::Exit result = Run({"load"}, dump);
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("clock is 2h before the time of the dump"));
  EXPECT_EQ(Run({"load", "--deadlines", "pause"}, dump).err, "");
}

TEST_F(CliLoadTest, CtrlCSaysHowFarItCame) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/timecachectl_fifo.", getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Its writing end stays open, so that no end of the input comes.
  const int fifo = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fifo, 0);
  absl::Notification third;
  service_.OnPut([&](const v1::PutRequest& request) {
    if (request.key() == "c") third.Notify();
  });
  test::ChildProcess load(Argv({"load", path}));
  const std::string lines = "a\t1\nb\t2\nc\t3\nhalf";
  ASSERT_EQ(write(fifo, lines.data(), lines.size()),
            static_cast<ssize_t>(lines.size()));
  third.WaitForNotification();
  load.Signal(SIGINT);
  const test::Exit result = load.Wait();
  close(fifo);
  unlink(path.c_str());
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.out, HasSubstr("loaded 3 entries"));
  EXPECT_THAT(result.out, HasSubstr("then was interrupted"));
  EXPECT_THAT(result.err, HasSubstr("all lines up to line 3 were loaded"));
  EXPECT_EQ(client_.Size()->entries, 3u);
}

}  // namespace
}  // namespace timecache
