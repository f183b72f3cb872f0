// timecachectl watch, against a stand-in for the server.
#include <signal.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CliWatchTest : public CliTest {};

TEST_F(CliWatchTest, PrintsEventsUntilTheWatermark) {
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 30),
                                  MakeBatch("default", "a\n", 40, 41),
                                  MakeBatch("default", "", 0, 50)},
                     .hang = true});
  const test::Exit result =
      Run({"watch", "--from-earliest", "--until-watermark", "50"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "1970-01-01T00:00:40.000Z\texpired\t+1s\ta\\x0a\tvalue of "
            "a\\x0a\n");
  EXPECT_EQ(service_.Requests<v1::WatchExpiredRequest>().at(0).start(),
            v1::WATCH_START_EARLIEST);
}

TEST_F(CliWatchTest, StopsAfterCountOfSeveralNamespaces) {
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 30), MakeBatch("a", "one", 40, 41),
                    MakeBatch("b", "two", 40, 41)},
       .hang = true});
  test::ChildProcess process(Argv({"watch", "-n", "a", "-n", "b", "--json",
                                   "--count", "2", "--watermarks"}));
  EXPECT_EQ(json::parse(process.ReadLine()),
            json({{"type", "watermark"},
                  {"namespace", "a"},
                  {"watermark", "1970-01-01T00:00:30Z"}}));
  const json event = json::parse(process.ReadLine());
  EXPECT_EQ(event["type"], "expired");
  EXPECT_EQ(event["cause"], "expired");
  EXPECT_EQ(event["key"], "one");
  EXPECT_EQ(event["late_ms"], 1000);
  process.ReadLine();  // A watermark.
  EXPECT_EQ(json::parse(process.ReadLine())["namespace"], "b");
  EXPECT_EQ(process.Wait().code, 0);
}

TEST_F(CliWatchTest, TellsWhatIsLostAndReconnects) {
  v1::WatchExpiredResponse lost = MakeBatch("default", "", 0, 40);
  lost.set_lost(7);
  lost.set_resume_token("token");
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 30), lost}});
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 50)}, .hang = true});
  const test::Exit result =
      Run({"watch", "--json", "--until-watermark", "1970-01-01T00:00:50Z"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "{\"type\":\"lost\",\"namespace\":\"default\",\"lost\":7}\n"
            "{\"type\":\"reconnected\",\"namespace\":\"default\"}\n");
  EXPECT_THAT(result.err, HasSubstr("7 events lost"));
  EXPECT_THAT(result.err, HasSubstr("the server stopped; trying again"));
  EXPECT_THAT(result.err, HasSubstr("default: reconnected"));
  EXPECT_EQ(service_.Requests<v1::WatchExpiredRequest>().at(1).resume_tokens(0),
            "token");
}

