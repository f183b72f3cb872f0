// timecachectl watch --group and ns groups, against a stand-in for the server.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/data/convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"
#include "tests/support/await.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache {
namespace {

using namespace std::string_literals;
using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

class CliGroupTest : public CliTest {
 protected:
  std::string Path(const std::string& name) const {
    return absl::StrCat(directory_.path(), "/", name);
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(Path(name));
    return (std::ostringstream() << file.rdbuf()).str();
  }
  std::vector<std::string> Worker(const std::string& command,
                                  std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"watch", "--group", "g", "--exec", command});
    return more;
  }
  // All settlements so far, by event.
  std::map<uint64_t, v1::Settlement> Settled() const {
    std::map<uint64_t, v1::Settlement> settled;
    for (const v1::SettleExpiredRequest& request :
         service_.Requests<v1::SettleExpiredRequest>()) {
      for (const v1::Settlement& settlement : request.settlements()) {
        settled[EventIdOf(settlement)] = settlement;
      }
    }
    return settled;
  }
  // Until so many events have been settled.
  void AwaitSettled(size_t events) const {
    test::Await([&] { return Settled().size() >= events; });
  }
  void AwaitFile(const std::string& name) const {
    test::Await([&] { return std::filesystem::exists(Path(name)); });
  }

  const server::TemporaryDirectory directory_;
};

