// A process that is killed at each failpoint, on a real file system: what it
// was acknowledged is there when the journal is opened again.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/blocking_counter.h"
#include "gtest/gtest.h"
#include "server/base/failpoint.h"
#include "server/log/local/journal_copy.h"
#include "server/log/local/local_journal.h"
#include "tests/support/journal/journal_harness.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

constexpr uint32_t kKilledPartitions = 3;

// What a child reports to its parent, in one write.
struct Message {
  enum Kind : uint32_t { kAcknowledged, kTrims } kind;
  uint32_t partition;
  uint64_t position;
};

std::string RecordAt(uint32_t partition, uint64_t position) {
  return absl::StrCat(partition, ":", position, ":",
                      std::string(position * 37 % 300, 'r'));
}

// Where the child dies.
absl::string_view target;
std::atomic<int> hits_left = 0;

void KillAtTarget(absl::string_view name) {
  if (name == target && --hits_left == 0) raise(SIGKILL);
}

LocalJournalOptions Options() {
  LocalJournalOptions options;
  options.partitions = kKilledPartitions;
  options.segment_bytes = 4096;
  return options;
}

void Send(int pipe, Message message) {
  if (write(pipe, &message, sizeof(message)) != sizeof(message)) _exit(4);
}

// Opens the journal, works and closes it, until it is killed.
[[noreturn]] void RunChild(const std::string& directory, uint64_t seed,
                           int pipe) {
  std::mt19937_64 random(seed);
  for (int life = 0; life < 40; ++life) {
    auto journal = LocalJournal::Open(directory + "/journal", Options());
    if (!journal.ok()) _exit(5);
    for (int turn = 0; turn < 10; ++turn) {
      const int appends = 1 + random() % 6;
      absl::BlockingCounter done(appends);
      uint64_t next[kKilledPartitions];
      for (uint32_t p = 0; p < kKilledPartitions; ++p) {
        next[p] = (*journal)->End(p);
      }
      for (int i = 0; i < appends; ++i) {
        const uint32_t p = random() % kKilledPartitions;
        const uint64_t position = next[p]++;
        (*journal)->Append(
            p, {RecordAt(p, position)},
            random() % 2 == 0 ? Durability::kSync : Durability::kAsync,
            [&done, p, position, pipe](absl::StatusOr<uint64_t> result, auto) {
              if (!result.ok() || *result != position) _exit(6);
              Send(pipe, {Message::kAcknowledged, p, position});
              done.DecrementCount();
            });
      }
      done.Wait();
      const uint32_t p = random() % kKilledPartitions;
      if (const uint64_t end = (*journal)->End(p); end > 10) {
        Send(pipe, {Message::kTrims, p, end - 5});
        if (!(*journal)->TrimBefore(p, end - 5).ok()) _exit(7);
      }
    }
    const std::string backup =
        absl::StrCat(directory, "/backup.", getpid(), ".", life);
    if (!BackUp(journal->get(), FileSystem::Posix(), backup).ok()) _exit(8);
  }
  _exit(3);
}

class JournalKillTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Runs a child that dies at its hit of the failpoint, and takes note of what
  // it says. False if it did not die there.
  bool Kill(const std::string& failpoint, int hit, uint64_t seed) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      target = failpoint;
      hits_left = hit;
      SetFailpointHook(KillAtTarget);
      RunChild(directory_.path(), seed, ends[1]);
    }
    close(ends[1]);
    Message message;
    while (read(ends[0], &message, sizeof(message)) == sizeof(message)) {
      uint64_t& bound = message.kind == Message::kTrims
                            ? trimmed_[message.partition]
                            : ends_[message.partition];
      bound = std::max(
          bound, message.position + (message.kind == Message::kTrims ? 0 : 1));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "exit " << WEXITSTATUS(status);
    return WIFSIGNALED(status);
  }

  void VerifyRecords(const Journal& journal) {
    const ReadResult result = ReadAll(journal);
    ASSERT_TRUE(result.status.ok()) << result.status;
    for (uint32_t p = 0; p < kKilledPartitions; ++p) {
      ASSERT_EQ(result.partitions[p].size(), journal.End(p) - journal.First(p));
      for (const auto& [position, record] : result.partitions[p]) {
        ASSERT_EQ(record, RecordAt(p, position));
      }
    }
  }

  void Verify() {
    {
      LocalJournalOptions options = Options();
      options.own_thread = false;
      const auto journal =
          LocalJournal::Open(directory_.path() + "/journal", options);
      ASSERT_TRUE(journal.ok()) << journal.status();
      for (uint32_t p = 0; p < kKilledPartitions; ++p) {
        ASSERT_GE((*journal)->End(p), ends_[p]);
        ASSERT_LE((*journal)->First(p), trimmed_[p]);
      }
      VerifyRecords(**journal);
      // Another crash, not a close.
      std::filesystem::remove_all(directory_.path() + "/copy");
      std::filesystem::copy(directory_.path() + "/journal",
                            directory_.path() + "/copy");
    }
    std::filesystem::remove_all(directory_.path() + "/journal");
    std::filesystem::rename(directory_.path() + "/copy",
                            directory_.path() + "/journal");
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_.path())) {
      if (entry.path().filename() == "journal") continue;
      LocalJournalOptions options = Options();
      options.own_thread = false;
      options.partitions = 0;
      {
        const auto backup = LocalJournal::Open(entry.path().string(), options);
        // One that was not finished is not opened.
        const bool finished = std::filesystem::exists(entry.path() / "FORMAT");
        const bool begun =
            std::filesystem::exists(entry.path() / kRestoringFile);
        EXPECT_EQ(backup.ok(), finished) << backup.status();
        if (backup.ok()) VerifyRecords(**backup);
        // And is begun anew, where the other one is left alone. A directory
        // that nothing was put into is as good as none.
        if (!finished && begun) {
          EXPECT_FALSE(
              LocalJournal::Open(entry.path().string(), Options()).ok());
        }
        EXPECT_EQ(
            JournalCopy::Begin(FileSystem::Posix(), entry.path().string()).ok(),
            !finished);
      }
      std::filesystem::remove_all(entry.path());
      if (HasFatalFailure()) return;
    }
  }

  TemporaryDirectory directory_;
  uint64_t ends_[kKilledPartitions] = {};
  uint64_t trimmed_[kKilledPartitions] = {};
};

TEST_P(JournalKillTest, WhatWasAcknowledgedIsThereAfterwards) {
  std::mt19937_64 random(std::random_device{}());
  for (int round = 0; round < 4; ++round) {
    const uint64_t seed = random();
    const int hit = absl::StartsWith(GetParam(), "open.cut")
                        ? 1
                        : 1 + static_cast<int>(random() % 8);
    SCOPED_TRACE(absl::StrCat("round ", round, " hit ", hit, " seed ", seed));
    // A journal that needs to be cut.
    if (GetParam() == "open.cut" && round == 0) {
      ASSERT_TRUE(Kill("commit.written", 20, seed));
    }
    ASSERT_TRUE(Kill(GetParam(), hit, seed));
    ASSERT_NO_FATAL_FAILURE(Verify());
  }
}

INSTANTIATE_TEST_SUITE_P(AtEachFailpoint, JournalKillTest,
                         ::testing::ValuesIn(std::vector<std::string>(
                             std::begin(kFailpoints), std::end(kFailpoints))),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{".", "_"}});
                         });

}  // namespace
}  // namespace timecache::server
