// timecachectl against timecached: that no event is lost, whatever dies.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/await.h"
#include "tests/support/effort.h"
#include "tests/support/process.h"
#include "tests/support/server_process.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class CliDeliveryTest : public ::testing::Test {
 protected:
  CliDeliveryTest() {
    std::string name = absl::StrCat(::testing::TempDir(), "/delivery.XXXXXX");
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~CliDeliveryTest() override { std::filesystem::remove_all(directory_); }

  std::vector<std::string> Argv(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--address", server_->address()});
    return arguments;
  }
  Exit Run(const std::vector<std::string>& arguments,
           const std::string& input = "") const {
    return RunToEnd(Argv(arguments), input);
  }
  json RunJson(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Exit exit = Run(arguments);
    EXPECT_EQ(exit.code, 0) << exit.err;
    return json::parse(exit.out, nullptr, false);
  }
  std::string Path(const std::string& name) const {
    return absl::StrCat(directory_, "/", name);
  }
  // Entries in it die 200 to 300 ms after they were put.
  void Create(const std::string& ns, std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"ns", "create", ns, "--ttl", "200ms", "--buckets", "3"});
    const Exit exit = Run(more);
    ASSERT_EQ(exit.code, 0) << exit.err;
  }
  void Put(const std::string& ns, const std::string& key) const {
    ASSERT_EQ(Run({"put", key, "value of " + key, "-n", ns}).code, 0);
  }
  json Group(const std::string& ns) const {
    return RunJson({"ns", "groups", ns})["groups"][0]["statistics"];
  }

  std::unique_ptr<ServerProcess> server_ = std::make_unique<ServerProcess>();
  std::string directory_;
};

// The versions of the events in lines of JSON; a line that was cut off is none.
std::vector<uint64_t> Versions(const std::string& lines) {
  std::vector<uint64_t> versions;
  for (const absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const json event = json::parse(line.begin(), line.end(), nullptr, false);
    if (!event.is_object()) continue;
    EXPECT_EQ(event["type"], "expired") << event;
    versions.push_back(event.value("version", uint64_t{0}));
  }
  return versions;
}

TEST_F(CliDeliveryTest, ResumeFileLosesNothingOverKills) {
  constexpr int kKills = Rounds(12);
  // Their lines are more than a pipe holds.
  constexpr int kEntriesPerRun = 700;
  Create("quick");
  const std::vector<std::string> watch = {"watch",         "quick",
                                          "--json",        "--from-earliest",
                                          "--resume-file", Path("resume")};
  std::vector<std::vector<uint64_t>> runs;
  for (int i = 0; i < kKills; ++i) {
    std::string lines;
    for (int j = 0; j < kEntriesPerRun; ++j) {
      absl::StrAppend(&lines, "key", i, "-", j, "\tvalue\n");
    }
    ASSERT_EQ(Run({"load", "-", "-n", "quick"}, lines).code, 0);
    ChildProcess process(Argv(watch));
    // Somewhere in a batch, or at its end.
    std::string printed;
    for (int j = 0; j < i * (kEntriesPerRun / kKills); ++j) {
      absl::StrAppend(&printed, process.ReadLine(), "\n");
    }
    process.Signal(SIGKILL);
    const Exit exit = process.Wait();
    EXPECT_EQ(exit.signal, SIGKILL) << exit.err;
    runs.push_back(Versions(printed + exit.out));
  }
  Await([&] { return RunJson({"size", "-n", "quick"})["entries"] == 0; });
  const std::string now = absl::FormatTime(absl::Now(), absl::UTCTimeZone());
  std::vector<std::string> to_the_end = watch;
  to_the_end.insert(to_the_end.end(), {"--until-watermark", now});
  const Exit last = Run(to_the_end);
  EXPECT_EQ(last.code, 0) << last.err;
  runs.push_back(Versions(last.out));

  const Exit whole = Run({"watch", "quick", "--json", "--from-earliest",
                          "--until-watermark", now});
  const std::vector<uint64_t> all = Versions(whole.out);
  ASSERT_EQ(all.size(), size_t{kKills * kEntriesPerRun});
  // Each run goes on at a place that the one before has reached, without a gap.
  size_t reached = 0;
  for (const std::vector<uint64_t>& run : runs) {
    if (run.empty()) continue;
    const auto begin = std::find(all.begin(), all.end(), run.front());
    ASSERT_NE(begin, all.end());
    const auto place = static_cast<size_t>(begin - all.begin());
    ASSERT_LE(place, reached);
    ASSERT_LE(place + run.size(), all.size());
    EXPECT_TRUE(std::equal(run.begin(), run.end(), begin));
    reached = std::max(reached, place + run.size());
  }
  EXPECT_EQ(reached, all.size());
}