TEST_F(CliGroupTest, PrintsEventsAndAcknowledgesThem) {
  service_.AddWatch({.messages = {MakeDelivery("default", "one", 7, 1),
                                  MakeDelivery("default", "two", 8, 3)},
                     .hang = true});
  const test::Exit result =
      Run({"watch", "--group", "g", "--count", "2", "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const json event = json::parse(result.out.substr(result.out.find('\n')));
  EXPECT_EQ(event["key"], "two");
  EXPECT_EQ(event["event_id"], 8);
  EXPECT_EQ(event["attempt"], 3);
  EXPECT_EQ(event["returns"], 0);
  const v1::ConsumeExpiredRequest request =
      service_.Requests<v1::ConsumeExpiredRequest>().at(0);
  EXPECT_EQ(request.group(), "g");
  EXPECT_EQ(request.max_in_flight(), 2u);
  const auto settled = Settled();
  ASSERT_EQ(settled.size(), 2u);
  EXPECT_EQ(settled.at(8).delivery_token(), TokenOf(8, 3));
  EXPECT_TRUE(settled.at(8).has_ack());
  EXPECT_EQ(service_.Requests<v1::SettleExpiredRequest>().at(0).group(), "g");
}

TEST_F(CliGroupTest, FetchPrintsEventsAcknowledgesThemAndReturns) {
  const test::Exit none = Run({"fetch", "--group", "g"});
  EXPECT_EQ(none.code, 1) << none.err;
  EXPECT_EQ(none.out, "");
  ASSERT_TRUE(client_.Put("one", "1").ok());
  service_.AdvanceClock(absl::Seconds(60));
  const test::Exit result =
      Run({"fetch", "default", "--group", "g", "--wait", "1s", "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const json event = json::parse(result.out);
  EXPECT_EQ(event["key"], "one");
  EXPECT_EQ(event["attempt"], 1);
  EXPECT_EQ(event.count("delivery_token"), 0u);
  const auto settled = service_.Requests<v1::SettleExpiredRequest>();
  ASSERT_EQ(settled.size(), 1u);
  ASSERT_EQ(settled[0].settlements_size(), 1);
  EXPECT_TRUE(settled[0].settlements(0).has_ack());
}

TEST_F(CliGroupTest, FetchLeavesEventsToItsCallerWhereAskedTo) {
  EXPECT_EQ(Run({"fetch", "--group", "g"}).code, 1);
  ASSERT_TRUE(client_.Put("one", "1").ok());
  service_.AdvanceClock(absl::Seconds(60));
  const test::Exit result =
      Run({"fetch", "--group", "g", "--no-ack", "--json", "--max", "1"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(json::parse(result.out)["delivery_token"], "");
  EXPECT_EQ(service_.Requests<v1::SettleExpiredRequest>().size(), 0u);
  EXPECT_EQ(service_.Last<v1::FetchExpiredRequest>().max_events(), 1u);
}

TEST_F(CliGroupTest, MembersAreListed) {
  ASSERT_TRUE(client_.CreateGroup("g").ok());
  EXPECT_EQ(RunJson({"ns", "group-members", "default", "g"}),
            json({{"namespace", "default"},
                  {"group", "g"},
                  {"members", json::array()}}));
  EXPECT_THAT(Run({"ns", "group-members", "default", "g"}).out,
              HasSubstr("PRINCIPAL"));
}

TEST_F(CliGroupTest, MovesBackToWhatWasSettled) {
  ASSERT_TRUE(client_.CreateGroup("g").ok());
  ASSERT_TRUE(client_.Put("one", "1").ok());
  service_.AdvanceClock(absl::Seconds(60));
  EXPECT_EQ(RunJson({"ns", "group-seek", "default", "g"}),
            json({{"namespace", "default"},
                  {"group", "g"},
                  {"unsettled", 1},
                  {"dropped", 0}}));
  EXPECT_EQ(Run({"ns", "group-seek", "default", "g", "--drop-unsettled"}).out,
            "moved g: 0 to deliver, 1 dropped\n");
  const test::Exit both = Run({"ns", "group-seek", "default", "g", "--earliest",
                               "--time", "2026-03-01T08:00:00Z"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--earliest"));
}

TEST_F(CliGroupTest, WhatIsNotSettledIsListed) {
  ASSERT_TRUE(client_.CreateGroup("g").ok());
  EXPECT_EQ(Run({"ns", "group-unsettled", "default", "g"}).out,
            "all is settled\n");
  ASSERT_TRUE(client_.Put("one", "1").ok());
  ASSERT_TRUE(client_.Put("two", "2").ok());
  service_.AdvanceClock(absl::Seconds(60));
  const test::Exit text =
      Run({"ns", "group-unsettled", "default", "g", "--limit", "1"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              ContainsRegex("^KEY +EVENT .*\n(one|two) .* ready +0 "));
  EXPECT_THAT(text.out, HasSubstr("(more: see --limit)"));
  const json listed = RunJson(
      {"ns", "group-unsettled", "default", "g", "--prefix", "tw", "--values"});
  EXPECT_EQ(listed["more"], false);
  ASSERT_EQ(listed["events"].size(), 1u);
  EXPECT_EQ(listed["events"][0]["key"], "two");
  EXPECT_EQ(listed["events"][0]["value"], "2");
  EXPECT_EQ(listed["events"][0]["state"], "ready");
  EXPECT_EQ(listed["events"][0]["attempt"], 0);
}

TEST_F(CliGroupTest, AnyUnsettledEventIsSettledByKeyOrNumber) {
  ASSERT_TRUE(client_.CreateGroup("g").ok());
  const std::vector<std::string> settle = {"ns", "group-settle", "default",
                                           "g"};
  const auto with = [&settle](std::vector<std::string> more) {
    more.insert(more.begin(), settle.begin(), settle.end());
    return more;
  };
  const test::Exit none = Run(with({"--key", "one", "--ack"}));
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("no such event is unsettled"));
  EXPECT_EQ(Run(with({"--ack"})).code, 2);
  EXPECT_EQ(Run(with({"--key", "one"})).code, 2);
  ASSERT_TRUE(client_.Put("one", "1").ok());
  ASSERT_TRUE(client_.Put("one-more", "1").ok());
  service_.AdvanceClock(absl::Seconds(60));
  const test::Exit acked = Run(with({"--key", "one", "--ack"}));
  EXPECT_EQ(acked.code, 0) << acked.err;
  EXPECT_THAT(acked.out, MatchesRegex("one \\(event [0-9]+\\): acked\n"));
  auto request = service_.Last<v1::SettleExpiredRequest>();
  ASSERT_EQ(request.settlements_size(), 1);
  EXPECT_TRUE(request.settlements(0).has_ack());
  const json unsettled = RunJson({"ns", "group-unsettled", "default", "g"});
  const std::string id =
      absl::StrCat(unsettled["events"].at(0).at("event_id").get<uint64_t>());
  service_.OnSettle([](const auto&, v1::SettleExpiredResponse* response) {
    response->mutable_results(0)->mutable_error()->set_code(
        grpc::StatusCode::NOT_FOUND);
    return grpc::Status::OK;
  });
  const test::Exit failed =
      Run(with({"--event", id, "--terminate", "bad data", "--json"}));
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(json::parse(failed.out)["terminated"], false);
  request = service_.Last<v1::SettleExpiredRequest>();
  EXPECT_EQ(request.settlements(0).terminate().reason(), "bad data");
}

TEST_F(CliGroupTest, WhatCountLeavesOverIsNotAcknowledged) {
  v1::WatchExpiredResponse batch = MakeDelivery("default", "one", 7, 1);
  *batch.add_events() = MakeDelivery("default", "two", 8, 1).events(0);
  service_.AddWatch({.messages = {batch}, .hang = true});
  EXPECT_EQ(Run({"watch", "--group", "g", "--count", "1"}).code, 0);
  EXPECT_EQ(Settled().count(7), 1u);
  EXPECT_EQ(Settled().count(8), 0u);
}

TEST_F(CliGroupTest, WhatCannotBeAcknowledgedIsSaid) {
  service_.AddWatch(
      {.messages = {MakeDelivery("default", "one", 7, 1)}, .hang = true});
  service_.OnSettle([](const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  });
  const test::Exit result = Run({"watch", "--group", "g", "--count", "1"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("default: 1 printed events could not be "
                                    "acknowledged"));
}

TEST_F(CliGroupTest, CommandHasTheEventInItsEnvironmentAndTheValueAsInput) {
  service_.AddWatch(
      {.messages = {MakeDelivery("default", "a key", 7, 2)}, .hang = true});
  test::ChildProcess process(Argv(Worker(absl::StrCat(
      "env | grep ^TIMECACHED_ | sort; cat; echo; touch ", Path("done")))));
  for (const char* line :
       {"TIMECACHED_ATTEMPT=2", "TIMECACHED_CAUSE=expired",
        "TIMECACHED_DEADLINE=1970-01-01T00:00:40Z",
        "TIMECACHED_DEATH_TIME=1970-01-01T00:00:40Z", "TIMECACHED_EVENT_ID=7",
        "TIMECACHED_GROUP=g", "TIMECACHED_KEY=a key",
        "TIMECACHED_NAMESPACE=default",
        "TIMECACHED_PUT_TIME=1970-01-01T00:00:10Z", "TIMECACHED_RETURNS=0",
        "TIMECACHED_VERSION=40", "value of a key"}) {
    EXPECT_EQ(process.ReadLine(), line);
  }
  AwaitSettled(1);
  process.Signal(SIGTERM);
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err,
            "timecachectl: 1 events handled: 1 done, 0 failed, 0 put back\n");
}

TEST_F(CliGroupTest, ExitCodeSaysHowAnEventIsSettled) {
  WatchScript script = {.hang = true};
  for (const uint64_t id : {1, 2, 3, 4, 5}) {
    script.messages.push_back(
        MakeDelivery("default", absl::StrCat("key", id), id, 1));
  }
  service_.AddWatch(script);
  test::ChildProcess process(Argv(Worker(
      "case $TIMECACHED_KEY in key1) exit 0;; key2) exit 75;; key3) exit 1;; "
      "key5) exit 65;; *) kill -9 $$;; esac",
      {"--put-back-exit", "75", "--put-back-ttl", "90s", "--retry-delay", "5s",
       "--terminate-exit", "65", "--jobs", "5", "--json"})));
  AwaitSettled(5);
  process.Signal(SIGINT);
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 0);
  const auto settled = Settled();
  EXPECT_TRUE(settled.at(1).has_ack());
  EXPECT_EQ(settled.at(2).put_back().ttl().seconds(), 90);
  for (const uint64_t id : {3, 4}) {
    EXPECT_EQ(settled.at(id).nack().delay().seconds(), 5);
  }
  EXPECT_EQ(settled.at(3).nack().reason(), "the command exited with 1");
  EXPECT_EQ(settled.at(5).terminate().reason(), "the command exited with 65");
  EXPECT_THAT(result.err,
              HasSubstr("default: key3, attempt 1: the command "
                        "exited with 1; delivered again after 5s, unless "
                        "this was the group's last attempt"));
  EXPECT_THAT(result.err, HasSubstr("was killed by signal 9 (Killed)"));
  const std::string last = result.err.substr(result.err.rfind('{'));
  EXPECT_EQ(json::parse(last), json({{"type", "summary"},
                                     {"handled", 5},
                                     {"acked", 1},
                                     {"failed", 2},
                                     {"put_back", 1},
                                     {"terminated", 1},
                                     {"stale", 0},
                                     {"extended", 0},
                                     {"unsettled", 0},
                                     {"lost", 0}}));
}

TEST_F(CliGroupTest, ExitCodeOfPutBackIsAFailureUnlessAskedFor) {
  service_.AddWatch(
      {.messages = {MakeDelivery("default", "one", 7, 1)}, .hang = true});
  test::ChildProcess process(Argv(Worker("exit 75")));
  AwaitSettled(1);
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait().code, 0);
  EXPECT_EQ(Settled().at(7).nack().delay().seconds(), 1);
}

TEST_F(CliGroupTest, KeyThatNoEnvironmentHoldsIsAFailureThatSaysWhatToDo) {
  for (const bool hex : {false, true}) {
    service_.AddWatch(
        {.messages = {MakeDelivery("default", "a\0b"s, hex ? 8 : 7, 1)},
         .hang = true});
    std::vector<std::string> arguments =
        Worker("test \"$TIMECACHED_KEY\" = 610062");
    if (hex) arguments.push_back("--key-hex");
    test::ChildProcess process(Argv(arguments));
    AwaitSettled(hex ? 2 : 1);
    process.Signal(SIGTERM);
    const test::Exit result = process.Wait();
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(
        result.err.find("give --key-hex or --key-base64") == std::string::npos,
        hex);
  }
  EXPECT_TRUE(Settled().at(7).has_nack());
  EXPECT_TRUE(Settled().at(8).has_ack());
}

TEST_F(CliGroupTest, InterruptLetsTheRunningCommandFinish) {
  service_.AddWatch({.messages = {MakeDelivery("default", "one", 7, 1),
                                  MakeDelivery("default", "two", 8, 1)},
                     .hang = true});
  ASSERT_EQ(std::system(absl::StrCat("mkfifo ", Path("go")).c_str()), 0);
  // The second event may begin before the signal arrives, or never.
  test::ChildProcess process(Argv(Worker(
      absl::StrCat("test $TIMECACHED_KEY = one || exit 0; touch ",
                   Path("begun"), "; read line < ", Path("go"), "; exit 0"))));
  AwaitFile("begun");
  process.Signal(SIGINT);
  // Opens once the command reads; by then the signal has been sent.
  std::ofstream(Path("go")) << "\n";
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(Settled().at(7).has_ack());
}

TEST_F(CliGroupTest, SecondInterruptKillsTheCommandAndSettlesNothing) {
  service_.AddWatch(
      {.messages = {MakeDelivery("default", "one", 7, 1)}, .hang = true});
  test::ChildProcess process(Argv(Worker("echo begun; exec sleep 1000")));
  EXPECT_EQ(process.ReadLine(), "begun");
  process.Signal(SIGINT);
  // Signals of the same number that wait are one.
  process.Signal(SIGTERM);
  // The end of its output: the command, too, is gone.
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("killing the running commands"));
  EXPECT_TRUE(service_.Requests<v1::SettleExpiredRequest>().empty());
}

TEST_F(CliGroupTest, JobsBoundWhatIsTakenFromOthers) {
  const std::pair<std::vector<std::string>, uint32_t> cases[] = {
      {{}, 2},
      {{"--jobs", "8"}, 16},
      {{"--jobs", "8", "--max-in-flight", "9"}, 9}};
  for (const auto& [flags, expected] : cases) {
    service_.AddWatch({.end = NamespaceNotFound("default")});
    const test::Exit result = Run(Worker("true", flags));
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("timecachectl ns create default"));
    EXPECT_EQ(
        service_.Requests<v1::ConsumeExpiredRequest>().back().max_in_flight(),
        expected);
  }
}

TEST_F(CliGroupTest, ABreakIsSaidOnceAndSurvived) {
  // What a stream that breaks has brought, and was not begun, is not done.
  service_.AddWatch({.messages = {MakeDelivery("default", "one", 7, 1)},
                     .before = [this](size_t message) {
                       if (message == 1) AwaitSettled(1);
                     }});
  for (int i = 0; i < 2; ++i) {
    service_.AddWatch(
        {.end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")});
  }
  service_.AddWatch(
      {.messages = {MakeDelivery("default", "two", 8, 1)}, .hang = true});
  test::ChildProcess process(Argv(Worker("true")));
  AwaitSettled(2);
  process.Signal(SIGTERM);
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("lost the connection to "));
  EXPECT_EQ(result.err.find("lost the connection"),
            result.err.rfind("lost the connection"));
  EXPECT_THAT(result.err, HasSubstr("2 events handled: 2 done"));
}

TEST_F(CliGroupTest, WhatTheGroupLostIsSaid) {
  v1::WatchExpiredResponse batch = MakeDelivery("default", "one", 7, 1);
  batch.set_lost(1'234);
  service_.AddWatch({.messages = {batch}, .hang = true});
  test::ChildProcess process(Argv(Worker("true")));
  AwaitSettled(1);
  process.Signal(SIGTERM);
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("default: 1,234 events lost"));
  EXPECT_THAT(result.err, HasSubstr("0 put back; 1,234 lost by the group"));
}

TEST_F(CliGroupTest, AdministersGroups) {
  const json made = RunJson({"ns",
                             "group-create",
                             "default",
                             "billing",
                             "--ack-timeout",
                             "2m",
                             "--max-attempts",
                             "10",
                             "--max-backlog-bytes",
                             "64MiB",
                             "--unused-ttl",
                             "48h",
                             "--retry-delay",
                             "1s",
                             "--retry-multiplier",
                             "3",
                             "--max-retry-delay",
                             "1h",
                             "--retry-jitter-percent",
                             "20",
                             "--paused",
                             "--single-active"});
  EXPECT_EQ(made["name"], "billing");
  EXPECT_EQ(made["namespace"], "default");
  EXPECT_EQ(made["options"], json({{"ack_timeout_ms", 120'000},
                                   {"key_prefix", ""},
                                   {"max_attempts", 10},
                                   {"max_backlog_bytes", 64 << 20},
                                   {"unused_ttl_ms", 172'800'000},
                                   {"retry_delay_ms", 1'000},
                                   {"retry_multiplier", 3},
                                   {"max_retry_delay_ms", 3'600'000},
                                   {"retry_jitter_percent", 20},
                                   {"retry_delays_ms", json::array()},
                                   {"key_prefix", ""},
                                   {"paused", true},
                                   {"single_active", true},
                                   {"retry_delays_ms", json::array()}}));
  EXPECT_EQ(Run({"ns", "group-create", "default", "billing"}).code, 2);
  const json changed = RunJson(
      {"ns", "group-update", "default", "billing", "--ack-timeout", "5m"});
  EXPECT_EQ(changed["options"]["ack_timeout_ms"], 300'000);
  EXPECT_EQ(changed["options"]["max_attempts"], 10);
  const json got = RunJson({"ns", "group-get", "default", "billing"});
  EXPECT_EQ(got["options"], changed["options"]);
  // Who makes or changes a group did not ask for them.
  EXPECT_EQ(made.count("statistics") + changed.count("statistics"), 0u);
  EXPECT_EQ(got["statistics"]["backlog"], 0);
  EXPECT_THAT(Run({"ns", "group-get", "default", "billing"}).out,
              ContainsRegex("\nbacklog +0\n"));
  EXPECT_EQ(RunJson({"ns", "groups", "default"})["groups"].size(), 1u);
  EXPECT_EQ(
      RunJson({"ns", "group-delete", "default", "billing"}),
      json(
          {{"namespace", "default"}, {"group", "billing"}, {"deleted", true}}));
  EXPECT_EQ(RunJson({"ns", "groups", "default"})["groups"].size(), 0u);
}

TEST_F(CliGroupTest, OptionsTakeTheirDefaultsWhereAskedFor) {
  ASSERT_TRUE(client_.CreateGroup("billing").ok());
  EXPECT_EQ(
      Run({"ns", "group-update", "default", "billing", "--default",
           "unused-ttl", "--default", "max-attempts", "--ack-timeout", "5m"})
          .code,
      0);
  EXPECT_THAT(
      service_.Last<v1::UpdateGroupRequest>().update_mask().paths(),
      UnorderedElementsAre("options.ack_timeout", "options.max_attempts",
                           "options.unused_ttl"));
  const test::Exit wrong =
      Run({"ns", "group-update", "default", "billing", "--default", "name"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("ack-timeout, max-attempts"));
}

TEST_F(CliGroupTest, GroupsAreListedWithHowFarTheyAreBehind) {
  v1::ListGroupsResponse list;
  v1::Group& group = *list.add_groups();
  group.set_name("billing");
  v1::GroupStatistics& statistics = *group.mutable_statistics();
  statistics.set_members(2);
  statistics.set_backlog(1'234'567);
  statistics.set_in_flight(17);
  *statistics.mutable_oldest_unsettled() = ToProto(absl::FromUnixSeconds(40));
  statistics.set_delivered(5'000);
  statistics.set_acked(3'000);
  statistics.set_put_back(1);
  statistics.set_lost(9);
  list.add_groups()->set_name("idle");
  service_.Answer(list);
  const test::Exit result = Run({"ns", "groups", "default"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "NAME     MEMBERS    BACKLOG  IN FLIGHT                    OLDEST "
            " DELIVERED  SETTLED  DEAD LETTERS  LOST\n"
            "billing        2  1,234,567         17  1970-01-01T00:00:40.000Z "
            "     5,000    3,001             0     9\n"
            "idle           0          0          0                         - "
            "         0        0             0     0\n");
  const json listed =
      RunJson({"ns", "groups", "default"})["groups"][0]["statistics"];
  EXPECT_EQ(listed["oldest_unsettled"], "1970-01-01T00:00:40Z");
  EXPECT_EQ(listed["acked"], 3'000);
}

TEST_F(CliGroupTest, GroupOrNamespaceThatIsMissingSaysHowToListThem) {
  test::Exit result = Run({"ns", "groups", "orders"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("timecachectl ns list"));
  for (const char* command : {"group-get", "group-update", "group-delete"}) {
    result = Run({"ns", command, "default", "billing"});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("timecachectl ns groups default"));
  }
}

}  // namespace
}  // namespace timecache
