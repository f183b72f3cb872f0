// `timecachectl bench` as a process, against a stand-in for the server.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/fake_service.h"
#include "tests/support/process.h"

namespace timecache {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class BenchCliTest : public ::testing::Test {
 protected:
  std::vector<std::string> Argv(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "bench", "--address", service_->address()});
    if (names_namespace_) arguments.insert(arguments.end(), {"-n", "default"});
    return arguments;
  }
  test::Exit Run(std::vector<std::string> arguments) const {
    return test::ChildProcess(Argv(std::move(arguments))).Wait();
  }
  json RunJson(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const test::Exit result = Run(std::move(arguments));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out, nullptr, false);
  }

  // Calls `then` once, when a Put comes.
  void AtFirstPut(std::function<void()> then) {
    service_->OnPut(
        [then = std::move(then), once = std::make_shared<std::once_flag>()](
            const v1::PutRequest&) { std::call_once(*once, then); });
  }

  bool names_namespace_ = true;
  std::unique_ptr<FakeService> service_ = std::make_unique<FakeService>();
  // The pipelines are the benchmark's.
  Client client_ = service_->MakeClient({.batching = false});
};

TEST_F(BenchCliTest, CallersMakePlainCallsOfOneClient) {
  json result = RunJson({"--callers", "4", "--operations", "400", "--mix",
                         "put=50,get=50", "--keys", "10"});
  EXPECT_EQ(result["operations"], 400);
  // How many each caller did is up to them.
  EXPECT_NEAR(result["hits"].get<int>() + result["misses"].get<int>(), 200, 4);
  EXPECT_EQ(result["settings"]["transport"], "calls");
  EXPECT_FALSE(service_->pipeline_requests().empty());

  const size_t requests = service_->pipeline_requests().size();
  result = RunJson({"--callers", "2", "--operations", "100", "--unary", "--mix",
                    "remove=20,contains=20,touch=20,append=20,combine=20"});
  EXPECT_EQ(result["settings"]["transport"], "unary");
  EXPECT_EQ(service_->pipeline_requests().size(), requests);
}

TEST_F(BenchCliTest, CallersSendBatches) {
  const json result =
      RunJson({"--callers", "1", "--batch", "8", "--operations", "60",
               "--owner-routing", "--keys", "10", "--mix", "put=50,get=50"});
  EXPECT_EQ(result["operations"], 64);
  EXPECT_EQ(result["messages"], 8);
  EXPECT_EQ(result["hits"].get<int>() + result["misses"].get<int>(), 32);
  EXPECT_EQ(result["settings"]["transport"], "execute");
  EXPECT_EQ(result["settings"]["owner_routing"], true);
  EXPECT_EQ(Run({"--owner-routing"}).code, 2);
}

TEST_F(BenchCliTest, DoesEachKindOneByOneAndInBatches) {
  // What one kind has left would be no value for the next one.
  for (const std::string kind : {"put", "get", "contains", "touch", "append",
                                 "remove", "combine", "remove", "gather"}) {
    for (const std::string batch : {"1", "10"}) {
      SCOPED_TRACE(absl::StrCat(kind, " x ", batch));
      const json result =
          RunJson({"--mix", kind + "=100", "--batch", batch, "--keys", "10",
                   "--order", "sequential", "--operations", "60"});
      EXPECT_EQ(result["operations"], 60) << result;
    }
  }
}

