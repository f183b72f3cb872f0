// timecachectl against timecached: that no event is lost, whatever dies.
#include <signal.h>

#include <algorithm>
#include <cstdint>
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
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/process.h"
#include "tests/support/server_process.h"

namespace timecache::test {
namespace {

using nlohmann::json;

class CliDeliveryTest : public ::testing::Test {
 protected:
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
    return absl::StrCat(directory_.path(), "/", name);
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
  const server::TemporaryDirectory directory_;
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

}  // namespace
}  // namespace timecache::test