TEST_F(CliWatchTest, LeadTimeTellsWhatIsGoingToDie) {
  v1::WatchExpiredResponse batch = MakeBatch("default", "key", 70, 40);
  batch.mutable_events(0)->set_cause(v1::EXPIRY_CAUSE_EXPIRING);
  for (int i = 0; i < 2; ++i) {
    service_.AddWatch({.messages = {batch}, .hang = true});
  }
  const test::Exit text =
      Run({"watch", "--lead-time", "30s", "--count", "1", "--keys-only"});
  EXPECT_EQ(text.out, "1970-01-01T00:01:10.000Z\texpiring\t-30s\tkey\n");
  EXPECT_EQ(
      service_.Requests<v1::WatchExpiringRequest>().at(0).lead_time().seconds(),
      30);
  EXPECT_TRUE(service_.Requests<v1::WatchExpiringRequest>().at(0).keys_only());
  const json event = RunJson({"watch", "--lead-time", "30s", "--count", "1"});
  EXPECT_EQ(event["type"], "expiring");
  EXPECT_EQ(event["left_ms"], 30'000);
  EXPECT_EQ(event.count("late_ms"), 0u);
}

TEST_F(CliWatchTest, ChangesArePrintedAsTheyCome) {
  for (int i = 0; i < 2; ++i) {
    service_.AddWatch(
        {.messages = {MakeBatch("default", "key", 70, 71)}, .hang = true});
  }
  const test::Exit text = Run({"watch", "--changes", "--count", "1"});
  EXPECT_THAT(text.out, HasSubstr("1970-01-01T00:01:10.000Z\tput\tkey\t"));
  const json change = RunJson({"watch", "--changes", "--count", "1"});
  EXPECT_EQ(change["type"], "change");
  EXPECT_EQ(change["kind"], "put");
  EXPECT_EQ(change["namespace"], "default");
  EXPECT_EQ(change["key"], "key");
  EXPECT_EQ(change.count("deadline"), 0u);
  EXPECT_EQ(service_.Requests<v1::WatchChangesRequest>().size(), 2u);
}

TEST_F(CliWatchTest, FailOnLossEndsWithAnError) {
  service_.AddWatch({.end = MakeError(grpc::StatusCode::OUT_OF_RANGE,
                                      "no longer retains 7 events",
                                      v1::RESUME_POINT_TRIMMED)});
  const test::Exit result = Run({"watch", "--fail-on-loss"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("no longer retains 7 events"));
  EXPECT_TRUE(
      service_.Requests<v1::WatchExpiredRequest>().at(0).fail_on_loss());
}

TEST_F(CliWatchTest, FlagsThatDoNotGoTogether) {
  const std::vector<std::vector<std::string>> cases = {
      {"--lead-time", "1s", "--from-earliest"},
      {"--lead-time", "1s", "--resume-file", "f"},
      {"--lead-time", "1s", "--fail-on-loss"},
      {"--lead-time", "1s", "--group", "g"},
      {"--changes", "--lead-time", "1s"},
      {"--changes", "--group", "g"},
      {"--group", "g", "--prefix", "p"},
      {"--group", "g", "--resume-file", "f"},
      {"--group", "g", "--fail-on-loss"},
      {"--exec", "true"},
      {"--max-in-flight", "1"},
      {"--group", "g", "--jobs", "2"},
      {"--group", "g", "--retry-delay", "2s"},
      {"--group", "g", "--put-back-exit", "75"},
      {"--group", "g", "--exec", "true", "--put-back-ttl", "2s"},
      {"--group", "g", "--exec", "true", "--put-back-exit", "0"},
      {"--group", "g", "--exec", "true", "--put-back-exit", "256"},
      {"--group", "g", "--exec", "true", "--jobs", "0"},
      {"--group", "g", "--exec", "true", "--count", "1"},
      {"--group", "g", "--exec", "true", "-n", "a", "-n", "b"},
      {"a", "b", "--group", "g", "--exec", "true"},
      {"--group", "g", "--exec", ""},
      {"--group", ""},
      {"--resume-file", ""}};
  for (std::vector<std::string> arguments : cases) {
    arguments.insert(arguments.begin(), "watch");
    const test::Exit result = Run(arguments);
    EXPECT_EQ(result.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_NE(result.err, "") << ::testing::PrintToString(arguments);
  }
  EXPECT_TRUE(service_.Requests<v1::WatchExpiredRequest>().empty());
  EXPECT_TRUE(service_.Requests<v1::ConsumeExpiredRequest>().empty());
  EXPECT_TRUE(service_.Requests<v1::WatchExpiringRequest>().empty());
}

TEST_F(CliWatchTest, EndsCleanlyOnCtrlC) {
  for (const int signal : {SIGINT, SIGTERM}) {
    service_.AddWatch(
        {.messages = {MakeBatch("default", "key", 40, 41)}, .hang = true});
    test::ChildProcess process(Argv({"watch", "--keys-only"}));
    EXPECT_EQ(process.ReadLine(),
              "1970-01-01T00:00:40.000Z\texpired\t+1s\tkey");
    process.Signal(signal);
    const test::Exit result = process.Wait();
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(CliWatchTest, EndsQuietlyWhenNobodyReads) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "key", 40, 41)}, .hang = true});
  test::ChildProcess process(Argv({"watch"}));
  EXPECT_NE(process.ReadLine(), "");
  process.CloseOutput();
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace timecache