TEST_F(CliDeliveryTest, ResumeFileGoesOnAfterARestartOfTheServer) {
  Create("quick");
  const std::vector<std::string> watch = {
      "watch",   "quick", "--json",        "--from-earliest",
      "--count", "1",     "--resume-file", Path("resume")};
  Put("quick", "a");
  EXPECT_EQ(RunJson(watch)["key"], "a");
  server_ = std::make_unique<ServerProcess>();
  Create("quick");
  Put("quick", "b");
  const Exit exit = Run(watch);
  EXPECT_EQ(exit.code, 0) << exit.err;
  const std::vector<std::string> lines = absl::StrSplit(exit.out, '\n');
  EXPECT_EQ(json::parse(lines[0], nullptr, false)["type"], "log_changed");
  EXPECT_EQ(json::parse(lines[1], nullptr, false)["key"], "b");
  EXPECT_THAT(exit.err, HasSubstr("quick: the log has changed"));
}

TEST_F(CliDeliveryTest, AScriptIsAWorker) {
  ASSERT_EQ(Run({"ns", "create", "failed"}).code, 0);
  Create("orders", {"--dead-letter", "failed"});
  ASSERT_EQ(Run({"ns", "group-create", "orders", "billing", "--max-attempts",
                 "2", "--ack-timeout", "1m"})
                .code,
            0);
  const std::string script = Path("worker.sh");
  std::ofstream(script)
      << "echo \"$TIMECACHED_KEY $TIMECACHED_ATTEMPT $(cat)\"\n"
      << "case $TIMECACHED_KEY in\n"
      << "  done) exit 0;;\n"
      << "  again) test $TIMECACHED_ATTEMPT -gt 1;;\n"
      << "  back) mkdir " << Path("once")
      << " 2>/dev/null && exit 75; exit 0;;\n"
      << "  never) exit 1;;\n"
      << "esac\n";
  ChildProcess worker(
      Argv({"watch", "orders", "--group", "billing", "--exec", "sh " + script,
            "--put-back-exit", "75", "--retry-delay", "10ms", "--jobs", "2"}));
  for (const char* key : {"done", "again", "back", "never"}) {
    Put("orders", key);
  }
  std::vector<std::string> lines;
  for (int i = 0; i < 7; ++i) lines.push_back(worker.ReadLine());
  EXPECT_THAT(lines, UnorderedElementsAre(
                         "done 1 value of done", "again 1 value of again",
                         "again 2 value of again", "back 1 value of back",
                         "back 1 value of back", "never 1 value of never",
                         "never 2 value of never"));
  worker.Signal(SIGTERM);
  const Exit exit = worker.Wait();
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_EQ(exit.out, "");
  EXPECT_THAT(exit.err, HasSubstr("7 events handled: 3 done, 3 failed, 1 put "
                                  "back"));
  const json group = Group("orders");
  EXPECT_EQ(group["acked"], 3);
  EXPECT_EQ(group["put_back"], 1);
  EXPECT_EQ(group["nacked"], 3);
  EXPECT_EQ(group["redelivered"], 2);
  EXPECT_EQ(group["dead_lettered"], 1);
  EXPECT_EQ(group["backlog"], 0);
  EXPECT_EQ(group["in_flight"], 0);
  EXPECT_THAT(Run({"scan", "-n", "failed", "--keys-only"}).out,
              ::testing::StartsWith("orders/billing/"));
}