TEST_F(BenchCliTest, DoesAsManyOperationsAsAskedFor) {
  const json result =
      RunJson({"--mix", "put=100", "--order", "sequential", "--operations",
               "1000", "--keys", "500", "--batch", "50"});
  EXPECT_EQ(result["operations"], 1000);
  EXPECT_EQ(result["messages"], 20);
  EXPECT_EQ(result["errors"], json::object());
  EXPECT_EQ(result["hits"], 0);
  EXPECT_EQ(result["complete"], true);
  EXPECT_EQ(result["interrupted"], false);
  EXPECT_GT(result["operations_per_second"], 0);
  EXPECT_GT(result["client_cpu_seconds"], 0);
  const json& latency = result["latency_us"];
  EXPECT_GT(latency["p50"], 0);
  EXPECT_LE(latency["p50"], latency["p90"]);
  EXPECT_LE(latency["p90"], latency["p99"]);
  EXPECT_LE(latency["p99"], latency["p99_9"]);
  EXPECT_LE(latency["p99_9"], latency["max"]);
  EXPECT_EQ(result["settings"]["transport"], "pipeline");
  EXPECT_EQ(result["settings"]["mix_percent"], json({{"put", 100}}));
  EXPECT_EQ(client_.Size()->entries, 500u);
  EXPECT_EQ(client_.Get("key:000000000499").value()->value,
            std::string(64, 'v'));
  EXPECT_EQ(service_->pipeline_requests(), std::vector<int>(20, 50));
}

TEST_F(BenchCliTest, EachTransportDoesTheMix) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(client_.Put(absl::StrCat("key:000000", i), "v").ok());
  }
  // Entries of keys of seven digits, so that everything is found.
  const std::vector<std::vector<std::string>> transports = {
      {"--batch", "20"},
      {"--batch", "20", "--unary"},
      {"--batch", "1"},
      {"--batch", "20", "--connections", "3", "--depth", "4"},
      {"--batch", "10", "--unary", "--connections", "2", "--depth", "3"},
      {"--batch", "1", "--connections", "2", "--depth", "3"},
      {"--batch", "3", "--depth", "2"}};
  for (std::vector<std::string> arguments : transports) {
    arguments.insert(arguments.end(),
                     {"--mix", "put=20,get=40,contains=20,touch=20", "--keys",
                      "10", "--key-bytes", "11", "--operations", "600", "--ttl",
                      "9s", "--value-bytes", "1"});
    const json result = RunJson(arguments);
    EXPECT_EQ(result["operations"], 600) << result;
    // Exact for each sender, of which some are in the midst of a period.
    EXPECT_NEAR(result["hits"].get<double>(), 480, 6) << result;
    EXPECT_EQ(result["misses"], 0) << result;
    EXPECT_EQ(service_->Last<v1::PutRequest>().ttl().seconds(), 9);
  }
}

