// A server's journal becomes that of a cluster, and a cluster's that of a server.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "tests/support/process.h"
#include "timecache/client.h"
#include "timecache/watcher.h"

namespace timecache::test {
namespace {

using ::testing::HasSubstr;

// timecached with a journal on the disk.
class LocalServer {
 public:
  LocalServer(const std::string& journal, std::vector<std::string> more)
      : address_(absl::StrCat("127.0.0.1:", FreePort())) {
    std::vector<std::string> argv = {TIMECACHED, "--listen", address_,
                                     "--journal", journal};
    argv.insert(argv.end(), more.begin(), more.end());
    process_ = std::make_unique<ChildProcess>(argv);
    EXPECT_TRUE(Await([&] { return In("default").ListNamespaces().ok(); }));
  }

  Client In(const std::string& ns) const { return Client(address_).In(ns); }
  const std::string& address() const { return address_; }
  void Stop() {
    process_->Signal(SIGTERM);
    EXPECT_EQ(process_->Wait().code, 0);
  }

 private:
  const std::string address_;
  std::unique_ptr<ChildProcess> process_;
};

void BackUp(const std::string& addresses, const std::string& to) {
  const Exit backup =
      RunToEnd({TIMECACHECTL, "--address", addresses, "backup", to});
  EXPECT_EQ(backup.code, 0) << backup.err;
  EXPECT_THAT(backup.out, HasSubstr("intact"));
  const Exit check = RunToEnd({TIMECACHECTL, "journal", "check", to});
  EXPECT_EQ(check.code, 0) << check.out << check.err;
}

NamespaceOptions Options(absl::Duration ttl, Durability durability) {
  NamespaceOptions options;
  options.ttl = ttl;
  options.event_retention = absl::Hours(1);
  options.durability = durability;
  return options;
}

// What is kept: an entry, a retained event, which is unsettled in a group, and the
// place of a watch behind it.
struct Kept {
  Entry entry;
  std::string token;
};

Kept WriteAll(const LocalServer& server) {
  const Client kept = server.In("kept");
  EXPECT_TRUE(
      kept.CreateNamespace("kept", Options(absl::Hours(1), Durability::kSync))
          .ok());
  EXPECT_TRUE(kept.Put("lives", "value").ok());
  const Client events = server.In("events");
  EXPECT_TRUE(events
                  .CreateNamespace("events", Options(absl::Milliseconds(100),
                                                     Durability::kSync))
                  .ok());
  EXPECT_TRUE(events.CreateGroup("workers").ok());
  EXPECT_TRUE(events.Put("dies", "value").ok());
  Watcher watcher(events, {.start = WatchStart::kEarliest});
  Kept all;
  for (size_t seen = 0; seen == 0;) {
    const auto batch = watcher.Next();
    if (!batch.ok()) {
      ADD_FAILURE() << batch.status();
      break;
    }
    seen += batch->events.size();
    all.token = batch->resume_token;
  }
  const auto entry = kept.Get("lives");
  EXPECT_TRUE(entry.ok() && entry->has_value());
  if (entry.ok() && entry->has_value()) all.entry = **entry;
  return all;
}

// A later watch is where this one is: a place outlives one restore, not two.
void ExpectKept(const Client& client, Kept* all, Durability durability) {
  const auto entry = client.In("kept").Get("lives");
  ASSERT_TRUE(entry.ok()) << entry.status();
  ASSERT_TRUE(entry->has_value());
  EXPECT_EQ((*entry)->value, "value");
  EXPECT_EQ((*entry)->version, all->entry.version);
  EXPECT_EQ((*entry)->deadline, all->entry.deadline);
  const auto ns = client.GetNamespace("kept");
  ASSERT_TRUE(ns.ok()) << ns.status();
  EXPECT_EQ(ns->options.durability, durability);
  const Client events = client.In("events");
  const auto group = events.GetGroup("workers", {.include_statistics = true});
  ASSERT_TRUE(group.ok()) << group.status();
  ASSERT_TRUE(group->statistics.has_value());
  EXPECT_EQ(group->statistics->backlog, 1u);
  EXPECT_EQ(group->statistics->lost, 0u);
  // The event, by a watch from the beginning, and none behind its token.
  Watcher earliest(events, {.start = WatchStart::kEarliest});
  const auto first = earliest.Next();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->events.size(), 1u);
  EXPECT_EQ(first->events[0].key, "dies");
  WatchOptions resume;
  resume.resume_tokens = {{"events", all->token}};
  resume.fail_on_loss = true;
  Watcher resumed(events, resume);
  const auto next = resumed.Next();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(next->events.empty());
  all->token = next->resume_token;
}

TEST(ClusterMoveTest, AServerMovesToAClusterAndBackWithAllThatIsKept) {
  const server::TemporaryDirectory directory;
  const std::string path = directory.path();
  Kept all;
  {
    LocalServer server(path + "/journal", {});
    all = WriteAll(server);
    BackUp(server.address(), path + "/backup");
    server.Stop();
  }
  const auto restore = [&](const std::string& brokers) {
    return RunToEnd({TIMECACHED, "cluster", "restore", "--cluster", "test",
                     "--kafka-brokers", brokers, path + "/backup"});
  };
  TestClusterOptions options;
  options.with_topics = [&](const std::string& brokers) {
    const Exit restored = restore(brokers);
    EXPECT_EQ(restored.code, 0) << restored.err;
    EXPECT_THAT(restored.out, HasSubstr("2 namespaces"));
    const Exit again = restore(brokers);
    EXPECT_EQ(again.code, 1);
    EXPECT_THAT(again.err, HasSubstr("has records"));
  };
  TestCluster cluster(options);
  ExpectKept(cluster.Caller("default"), &all, Durability::kReplicated);
  // Also at the next owner.
  cluster.AwaitWhole();
  Node* const owner = cluster.AwaitOwner();
  ASSERT_NE(owner, nullptr);
  owner->Kill();
  ASSERT_NE(cluster.AwaitOwner(), nullptr);
  ExpectKept(cluster.Caller("default"), &all, Durability::kReplicated);

  const Client client = cluster.Caller("kept");
  ASSERT_TRUE(CallUntilOk([&] { return client.Put("later", "value"); }).ok());
  BackUp(cluster.addresses(), path + "/from-cluster");
  LocalServer server(path + "/back", {"--restore", path + "/from-cluster"});
  ExpectKept(server.In("default"), &all, Durability::kSync);
  const auto later = server.In("kept").Get("later");
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_TRUE(later->has_value());
  server.Stop();
}

// --- Of a cluster whose nodes share the ownership.

constexpr int kSharedPartitions = 8;
constexpr int kSharedEvents = 24;
constexpr int kCounters = 2;
constexpr int kKeysOfCounter = 40;

NamespaceOptions SharedOptions(absl::Duration ttl) {
  NamespaceOptions options = Options(ttl, Durability::kReplicated);
  options.num_partitions = kSharedPartitions;
  return options;
}

TestClusterOptions SharedCluster() {
  TestClusterOptions options;
  options.brokers = 1;
  options.config = "cluster: {forward_calls: true}\n";
  return options;
}

// Counts up the values of its own keys, by way of any node.
class KeyCounter {
 public:
  KeyCounter(const TestCluster& cluster, int number)
      : number_(number),
        client_(cluster.Caller("kept", static_cast<size_t>(number))),
        thread_([this] { Run(); }) {}
  ~KeyCounter() { Stop(); }

