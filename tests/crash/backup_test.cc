// Backups of a server under load, and servers that are made of them.

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/await.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/server_process.h"
#include "timecache/client.h"
#include "timecache/virtual_clock.h"
#include "timecache/watcher.h"

namespace timecache::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// By key, the number of the last put of it that was acknowledged.
using Entries = std::map<std::string, int>;

class BackupProcessTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return absl::StrCat(directory_.path(), "/", name);
  }
  std::unique_ptr<ServerProcess> Serve(
      const std::string& journal, std::vector<std::string> more = {},
      const std::vector<std::string>& wrapper = {}) const {
    more.insert(more.begin(), {"--listen", "127.0.0.1:0", "--virtual-clock",
                               "--journal", Path(journal)});
    return std::make_unique<ServerProcess>(
        more, std::map<std::string, std::string>(), wrapper);
  }
  static std::vector<std::string> Ctl(const ServerProcess& server,
                                      std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--address", server.address()});
    return arguments;
  }
  Exit BackUp(const ServerProcess& server, const std::string& to) const {
    return RunToEnd(Ctl(server, {"backup", Path(to), "--json"}));
  }
  static void Create(const ServerProcess& server) {
    for (const auto& [name, durability] :
         {std::pair("sync", Durability::kSync),
          std::pair("async", Durability::kAsync)}) {
      NamespaceOptions options;
      options.ttl = absl::Hours(1);
      options.durability = durability;
      options.event_retention = absl::Hours(9);
      const auto created =
          Client(server.address()).CreateNamespace(name, options);
      EXPECT_TRUE(created.ok()) << created.status();
    }
  }
  // So many MiB of a journal.
  static void Fill(const ServerProcess& server, int mebibytes) {
    const Client client = Client(server.address()).In("async");
    for (int i = 0; i < 2 * mebibytes; ++i) {
      const auto put =
          client.Put(absl::StrCat("fill", i), std::string(512 << 10, '\n'));
      ASSERT_TRUE(put.ok()) << put.status();
    }
  }

  server::TemporaryDirectory directory_;
};

// Puts numbers under keys of its own until it is ended.
class Writer {
 public:
  Writer(const ServerProcess& server, const std::string& ns, int id)
      : client_(Client(server.address()).In(ns)),
        prefix_(absl::StrCat(ns, id, ":")),
        thread_([this] { Run(); }) {}
  ~Writer() { End(); }
  void End() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Entries account() const {
    absl::MutexLock lock(&mu_);
    return account_;
  }

 private:
  void Run() {
    for (int i = 1; !stop_; ++i) {
      const std::string key = absl::StrCat(prefix_, i % 50);
      const auto put = client_.Put(key, absl::StrCat(i));
      EXPECT_TRUE(put.ok()) << put.status();
      absl::MutexLock lock(&mu_);
      account_[key] = i;
    }
  }

