// A durable server whose machine's clock is set back and forth between its
// lives: entries die late at most, never early, and once. Its own clock is the
// real one, so this is not for a virtual clock.

#include "absl/time/clock.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/server_process.h"
#include "timecache/client.h"
#include "timecache/watcher.h"

namespace timecache::test {
namespace {

using ::testing::SizeIs;

constexpr absl::Duration kHour = absl::Hours(1);

class ClockTest : public ::testing::Test {
 protected:
  ClockTest() {
    std::ofstream(config_) << "listeners: [{address: \"127.0.0.1:0\"}]\n"
                              "journal: {directory: "
                           << directory_.path() << "/journal}\n";
  }
  // How far the machine's clock is from where it should be.
  std::map<std::string, std::string> SetClock(absl::Duration offset) {
    const int64_t seconds = absl::ToInt64Seconds(offset);
    // Not truncated: a server that runs has mapped it.
    std::ofstream(clock_, std::ios::app).flush();
    std::ofstream(clock_, std::ios::binary | std::ios::in)
        .write(reinterpret_cast<const char*>(&seconds), sizeof(seconds));
    return {{"LD_PRELOAD", STEPPED_CLOCK_LIBRARY}, {"STEPPED_CLOCK", clock_}};
  }
  // Kills the server that runs, and starts it with that clock.
  void Restart(absl::Duration offset) {
    Kill();
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--config", config_}, SetClock(offset));
  }
  void Kill() {
    if (server_ == nullptr) return;
    server_->process().Signal(SIGKILL);
    server_->process().Wait();
    server_ = nullptr;
  }
  Client client() const { return Client(server_->address()).In("kept"); }
  void Put(const std::string& key, absl::Duration ttl) {
    PutOptions options;
    options.ttl = ttl;
    const absl::Time before = Now();
    const auto put = client().Put(key, key, options);
    ASSERT_TRUE(put.ok()) << put.status();
    EXPECT_GT(put->version, last_version_);
    last_version_ = put->version;
    const auto entry = client().Get(key);
    ASSERT_TRUE(entry.ok() && entry->has_value()) << entry.status();
    // By the server's own time, and that of all its lives before.
    EXPECT_GE((*entry)->put_time, latest_);
    EXPECT_GE((*entry)->deadline, before + ttl);
    latest_ = (*entry)->put_time;
    deadlines_[key] = (*entry)->deadline;
  }
  bool Has(const std::string& key) const {
    const auto entry = client().Get(key);
    EXPECT_TRUE(entry.ok()) << entry.status();
    return entry.ok() && entry->has_value();
  }
  absl::Time Now() const {
    const auto info = Client(server_->address()).GetServer();
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? info->now : absl::InfinitePast();
  }

  // Reads all events from the earliest on, at least as many as there must be:
  // those before are among them, as they were.
  void CheckEvents(size_t count) {
    WatchOptions options;
    options.start = WatchStart::kEarliest;
    options.heartbeat_interval = absl::Milliseconds(20);
    Watcher watcher(client(), options);
    std::vector<ExpiredEvent> events;
    for (bool more = true; more;) {
      const auto batch = watcher.Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ(batch->lost, 0u);
      // It does not go back over a restart, either.
      more = !batch->events.empty() || events.size() < count ||
             batch->watermark < watermark_;
      events.insert(events.end(), batch->events.begin(), batch->events.end());
      if (!more) watermark_ = batch->watermark;
    }
    ASSERT_THAT(events, SizeIs(count));
    for (size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].deadline, deadlines_[events[i].key]);
      EXPECT_GE(events[i].death_time, events[i].deadline) << events[i].key;
      // The namespace's time, which the clock may be behind.
      EXPECT_LE(events[i].death_time, watermark_) << events[i].key;
      EXPECT_FALSE(Has(events[i].key));
    }
    // What was told stays as it was, and where.
    std::vector<uint64_t> versions;
    for (const ExpiredEvent& event : events) versions.push_back(event.version);
    ASSERT_GE(versions.size(), told_.size());
    EXPECT_TRUE(std::equal(told_.begin(), told_.end(), versions.begin()));
    told_ = std::move(versions);
  }