TEST_F(BenchCliTest, TextForTheEye) {
  const test::Exit result = Run({"--operations", "300", "--connections", "2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("namespace    default\n"));
  EXPECT_THAT(result.out, HasSubstr("80 % put, 20 % get; 1,000,000 keys"));
  EXPECT_THAT(result.out, HasSubstr("2 connections, 1 message in flight"));
  EXPECT_THAT(result.out, HasSubstr("operations   300 in "));
  EXPECT_THAT(result.out, HasSubstr("errors       none"));
  EXPECT_THAT(result.out, HasSubstr("p99.9 "));
  EXPECT_THAT(result.out, HasSubstr("of 3 messages"));
  EXPECT_THAT(result.out, HasSubstr(" ns an operation"));
}

TEST_F(BenchCliTest, RateIsKept) {
  const json result =
      RunJson({"--rate", "2000", "--batch", "10", "--operations", "400"});
  EXPECT_EQ(result["operations"], 400);
  // 40 messages, 5 ms apart: never sooner, whatever the machine does.
  EXPECT_GE(result["elapsed_seconds"], 0.195);
  EXPECT_EQ(result["settings"]["rate"], 2000);
}

TEST_F(BenchCliTest, RateCountsTheTimeThatMessagesWereHeldUp) {
  // The first message is answered no sooner than 50 others are due.
  AtFirstPut([] { absl::SleepFor(absl::Milliseconds(100)); });
  const json result = RunJson({"--mix", "put=100", "--rate", "5000", "--batch",
                               "10", "--operations", "600"});
  EXPECT_EQ(result["operations"], 600);
  EXPECT_GE(result["latency_us"]["max"], 100'000);
  EXPECT_GE(result["latency_us"]["p50"], 20'000);
}

TEST_F(BenchCliTest, TimelineHasALineForEachSecond) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/timecachectl_bench.", getpid());
  const json result = RunJson({"--rate", "1000", "--batch", "10",
                               "--operations", "1100", "--timeline", path});
  std::ifstream file(path);
  uint64_t operations = 0;
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const json second = json::parse(line);
    EXPECT_EQ(second["second"], lines + 1);
    EXPECT_LE(second["p50_us"], second["max_us"]);
    operations += second["operations"].get<uint64_t>();
  }
  unlink(path.c_str());
  EXPECT_GE(lines, 2);
  EXPECT_EQ(operations, 1100u);
  EXPECT_EQ(Run({"--timeline", "/no/such/file"}).code, 2);
}

TEST_F(BenchCliTest, OperationsErrorEndsItWithOne) {
  service_->FailWith(MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                               "max_bytes: the namespace is full",
                               v1::MAX_BYTES));
  for (const std::vector<std::string>& transport :
       std::vector<std::vector<std::string>>{
           {"--batch", "5"}, {"--batch", "5", "--unary"}, {"--batch", "1"}}) {
    std::vector<std::string> arguments = {"--json"};
    arguments.insert(arguments.end(), transport.begin(), transport.end());
    const test::Exit result = Run(arguments);
    EXPECT_EQ(result.code, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("max_bytes: the namespace is full"));
    EXPECT_THAT(result.err, HasSubstr("MAX_BYTES"));
    const json measured = json::parse(result.out);
    EXPECT_EQ(measured["complete"], false);
    EXPECT_EQ(measured["errors"]["RESOURCE_EXHAUSTED"], measured["operations"]);
  }
}

TEST_F(BenchCliTest, ServerThatForgetsAResultIsFoundOut) {
  service_->SetPipeline({.forget_a_result = true});
  const test::Exit result = Run({"--batch", "10"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("to 10 operations has 9 results"));
}

TEST_F(BenchCliTest,
       StreamThatEndsMidwayIsAnErrorAndWhatWasMeasuredIsReported) {
  service_->SetPipeline({.answers_max = 3,
                         .end = MakeError(grpc::StatusCode::UNAVAILABLE,
                                          "draining", v1::DRAINING)});
  const test::Exit result = Run({"--batch", "10", "--json"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("DRAINING"));
  EXPECT_EQ(json::parse(result.out)["operations"], 30);
  service_->SetPipeline({.answers_max = 3});
  EXPECT_EQ(Run({"--batch", "10"}).code, 2);
}

TEST_F(BenchCliTest, ServerThatGoesAwayIsAnError) {
  absl::Notification under_way;
  AtFirstPut([&] { under_way.Notify(); });
  test::ChildProcess process(Argv({"--seconds", "600", "--batch", "10"}));
  under_way.WaitForNotification();
  service_.reset();
  const test::Exit result = process.Wait();
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err, "");
}

TEST_F(BenchCliTest, ServerThatDoesNotAnswerIsAnError) {
  service_->Hang(true);
  for (const std::string batch : {"1", "10"}) {
    const test::Exit result = Run({"--timeout", "50ms", "--batch", batch});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("within 50ms"));
  }
  service_->Hang(false);
}

TEST_F(BenchCliTest, CtrlCEndsItWithWhatWasMeasured) {
  for (const int signal : {SIGINT, SIGTERM}) {
    absl::Notification under_way;
    AtFirstPut([&] { under_way.Notify(); });
    test::ChildProcess process(
        Argv({"--seconds", "600", "--batch", "10", "--depth", "3", "--json"}));
    under_way.WaitForNotification();
    process.Signal(signal);
    const test::Exit result = process.Wait();
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const json measured = json::parse(result.out);
    EXPECT_EQ(measured["interrupted"], true);
    EXPECT_GT(measured["operations"], 0);
  }
}

TEST_F(BenchCliTest, WrongUsageExitsWithTwoAndNamesTheFlag) {
  const std::vector<std::vector<std::string>> cases = {
      {"--mix", "put=50"},
      {"--mix", "put=50,scan=50"},
      {"--mix", "put"},
      {"--mix", "put=101"},
      {"--mix", "put=-1,get=101"},
      {"--mix", ""},
      {"--keys", "0"},
      {"--keys", "100000", "--key-bytes", "8"},
      {"--key-bytes", "7"},
      {"--key-bytes", "4097"},
      {"--value-bytes", "-1"},
      {"--value-bytes", "16777217"},
      {"--ttl", "soon"},
      {"--batch", "0"},
      {"--batch", "4097"},
      {"--batch", "4096", "--value-bytes", "9999"},
      {"--connections", "0"},
      {"--connections", "1025"},
      {"--depth", "0"},
      {"--depth", "1025"},
      {"--rate", "0"},
      {"--seconds", "0"},
      {"--operations", "0"},
      {"--order", "backwards"},
      {"--seconds", "1", "--operations", "1"},
      {"--connections", "1000", "--depth", "1000"}};
  for (const auto& arguments : cases) {
    const test::Exit result = Run(arguments);
    EXPECT_EQ(result.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_THAT(result.err, HasSubstr("--"))
        << ::testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "") << ::testing::PrintToString(arguments);
  }
}

TEST(BenchCliWithoutServerTest, SaysWhichServerItMissed) {
  std::string address;
  {
    FakeService service;
    address = service.address();
  }
  for (const std::string batch : {"1", "10"}) {
    const test::Exit result =
        test::ChildProcess(
            {TIMECACHECTL, "bench", "--address", address, "--batch", batch})
            .Wait();
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(absl::StrCat("no server at ", address)));
  }
}