  const Client client_;
  const std::string prefix_;
  std::atomic<bool> stop_{false};
  mutable absl::Mutex mu_;
  Entries account_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

// All that it holds, and that each entry dies once.
Entries EntriesOf(const ServerProcess& server, const std::string& ns) {
  Entries entries;
  const absl::Status status =
      Client(server.address()).In(ns).Scan({}, [&](const Entry& entry) {
        entries[entry.key] = std::stoi(entry.value);
        return true;
      });
  EXPECT_TRUE(status.ok()) << status;
  return entries;
}

// Once their time is over.
void ExpectEachDiesOnce(const ServerProcess& server, const std::string& ns,
                        const Entries& entries) {
  Entries told;
  Watcher watcher(Client(server.address()).In(ns),
                  {.start = WatchStart::kEarliest});
  while (told.size() < entries.size()) {
    const auto next = watcher.Next(absl::Seconds(30));
    ASSERT_TRUE(next.ok()) << next.status() << " after " << told.size();
    for (const ExpiredEvent& event : next->events) {
      EXPECT_TRUE(told.emplace(event.key, std::stoi(event.value)).second)
          << event.key;
    }
  }
  EXPECT_EQ(told, entries);
}

TEST_F(BackupProcessTest, WhatWasAcknowledgedBeforeIsInABackupUnderWriters) {
  const auto server = Serve("journal");
  Create(*server);
  std::vector<std::unique_ptr<Writer>> writers;
  for (int i = 0; i < 2; ++i) {
    writers.push_back(std::make_unique<Writer>(*server, "sync", i));
    writers.push_back(std::make_unique<Writer>(*server, "async", i));
  }
  const auto acknowledged = [&] {
    Entries all;
    for (const auto& writer : writers) all.merge(writer->account());
    return all;
  };
  ASSERT_TRUE(Await([&] { return acknowledged().size() == 200; }));
  const Entries before = acknowledged();
  const Exit exit = BackUp(*server, "backup");
  const Entries after = acknowledged();
  ASSERT_EQ(exit.code, 0) << exit.err;
  const auto said = nlohmann::json::parse(exit.out);
  EXPECT_GT(said["bytes"], 0);
  EXPECT_FALSE(fs::exists(Path("backup.partial")));
  for (const auto& writer : writers) writer->End();
  server->process().Signal(SIGKILL);
  server->process().Wait();

  const auto restored = Serve("restored", {"--restore", Path("backup")});
  std::map<std::string, Entries> all;
  for (const char* ns : {"sync", "async"}) {
    const Entries& entries = all[ns] = EntriesOf(*restored, ns);
    EXPECT_EQ(entries.size(), 100u);
    for (const auto& [key, number] : entries) {
      // The last put may be on its way.
      EXPECT_GE(number, before.at(key)) << key;
      EXPECT_LE(number, after.at(key) + 50) << key;
    }
  }
  ASSERT_TRUE(
      VirtualClock(Client(restored->address())).Advance(absl::Hours(2)).ok());
  for (const auto& [ns, entries] : all) {
    ExpectEachDiesOnce(*restored, ns, entries);
  }
}

TEST_F(BackupProcessTest, AnArchiveThroughAPipeIsRestored) {
  const auto server = Serve("journal");
  Create(*server);
  const Client client = Client(server->address()).In("sync");
  ASSERT_TRUE(client.Put("key", "7").ok());
  const Exit exit =
      RunToEnd({"/bin/sh", "-c",
                absl::StrCat(TIMECACHECTL, " --address ", server->address(),
                             " backup - > ", Path("backup.tar"))});
  ASSERT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(exit.err, HasSubstr("backed up"));
  const auto restored =
      Serve("restored", {"--restore", "-"},
            {"/bin/sh", "-c",
             absl::StrCat("exec \"$@\" < ", Path("backup.tar")), "sh"});
  EXPECT_EQ(EntriesOf(*restored, "sync"), (Entries{{"key", 7}}));
  // By the tool, too; and once only.
  const auto restore = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {TIMECACHECTL, "journal", "restore",
                               Path("unpacked"), Path("again")});
    return RunToEnd(more);
  };
  fs::create_directory(Path("unpacked"));
  ASSERT_EQ(
      RunToEnd({"/bin/tar", "xf", Path("backup.tar"), "-C", Path("unpacked")})
          .code,
      0);
  EXPECT_EQ(restore({}).code, 0);
  EXPECT_EQ(restore({"--if-missing"}).code, 0);
  EXPECT_EQ(restore({}).code, 2);
}

TEST_F(BackupProcessTest, WhatCannotBeIsRefusedInOneLine) {
  ServerProcess memory;
  const Exit none = BackUp(memory, "none");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("NO_JOURNAL"), HasSubstr("--journal")));
  EXPECT_FALSE(fs::exists(Path("none.partial")));

  const auto server = Serve("journal");
  ASSERT_EQ(BackUp(*server, "backup").code, 0);
  EXPECT_THAT(BackUp(*server, "backup").err, HasSubstr("is not empty"));
  const auto refused = [&](const std::string& from, const std::string& to) {
    const Exit exit =
        RunToEnd({TIMECACHED, "--listen", "127.0.0.1:0", "--journal", Path(to),
                  "--restore", Path(from)});
    EXPECT_EQ(exit.code, 1);
    EXPECT_EQ(std::count(exit.err.begin(), exit.err.end(), '\n'), 1)
        << exit.err;
    return exit.err;
  };
  EXPECT_THAT(refused("backup", "journal"), HasSubstr("holds a journal"));
  EXPECT_THAT(refused("nothing", "new"), HasSubstr("no whole backup"));
  fs::remove(Path("backup/FORMAT"));
  EXPECT_THAT(refused("backup", "new"), HasSubstr("no whole backup"));
  const Exit nowhere = RunToEnd(
      {TIMECACHED, "--listen", "127.0.0.1:0", "--restore", Path("backup")});
  EXPECT_THAT(nowhere.err, HasSubstr("--restore needs --journal"));
  const Exit full =
      RunToEnd({"/bin/sh", "-c",
                absl::StrCat(TIMECACHECTL, " --address ", server->address(),
                             " backup - > /dev/full")});
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.err, HasSubstr("No space left"));
}

