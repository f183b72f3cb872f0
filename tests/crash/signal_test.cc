// A durable server that is told to stop while its journal is busy: in a
// checkpoint, and in the recovery of the next start.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/scrape.h"
#include "tests/support/server_process.h"
#include "timecache/batch.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A checkpoint begins when the journal has 256 MiB and three times what lives:
// so this lives, and its walk has hundreds of steps.
constexpr int kLiveKeys = 1'000;
constexpr size_t kValueBytes = 64 << 10;
constexpr int kSignalBatch = 16;
constexpr int kMaxRecoveries = 20;

// One that nothing listens on: the server says where only once it serves.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

class SignalTest : public ::testing::Test {
 protected:
  SignalTest() {
    std::ofstream(config_)
        << "listeners: [{address: \"127.0.0.1:0\"}]\njournal: {directory: "
        << journal_ << "}\nhealth_address: \"" << health_
        << "\"\nhttp: {address: \"" << http_ << "\"}\n";
  }

  // Puts the key's next value, and what was answered last of each key.
  void Write(const Client& client) {
    while (!stop_) {
      Batch batch;
      for (int i = 0; i < kSignalBatch; ++i) {
        const int key = (next_ + i) % kLiveKeys;
        batch.Add(Operation::Put(absl::StrCat("key", key), Value(key, puts_)));
      }
      const auto results = client.Execute(batch);
      // The server drains, or is gone: these may be there or not.
      if (!results.ok() || !(*results)[0].status.ok()) return;
      for (int i = 0; i < kSignalBatch; ++i) {
        answered_[(next_ + i) % kLiveKeys] = puts_;
      }
      next_ = (next_ + kSignalBatch) % kLiveKeys;
      ++puts_;
    }
  }
  static std::string Value(int key, uint64_t put) {
    std::string value = absl::StrCat(key, " ", put, " ");
    value.resize(kValueBytes, 'v');
    return value;
  }
  // What is there was answered last, or put without an answer.
  void Check(const Client& client) {
    for (int key = 0; key < kLiveKeys; ++key) {
      const auto entry = client.Get(absl::StrCat("key", key));
      ASSERT_TRUE(entry.ok() && entry->has_value()) << entry.status();
      const std::string& value = (*entry)->value;
      EXPECT_TRUE(value == Value(key, answered_[key]) ||
                  value == Value(key, puts_))
          << "key " << key << " is " << value.substr(0, 20) << "after put "
          << answered_[key] << " of " << puts_;
    }
  }

  // Starts a server and stops it while it recovers its journal. Returns false
  // if it had recovered before the signal came.
  bool InterruptRecovery() {
    ChildProcess server({TIMECACHED, "--log-format=json", "--config", config_});
    EXPECT_THAT(server.ReadErrorLine(), HasSubstr("recovery_started"));
    const HttpAnswer ready = HttpGet(http_, "/readyz");
    double running = 0;
    EXPECT_TRUE(Await([&] {
      const Scrape metrics = ScrapeFrom(http_);
      running = metrics.Value("timecache_recovery_running");
      return metrics.Value("timecache_recovery_records_expected") > 100;
    }));
    const auto health = Client(health_).CheckHealth();
    server.Signal(SIGTERM);
    const Exit exit = server.Wait();
    EXPECT_EQ(exit.code, 0);
    if (absl::StrContains(exit.err, "recovery_done")) return false;
    EXPECT_EQ(ready.status, 503);
    EXPECT_THAT(ready.body, StartsWith("starting: recovering, "));
    EXPECT_EQ(running, 1);
    EXPECT_EQ(health.value_or(ServingStatus::kUnknown),
              ServingStatus::kNotServing);
    EXPECT_THAT(exit.err, HasSubstr("recovery_cancelled"));
    EXPECT_THAT(exit.err, Not(HasSubstr("server_started")));
    return true;
  }

  server::TemporaryDirectory directory_;
  const std::string journal_ = directory_.path() + "/journal";
  const std::string config_ = directory_.path() + "/timecached.yaml";
  const std::string health_ =
      absl::StrCat("unix:", directory_.path(), "/health");
  const std::string http_ = absl::StrCat("127.0.0.1:", FreePort());
  std::atomic<bool> stop_{false};
  int next_ = 0;
  uint64_t puts_ = 0;
  std::vector<uint64_t> answered_ = std::vector<uint64_t>(kLiveKeys);
};

TEST_F(SignalTest, InACheckpointAndInARecoveryNothingIsLost) {
  {
    ServerProcess server({"--config", config_});
    const Client client(server.address());
    NamespaceOptions options;
    options.ttl = absl::Hours(1);
    options.event_retention = absl::ZeroDuration();
    options.durability = Durability::kAsync;
    ASSERT_TRUE(client.CreateNamespace("kept", options).ok());
    std::thread writer([&] { Write(client.In("kept")); });
    EXPECT_TRUE(Await([&] {
      const auto info = client.GetServer();
      return info.ok() && info->journal &&
             info->journal->checkpoint_state == CheckpointState::kWriting;
    }));
    server.process().Signal(SIGTERM);
    const Exit exit = server.process().Wait();
    EXPECT_EQ(exit.code, 0);
    EXPECT_THAT(exit.err, HasSubstr("server_stopped"));
    stop_ = true;
    writer.join();
  }
  // On a busy machine a recovery may be over before the signal comes. Then the
  // same journal is recovered again.
  const std::string saved = directory_.path() + "/saved";
  std::filesystem::copy(journal_, saved,
                        std::filesystem::copy_options::recursive);
  bool interrupted = InterruptRecovery();
  for (int i = 1; i < kMaxRecoveries && !interrupted; ++i) {
    std::filesystem::remove_all(journal_);
    std::filesystem::copy(saved, journal_,
                          std::filesystem::copy_options::recursive);
    interrupted = InterruptRecovery();
  }
  EXPECT_TRUE(interrupted) << "none of " << kMaxRecoveries << " recoveries";
  ServerProcess server({"--config", config_});
  Check(Client(server.address()).In("kept"));
  const Scrape metrics = ScrapeFrom(http_);
  EXPECT_EQ(metrics.Value("timecache_recovery_running"), 0);
  EXPECT_EQ(metrics.Value("timecache_recovery_entries"), kLiveKeys);
  EXPECT_EQ(metrics.Value("timecache_recovery_records"),
            metrics.Value("timecache_recovery_records_expected"));
  const Exit check =
      RunToEnd({TIMECACHECTL, "--address", server.address(), "status"});
  EXPECT_THAT(check.out, HasSubstr(journal_));
}

}  // namespace
}  // namespace timecache::test