class OwnNamespaceTest : public BenchCliTest {
 protected:
  OwnNamespaceTest() { names_namespace_ = false; }

  // Names of all namespaces but "default".
  std::vector<std::string> Others() const {
    std::vector<std::string> names;
    const auto all = client_.ListNamespaces();
    for (const Namespace& ns : *all) {
      if (ns.name != "default") names.push_back(ns.name);
    }
    return names;
  }
};

TEST_F(OwnNamespaceTest, IsMadeAlsoWhereTheEnvironmentNamesAnother) {
  test::ChildProcess bench(
      Argv({"--mix", "put=100", "--operations", "100", "--json"}), "",
      {{"TIMECACHED_NAMESPACE", "default"}});
  const test::Exit result = bench.Wait();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(client_.Size()->entries, 0u);
  const std::string name = service_->Last<v1::PutRequest>().namespace_();
  EXPECT_THAT(name, StartsWith("bench-"));
  EXPECT_EQ(json::parse(result.out)["settings"]["namespace"], name);
}

TEST_F(OwnNamespaceTest, IsFilledSoThatGetsHit) {
  const json result = RunJson({"--fill", "--mix", "get=100", "--keys", "250",
                               "--operations", "300", "--batch", "10"});
  EXPECT_EQ(result["operations"], 300);
  EXPECT_EQ(result["hits"], 300);
  EXPECT_EQ(result["misses"], 0);
  EXPECT_THAT(Others(), IsEmpty());
}

TEST_F(OwnNamespaceTest, IsDeletedAfterCtrlC) {
  absl::Notification under_way;
  AtFirstPut([&] { under_way.Notify(); });
  test::ChildProcess bench(Argv({"--mix", "put=100", "--seconds", "3600"}));
  under_way.WaitForNotification();
  EXPECT_THAT(Others(), SizeIs(1));
  bench.Signal(SIGINT);
  EXPECT_EQ(bench.Wait().code, 0);
  EXPECT_THAT(Others(), IsEmpty());
}

TEST_F(OwnNamespaceTest, ThatMayNotBeMadeIsToBeNamed) {
  service_->FailWith(MakeError(grpc::StatusCode::PERMISSION_DENIED,
                               "not allowed", v1::ACCESS_DENIED));
  const test::Exit result = Run({"--operations", "100"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("cannot create a namespace of its own"));
  EXPECT_THAT(result.err, HasSubstr("--namespace"));
}

}  // namespace
}  // namespace timecache