  // By key, what was acknowledged by now, at least.
  std::vector<int> Acknowledged() const {
    return {acknowledged_.begin(), acknowledged_.end()};
  }
  void Stop() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::string Key(size_t i) const { return absl::StrCat("w", number_, "-", i); }

 private:
  void Run() {
    CallOptions repeated;
    repeated.repeatable = true;
    for (int value = 1; !ended_; ++value) {
      for (size_t i = 0; i < acknowledged_.size() && !ended_; ++i) {
        const auto put = client_.Put(Key(i), absl::StrCat(value), {}, repeated);
        EXPECT_TRUE(put.ok()) << put.status();
        if (put.ok()) acknowledged_[i] = value;
      }
    }
  }

  const int number_;
  const Client client_;
  std::array<std::atomic<int>, kKeysOfCounter> acknowledged_ = {};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Reads so many events, all there are, each once: the place behind them.
std::string ReadEvents(const Client& client, size_t count) {
  Watcher watcher(client, {.start = WatchStart::kEarliest});
  std::set<std::string> keys;
  std::string token;
  while (keys.size() < count) {
    const auto batch = watcher.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok()) break;
    for (const auto& event : batch->events) {
      EXPECT_TRUE(keys.insert(event.key).second) << event.key;
    }
    token = batch->resume_token;
  }
  return token;
}

void ExpectShared(const Client& client, const std::string& token) {
  const Client events = client.In("events");
  const auto group = CallUntilOk(
      [&] { return events.GetGroup("workers", {.include_statistics = true}); });
  ASSERT_TRUE(group.ok()) << group.status();
  ASSERT_TRUE(group->statistics.has_value());
  EXPECT_EQ(group->statistics->backlog, static_cast<uint64_t>(kSharedEvents));
  EXPECT_EQ(group->statistics->lost, 0u);
  ReadEvents(events, kSharedEvents);
  WatchOptions resume;
  resume.resume_tokens = {{"events", token}};
  resume.fail_on_loss = true;
  Watcher resumed(events, resume);
  const auto next = resumed.Next();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(next->events.empty());
}

// By any node, while callers write, slots move to others, and an owner dies.
TEST(ClusterMoveTest, ABackupOfSharedSlotsHasAllThatWasAcknowledged) {
  const server::TemporaryDirectory directory;
  const std::string backup = directory.path() + "/backup";
  std::string token;
  // By key, its least value.
  std::map<std::string, int> least;
  {
    TestCluster cluster(SharedCluster());
    cluster.Create("kept", SharedOptions(absl::Hours(1)));
    cluster.Create("events", SharedOptions(absl::Milliseconds(100)));
    const Client events = cluster.Caller("events");
    ASSERT_TRUE(
        CreateUntilOk([&] { return events.CreateGroup("workers"); }).ok());
    for (int i = 0; i < kSharedEvents; ++i) {
      ASSERT_TRUE(CallUntilOk([&] {
                    return events.Put(absl::StrCat("e", i), "v");
                  }).ok());
    }
    token = ReadEvents(events, kSharedEvents);
    cluster.AwaitWhole();
    std::vector<std::unique_ptr<KeyCounter>> writers;
    for (int i = 0; i < kCounters; ++i) {
      writers.push_back(std::make_unique<KeyCounter>(cluster, i));
    }
    const auto all_written = [&] {
      for (const auto& writer : writers) {
        for (const int value : writer->Acknowledged()) {
          if (value < 2) return false;
        }
      }
      return true;
    };
    ASSERT_TRUE(AwaitCluster(all_written));
    for (const auto& writer : writers) {
      const std::vector<int> values = writer->Acknowledged();
      for (size_t i = 0; i < values.size(); ++i) {
        least[writer->Key(i)] = values[i];
      }
    }
    std::thread mover([&] {
      EXPECT_TRUE(AwaitCluster([&] {
        return RunToEnd({TIMECACHECTL, "--address", cluster.node(0).address(),
                         "cluster", "handover"})
                   .code == 0;
      }));
      cluster.node(1).Kill();
    });
    BackUp(cluster.node(2).address(), backup);
    mover.join();
    for (const auto& writer : writers) writer->Stop();
    // Those of the node alone.
    const auto info =
        cluster.CallerOfOne("kept", 2, absl::Seconds(10)).GetServer();
    ASSERT_TRUE(info.ok()) << info.status();
    ASSERT_TRUE(info->journal.has_value());
    EXPECT_GT(info->journal->commits, 0u);
  }
  const auto expect_least = [&](const Client& client) {
    for (const auto& each : least) {
      const auto entry = CallUntilOk([&] { return client.Get(each.first); });
      ASSERT_TRUE(entry.ok()) << entry.status();
      ASSERT_TRUE(entry->has_value()) << each.first;
      int is = 0;
      EXPECT_TRUE(absl::SimpleAtoi((*entry)->value, &is));
      EXPECT_GE(is, each.second) << each.first;
    }
  };
  TestClusterOptions options = SharedCluster();
  options.with_topics = [&](const std::string& brokers) {
    const Exit restored = RunToEnd({TIMECACHED, "cluster", "restore",
                                    "--cluster", "test", "--kafka-brokers",
                                    brokers, "--cluster-allow-unsafe", backup});
    EXPECT_EQ(restored.code, 0) << restored.err;
  };
  TestCluster cluster(options);
  expect_least(cluster.Caller("kept"));
  ExpectShared(cluster.Caller("default"), token);
  // And as that of one server.
  LocalServer server(directory.path() + "/journal", {"--restore", backup});
  expect_least(server.In("kept"));
  ExpectShared(server.In("default"), token);
  server.Stop();
}

// In a slot, so that a checkpoint is due at some 256 MiB.
constexpr int kLargeKeys = 4;
constexpr size_t kLargeBytes = size_t{512} << 10;

void PutLarge(const Client& client, int count) {
  CallOptions repeated;
  repeated.repeatable = true;
  const std::string value(kLargeBytes, 'x');
  for (int i = 0; i < count; ++i) {
    const auto put =
        client.Put(absl::StrCat("k", i % kLargeKeys), value, {}, repeated);
    ASSERT_TRUE(put.ok()) << put.status();
  }
}

uint64_t Checkpoints(const TestCluster& cluster) {
  uint64_t checkpoints = 0;
  for (size_t node = 0; node < cluster.size(); ++node) {
    const auto info =
        cluster.CallerOfOne("default", node, absl::Seconds(10)).GetServer();
    if (info.ok() && info->journal) checkpoints += info->journal->checkpoints;
  }
  return checkpoints;
}

// The bytes of a backup's archive, which becomes a journal there.
class BackupPipe {
 public:
  BackupPipe(const std::string& address, const std::string& journal)
      : from_(popen(
            absl::StrCat(TIMECACHECTL, " --address ", address, " backup -")
                .c_str(),
            "r")),
        to_(popen(absl::StrCat(TIMECACHECTL, " journal restore - ", journal,
                               " >/dev/null")
                      .c_str(),
                  "w")) {}