TEST_F(CliDeliveryTest, WhatAKilledWorkerHeldGoesToAnother) {
  Create("orders");
  ASSERT_EQ(
      Run({"ns", "group-create", "orders", "billing", "--ack-timeout", "1h"})
          .code,
      0);
  ASSERT_EQ(mkfifo(Path("go").c_str(), 0600), 0);
  const std::vector<std::string> watch = {
      "watch",
      "orders",
      "--group",
      "billing",
      "--exec",
      absl::StrCat("echo $TIMECACHED_KEY $TIMECACHED_ATTEMPT; mkdir ",
                   Path("once"), " 2>/dev/null && read line < ", Path("go"),
                   "; true")};
  ChildProcess first(Argv(watch));
  Put("orders", "a");
  EXPECT_EQ(first.ReadLine(), "a 1");
  first.Signal(SIGKILL);
  ChildProcess second(Argv(watch));
  // The same attempt: the first one's end is none.
  EXPECT_EQ(second.ReadLine(), "a 1");
  // Lets the orphan end.
  std::ofstream(Path("go")) << "\n";
  EXPECT_EQ(first.Wait().signal, SIGKILL);
  Await([&] { return Group("orders")["acked"] == 1; });
  second.Signal(SIGTERM);
  EXPECT_EQ(second.Wait().code, 0);
  const json group = Group("orders");
  EXPECT_EQ(group["delivered"], 2);
  EXPECT_EQ(group["redelivered"], 1);
}

TEST_F(CliDeliveryTest, AHungScriptLeavesItsEventsToAnother) {
  constexpr int kEvents = 30;
  ASSERT_EQ(Run({"ns", "create", "failed"}).code, 0);
  Create("orders", {"--dead-letter", "failed"});
  ASSERT_EQ(
      Run({"ns", "group-create", "orders", "billing", "--ack-timeout", "1s"})
          .code,
      0);
  ASSERT_EQ(mkfifo(Path("go").c_str(), 0600), 0);
  ChildProcess hung(
      Argv({"watch", "orders", "--group", "billing", "--extend-max", "0s",
            "--exec", absl::StrCat("echo; read line < ", Path("go"))}));
  Put("orders", "first");
  EXPECT_EQ(hung.ReadLine(), "");
  ChildProcess worker(
      Argv({"watch", "orders", "--group", "billing", "--exec", "true"}));
  Await([&] { return Group("orders")["members"] == 2; });
  std::string lines;
  for (int i = 1; i < kEvents; ++i) absl::StrAppend(&lines, "key", i, "\tv\n");
  ASSERT_EQ(Run({"load", "-", "-n", "orders"}, lines).code, 0);
  Await([&] { return Group("orders")["acked"] == kEvents; });
  const json group = Group("orders");
  EXPECT_GE(group["timed_out"], 1);
  EXPECT_EQ(group["dead_lettered"], 0);
  EXPECT_EQ(group["lost"], 0);
  EXPECT_EQ(group["unresponsive_members"], 1);
  for (ChildProcess* const process : {&hung, &worker}) {
    process->Signal(SIGKILL);
  }
  // Lets the orphans end.
  std::ofstream(Path("go")) << "\n";
  EXPECT_EQ(hung.Wait().signal, SIGKILL);
  EXPECT_EQ(worker.Wait().signal, SIGKILL);
}

TEST_F(CliDeliveryTest, WhatAGroupPrintsIsAcknowledged) {
  Create("orders");
  ASSERT_EQ(Run({"ns", "group-create", "orders", "billing"}).code, 0);
  for (const char* key : {"a", "b"}) Put("orders", key);
  const Exit exit =
      Run({"watch", "orders", "--group", "billing", "--count", "2"});
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_EQ(std::count(exit.out.begin(), exit.out.end(), '\n'), 2);
  const json group = Group("orders");
  EXPECT_EQ(group["acked"], 2);
  EXPECT_EQ(group["oldest_unsettled"], nullptr);
}

}  // namespace
}  // namespace timecache::test