TEST_F(BackupProcessTest, AKilledCommandLeavesNoBackupAndFreesItsPlace) {
  const auto server = Serve("journal");
  Create(*server);
  Fill(*server, 40);
  {
    // Nobody reads more of what they write: they wait, and so does the server.
    ChildProcess first(Ctl(*server, {"backup", "-"}));
    first.ReadLine();
    ChildProcess second(Ctl(*server, {"backup", "-"}));
    second.ReadLine();
    const Exit third = BackUp(*server, "third");
    EXPECT_EQ(third.code, 2);
    EXPECT_THAT(third.err, HasSubstr("MAX_BACKUPS"));
    first.Signal(SIGKILL);
    second.Signal(SIGKILL);
    const Exit ended = first.Wait();
    EXPECT_EQ(ended.signal, SIGKILL) << ended.code << ": " << ended.err;
    EXPECT_EQ(second.Wait().signal, SIGKILL);
  }
  EXPECT_TRUE(Await([&] { return BackUp(*server, "after").code == 0; }));

  // In the middle of writing a directory.
  std::string killed;
  for (int i = 0; i < 20 && killed.empty(); ++i) {
    const std::string to = absl::StrCat("killed", i);
    ChildProcess backup(Ctl(*server, {"backup", Path(to)}));
    EXPECT_TRUE(Await([&] {
      return fs::exists(Path(to + ".partial/RESTORING")) ||
             fs::exists(Path(to));
    }));
    backup.Signal(SIGKILL);
    backup.Wait();
    if (!fs::exists(Path(to))) killed = to;
  }
  ASSERT_NE(killed, "");
  const Exit exit = RunToEnd({TIMECACHED, "--listen", "127.0.0.1:0",
                              "--journal", Path(killed + ".partial")});
  EXPECT_EQ(exit.code, 1);
  EXPECT_EQ(BackUp(*server, killed).code, 0);
  EXPECT_FALSE(fs::exists(Path(killed + ".partial")));
}

TEST_F(BackupProcessTest, AKilledServerEndsABackupAsNoWholeOne) {
  const auto server = Serve("journal");
  Create(*server);
  Fill(*server, 20);
  const std::string archive = Path("cut.tar");
  // It stops reading until the server is gone.
  ChildProcess backup(
      {"/bin/sh", "-c",
       absl::StrCat(TIMECACHECTL, " --address ", server->address(),
                    " backup - | (head -c "
                    "100000; echo half >&2; read go < ",
                    Path("go"), "; cat) > ", archive)});
  ASSERT_EQ(mkfifo(Path("go").c_str(), 0600), 0);
  EXPECT_EQ(backup.ReadErrorLine(), "half");
  server->process().Signal(SIGKILL);
  server->process().Wait();
  std::ofstream(Path("go")) << "go\n";
  const Exit exit = backup.Wait();
  EXPECT_THAT(exit.err, HasSubstr("timecachectl: "));
  const Exit restored =
      RunToEnd({"/bin/sh", "-c",
                absl::StrCat(TIMECACHECTL, " journal restore - ",
                             Path("restored"), " < ", archive)});
  EXPECT_EQ(restored.code, 2);
  EXPECT_THAT(restored.err, HasSubstr("cut off"));
  EXPECT_TRUE(fs::is_empty(Path("restored")));
}

}  // namespace
}  // namespace timecache::test