  server::TemporaryDirectory directory_;
  const std::string config_ = directory_.path() + "/timecached.yaml";
  const std::string clock_ = directory_.path() + "/clock";
  std::unique_ptr<ServerProcess> server_;
  uint64_t last_version_ = 0;
  absl::Time latest_ = absl::InfinitePast();
  absl::Time watermark_ = absl::InfinitePast();
  std::map<std::string, absl::Time> deadlines_;
  std::vector<uint64_t> told_;  // versions
};

TEST_F(ClockTest, ThatIsSetBackAndForthKillsLateAtMostAndOnce) {
  Restart(absl::ZeroDuration());
  NamespaceOptions options;
  options.ttl = kHour;
  options.num_buckets = 3601;
  options.event_retention = 100 * kHour;
  options.durability = Durability::kSync;
  const auto created =
      Client(server_->address()).CreateNamespace("kept", options);
  ASSERT_TRUE(created.ok()) << created.status();
  Put("half", kHour / 2);
  Put("two", 2 * kHour);
  CheckEvents(0);

  // An hour behind: time goes on from where it was.
  Restart(-kHour);
  EXPECT_TRUE(Has("half"));
  Put("behind", kHour / 2);
  CheckEvents(0);

  // An hour ahead: what is due by that clock dies.
  Restart(kHour);
  CheckEvents(2);
  EXPECT_TRUE(Has("two"));
  Put("ahead", kHour / 2);

  // And two hours behind that again.
  Restart(-kHour);
  EXPECT_TRUE(Has("two") && Has("ahead"));
  Put("behind again", kHour / 2);
  CheckEvents(2);

  // Right again, which is an hour behind the journal, and an hour ahead.
  Restart(absl::ZeroDuration());
  EXPECT_TRUE(Has("two") && Has("ahead") && Has("behind again"));
  CheckEvents(2);
  Restart(kHour);
  EXPECT_TRUE(Has("two") && Has("ahead") && Has("behind again"));
  CheckEvents(2);
  Restart(2 * kHour);
  CheckEvents(5);
}

// An hour behind at boot, which a time server corrects while the server runs.
TEST_F(ClockTest, ThatComesRightWhileTheServerRunsEndsNoLifeAtTheNextStart) {
  Restart(-kHour);
  for (const RestartPolicy policy :
       {RestartPolicy::kFire, RestartPolicy::kPause}) {
    NamespaceOptions options;
    options.ttl = kHour / 2;
    options.durability = Durability::kSync;
    options.restart_policy = policy;
    const std::string name = policy == RestartPolicy::kFire ? "fire" : "pause";
    const Client client(server_->address());
    ASSERT_TRUE(client.CreateNamespace(name, options).ok());
    ASSERT_TRUE(client.In(name).Put("key", "value").ok());
  }
  SetClock(absl::ZeroDuration());
  const auto before = Client(server_->address()).GetServer();
  ASSERT_TRUE(before.ok() && before->clock_offset.has_value());
  EXPECT_GT(*before->clock_offset, kHour - absl::Minutes(1));
  // In good order: a killed server may not have noted it yet.
  server_->process().Signal(SIGTERM);
  server_->process().Wait();
  server_ = nullptr;
  Restart(absl::ZeroDuration());
  const Client client(server_->address());
  const auto after = client.GetServer();
  ASSERT_TRUE(after.ok() && after->clock_offset.has_value());
  EXPECT_LT(absl::AbsDuration(*after->clock_offset), absl::Seconds(10));
  for (const char* name : {"fire", "pause"}) {
    const auto entry = client.In(name).Get("key");
    ASSERT_TRUE(entry.ok() && entry->has_value()) << name << entry.status();
    EXPECT_LE((*entry)->deadline, after->now + kHour / 2 + absl::Seconds(1));
  }
}

}  // namespace
}  // namespace timecache::test