  // Once the backup has begun.
  void ReadSome() { Read(1); }
  // Returns how many there were.
  size_t ReadAll() {
    while (Read(size_t{1} << 20) > 0) {
    }
    EXPECT_EQ(pclose(from_), 0);
    EXPECT_EQ(pclose(to_), 0);
    return bytes_;
  }

 private:
  size_t Read(size_t most) {
    std::string piece(most, '\0');
    piece.resize(fread(piece.data(), 1, most, from_));
    EXPECT_EQ(fwrite(piece.data(), 1, piece.size(), to_), piece.size());
    bytes_ += piece.size();
    return piece.size();
  }

  FILE* const from_;
  FILE* const to_;
  size_t bytes_ = 0;
};

TEST(ClusterMoveTest, WhatABackupOfSharedSlotsHasNotReadIsNotTrimmed) {
  const server::TemporaryDirectory directory;
  TestClusterOptions options = SharedCluster();
  options.config += "limits: {response_timeout: 600s}\n";
  const TestCluster cluster(options);
  cluster.Create("large", Options(absl::Hours(1), Durability::kReplicated));
  const Client large = cluster.Caller("large");
  cluster.AwaitWhole();
  PutLarge(large, 440);
  ASSERT_EQ(Checkpoints(cluster), 0u);
  BackupPipe slow(cluster.addresses(2), directory.path() + "/slow");
  slow.ReadSome();
  PutLarge(large, 160);
  ASSERT_TRUE(AwaitCluster([&] { return Checkpoints(cluster) > 0; }));
  PutLarge(large, 1);
  EXPECT_GT(slow.ReadAll(), 400 * kLargeBytes);
  int backups = 0;
  // With the next append what the checkpoint has given up is deleted.
  EXPECT_TRUE(AwaitCluster([&] {
    PutLarge(large, 1);
    const std::string to = absl::StrCat(directory.path(), "/", ++backups);
    return BackupPipe(cluster.addresses(2), to).ReadAll() < 200 * kLargeBytes;
  }));
  LocalServer server(directory.path() + "/slow", {});
  for (int i = 0; i < kLargeKeys; ++i) {
    const auto entry = server.In("large").Get(absl::StrCat("k", i));
    ASSERT_TRUE(entry.ok()) << entry.status();
    ASSERT_TRUE(entry->has_value());
    EXPECT_EQ((*entry)->value.size(), kLargeBytes);
  }
  server.Stop();
}

}  // namespace
}  // namespace timecache::test
