// Backups of a journal that goes on, and what becomes of them.
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/failpoint.h"
#include "server/log/local/backup_archive.h"
#include "server/log/local/journal_copy.h"
#include "server/log/local/journal_tools.h"
#include "server/log/local/local_journal.h"
#include "server/log/local/record_backup.h"
#include "tests/support/journal/journal_harness.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBackup[] = "/backup";

class JournalBackupTest : public ::testing::Test {
 protected:
  JournalBackupTest() {
    EXPECT_TRUE(harness_.Open().ok());
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(
          harness_.AppendNow(i % 2, std::string(200, 'a' + i % 20)).ok());
    }
    EXPECT_TRUE(harness_.journal().TrimBefore(0, 20).ok());
    EXPECT_TRUE(harness_.journal().TrimBefore(1, 20).ok());
    harness_.RunUntilTrimmed();
    expected_ = ReadAll(harness_.journal()).partitions;
  }
  ~JournalBackupTest() override { SetFailpointHook(nullptr); }

  absl::Status BackUpTo(const std::string& to) {
    return BackUp(&harness_.journal(), &harness_.files(), to);
  }
  std::vector<RecordsByPosition> Read(const std::string& directory) {
    auto options = harness_.options();
    const auto journal = LocalJournal::Open(directory, options);
    EXPECT_TRUE(journal.ok()) << journal.status();
    const ReadResult result = ReadAll(**journal);
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.partitions;
  }
  void TrimAll() {
    LocalJournal& journal = harness_.journal();
    EXPECT_TRUE(journal.TrimBefore(0, journal.End(0)).ok());
    EXPECT_TRUE(journal.TrimBefore(1, journal.End(1)).ok());
    harness_.RunUntilTrimmed();
  }
  uint64_t segments() { return harness_.journal().statistics().segments; }
  // Those of a directory.
  std::vector<std::string> Names(const std::string& directory) {
    auto names = harness_.files().List(directory);
    return names.ok() ? *names : std::vector<std::string>();
  }

  JournalHarness harness_;
  std::vector<RecordsByPosition> expected_;
};

TEST_F(JournalBackupTest, ABackupHasWhatWasThereAndIsRestored) {
  ASSERT_TRUE(BackUpTo(kBackup).ok());
  ASSERT_TRUE(harness_.AppendNow(0, "later").ok());
  TrimAll();
  ASSERT_TRUE(RestoreJournal(&harness_.files(), kBackup, "/restored").ok());
  EXPECT_EQ(Read("/restored"), expected_);
  EXPECT_EQ(Read(kBackup), expected_);
  EXPECT_EQ(ReadFormat(&harness_.files(), "/restored")->id,
            harness_.journal().id());
  for (const char* copy : {kBackup, "/restored"}) {
    EXPECT_TRUE(*IsMarkedAsCopy(&harness_.files(), copy)) << copy;
  }
  EXPECT_FALSE(*IsMarkedAsCopy(&harness_.files(), kTestDirectory));
}

TEST_F(JournalBackupTest, WhatIsAppendedWhileItIsReadIsNotInIt) {
  const auto backup = harness_.journal().OpenBackup();
  std::string archive;
  while (true) {
    const auto piece = backup->Read(1000);
    ASSERT_TRUE(piece.ok()) << piece.status();
    if (piece->empty()) break;
    archive += *piece;
    ASSERT_TRUE(harness_.AppendNow(0, std::string(300, 'z')).ok());
  }
  EXPECT_EQ(archive.size(), backup->total_bytes());
  ASSERT_TRUE(Unpack(archive, &harness_.files(), kBackup).ok());
  EXPECT_EQ(Read(kBackup), expected_);
}

TEST_F(JournalBackupTest, SegmentsStayUntilTheyAreRead) {
  const uint64_t before = segments();
  ASSERT_GE(before, 4u);
  auto first = harness_.journal().OpenBackup();
  auto second = harness_.journal().OpenBackup();
  TrimAll();
  EXPECT_EQ(segments(), before);
  // Two segments and a half.
  ASSERT_TRUE(first->Read(11'000).ok());
  harness_.RunUntilTrimmed();
  EXPECT_EQ(segments(), before);
  second = nullptr;
  harness_.RunUntilTrimmed();
  EXPECT_EQ(segments(), before - 2);
  first = nullptr;
  harness_.RunUntilTrimmed();
  EXPECT_EQ(segments(), 1u);
}

TEST_F(JournalBackupTest, ARoundOfTrimmingUnderItTakesNothingFromIt) {
  auto backup = harness_.journal().OpenBackup();
  std::string archive;
  for (int i = 0;; ++i) {
    const auto piece = backup->Read(700);
    ASSERT_TRUE(piece.ok()) << piece.status();
    if (piece->empty()) break;
    archive += *piece;
    if (i % 5 == 0) TrimAll();
  }
  ASSERT_TRUE(Unpack(archive, &harness_.files(), kBackup).ok());
  EXPECT_EQ(Read(kBackup), expected_);
}

TEST_F(JournalBackupTest, TrimmedSegmentsThatAreStillThereAreNotInIt) {
  const auto pin = harness_.journal().OpenBackup();
  TrimAll();
  const auto backup = harness_.journal().OpenBackup();
  EXPECT_LT(backup->total_bytes(), pin->total_bytes() / 2);
}

TEST_F(JournalBackupTest, WritingToAnOpenedBackupLeavesTheJournalAlone) {
  ASSERT_TRUE(BackUpTo(kBackup).ok());
  {
    auto options = harness_.options();
    const auto backup = LocalJournal::Open(kBackup, options);
    ASSERT_TRUE(backup.ok());
    (*backup)->Append(0, {"other"}, Durability::kSync, [](auto, auto) {});
    (*backup)->RunOnce();
  }
  EXPECT_EQ(ReadAll(harness_.journal()).partitions, expected_);
}

TEST_F(JournalBackupTest, ADirectoryThatIsNotEmptyIsRefused) {
  ASSERT_TRUE(BackUpTo(kBackup).ok());
  for (const absl::Status& status :
       {BackUpTo(kBackup),
        RestoreJournal(&harness_.files(), kBackup, kBackup).status()}) {
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("holds a journal"));
  }
  EXPECT_EQ(Read(kBackup), expected_);
  harness_.files().SetContents("/other/notes", "mine");
  const absl::Status other = BackUpTo("/other");
  EXPECT_TRUE(absl::IsAlreadyExists(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("notes"));
  EXPECT_EQ(harness_.files().Contents("/other/notes"), "mine");
}

TEST_F(JournalBackupTest, AnIncompleteDirectoryIsNotRestored) {
  ASSERT_TRUE(BackUpTo(kBackup).ok());
  for (const std::string& path : harness_.files().Paths()) {
    // What these say is known without them.
    if (!absl::StartsWith(path, "/backup/") || absl::EndsWith(path, "/END") ||
        absl::EndsWith(path, "/COPY")) {
      continue;
    }
    auto files = harness_.files().Copy();
    ASSERT_TRUE(files->Remove(path).ok());
    EXPECT_FALSE(RestoreJournal(files.get(), kBackup, "/restored").ok())
        << path;
    EXPECT_FALSE(files->OpenToRead("/restored/FORMAT").ok());
  }
}

TEST_F(JournalBackupTest, ADamagedBackupIsNotRestored) {
  ASSERT_TRUE(BackUpTo(kBackup).ok());
  const auto segments = *ListSegments(&harness_.files(), kBackup);
  const std::string path = SegmentPath(kBackup, segments[0]);
  std::string contents = harness_.files().Contents(path);
  contents[contents.size() / 2] ^= 1;
  harness_.files().SetContents(path, contents);
  EXPECT_EQ(
      RestoreJournal(&harness_.files(), kBackup, "/restored").status().code(),
      absl::StatusCode::kDataLoss);
  EXPECT_THAT(Names("/restored"), IsEmpty());
}

TEST_F(JournalBackupTest, AnArchiveInPiecesOfAnySizeIsTheSame) {
  const std::string archive = ArchiveOf(&harness_.journal());
  for (const size_t piece : {1, 7, 511, 512, 513, 100'000}) {
    auto files = harness_.files().Copy();
    const absl::Status status = Unpack(archive, files.get(), kBackup, piece);
    ASSERT_TRUE(status.ok()) << piece << ": " << status;
    for (const std::string& path : files->Paths()) {
      if (absl::StartsWith(path, "/backup/0")) {
        EXPECT_EQ(files->Contents(path),
                  files->Contents(absl::StrCat(kTestDirectory,
                                               path.substr(strlen(kBackup)))));
      }
    }
  }
}

TEST_F(JournalBackupTest, AnArchiveThatIsCutOffIsRefusedWhereverThatIs) {
  const std::string archive = ArchiveOf(&harness_.journal());
  for (size_t size = 0; size + 1024 < archive.size(); size += 97) {
    auto files = harness_.files().Copy();
    const absl::Status status =
        Unpack(archive.substr(0, size), files.get(), kBackup);
    ASSERT_TRUE(absl::IsDataLoss(status)) << size << ": " << status;
    ASSERT_THAT(*files->List(kBackup), IsEmpty()) << size;
  }
}

TEST_F(JournalBackupTest, ADamagedArchiveIsRefusedOrTheSame) {
  const std::string archive = ArchiveOf(&harness_.journal());
  std::mt19937_64 random(4711);
  int refused = 0;
  constexpr int kRounds = 300;
  for (int i = 0; i < kRounds; ++i) {
    std::string damaged = archive;
    damaged[random() % damaged.size()] ^= 1 << random() % 8;
    auto files = harness_.files().Copy();
    const absl::Status status = Unpack(damaged, files.get(), kBackup);
    if (!status.ok()) {
      ++refused;
      EXPECT_FALSE(files->OpenToRead("/backup/FORMAT").ok()) << i;
      continue;
    }
    // A bit of what no record is in: padding, or one of TRIM's two slots.
    auto options = harness_.options();
    options.files = files.get();
    const auto journal = LocalJournal::Open(kBackup, options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ(ReadAll(**journal).partitions, expected_) << i;
  }
  EXPECT_GT(refused, kRounds / 2);
}

TEST_F(JournalBackupTest, WhatIsNoBackupIsRefused) {
  const auto code = [this](const std::string& bytes) {
    return Unpack(bytes, &harness_.files(), kBackup).code();
  };
  EXPECT_EQ(code(std::string(2000, 'x')), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(ArchiveHeader("passwd", 0, 0) + ArchiveEnd()),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(ArchiveHeader("../../FORMAT", 5000, 0) + ArchiveEnd()),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(ArchiveHeader("TRIM", 0, 0) + ArchiveHeader("TRIM", 0, 0)),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(ArchiveEnd()), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Names(kBackup), IsEmpty());
}

TEST_F(JournalBackupTest, AFullDiskLeavesNothingBehind) {
  const std::string archive = ArchiveOf(&harness_.journal());
  for (const uint64_t room : {0, 5'000, 15'000, 24'000}) {
    auto files = harness_.files().Copy();
    files->SetRoom(files->used_bytes() + room);
    const absl::Status status = Unpack(archive, files.get(), kBackup);
    ASSERT_TRUE(absl::IsResourceExhausted(status)) << room << ": " << status;
    EXPECT_THAT(*files->List(kBackup), IsEmpty());
  }
}

TEST_F(JournalBackupTest, APowerLossLeavesAWholeBackupOrNone) {
  const std::string archive = ArchiveOf(&harness_.journal());
  std::mt19937_64 random(20111204);
  ASSERT_TRUE(Unpack(archive, &harness_.files(), kBackup).ok());
  // What Finish has answered for is there.
  auto files = harness_.files().CopyWithoutPower(
      MemoryFileSystem::Unsynced::kDropped, &random);
  auto options = harness_.options();
  options.files = files.get();
  const auto journal = LocalJournal::Open(kBackup, options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(ReadAll(**journal).partitions, expected_);
}

// What a hook needs, which is a plain function.
MemoryFileSystem* disk = nullptr;
std::unique_ptr<MemoryFileSystem> disk_then;

TEST_F(JournalBackupTest, ACrashBeforeTheEndLeavesWhatIsBegunAnew) {
  const std::string archive = ArchiveOf(&harness_.journal());
  disk = &harness_.files();
  SetFailpointHook([](absl::string_view name) {
    if (name != "restore.copied") return;
    std::mt19937_64 random(1);
    disk_then = disk->CopyWithoutPower(MemoryFileSystem::Unsynced::kKeptInPart,
                                       &random);
  });
  ASSERT_TRUE(Unpack(archive, &harness_.files(), kBackup).ok());
  SetFailpointHook(nullptr);
  auto options = harness_.options();
  options.files = disk_then.get();
  const auto early = LocalJournal::Open(kBackup, options);
  EXPECT_FALSE(early.ok());
  EXPECT_FALSE(RestoreJournal(disk_then.get(), kBackup, "/restored").ok());
  const absl::Status again = Unpack(archive, disk_then.get(), kBackup);
  ASSERT_TRUE(again.ok()) << again;
  const auto journal = LocalJournal::Open(kBackup, options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(ReadAll(**journal).partitions, expected_);
}

TEST_F(JournalBackupTest, AKillAtAnyChangeLeavesWhatIsBegunAnew) {
  const std::string archive = ArchiveOf(&harness_.journal());
  std::mt19937_64 random(20111204);
  int kills = 0;
  for (bool killed = true; killed; ++kills) {
    SCOPED_TRACE(absl::StrCat("killed after ", kills, " changes"));
    const auto disk = harness_.files().Copy();
    disk->KillAfter(kills);
    killed = !Unpack(archive, disk.get(), kBackup).ok();
    for (const bool power : {true, false}) {
      SCOPED_TRACE(power ? "with power" : "without");
      const auto files =
          power ? disk->Copy()
                : disk->CopyWithoutPower(
                      MemoryFileSystem::Unsynced::kKeptInPart, &random);
      auto options = harness_.options();
      options.files = files.get();
      if (!files->OpenToRead("/backup/FORMAT").ok()) {
        ASSERT_TRUE(killed);
        ASSERT_FALSE(RestoreJournal(files.get(), kBackup, "/restored").ok());
        const absl::Status again = Unpack(archive, files.get(), kBackup);
        ASSERT_TRUE(again.ok()) << again;
      }
      const auto journal = LocalJournal::Open(kBackup, options);
      ASSERT_TRUE(journal.ok()) << journal.status();
      ASSERT_EQ(ReadAll(**journal).partitions, expected_);
    }
  }
  EXPECT_GT(kills, 20);
}

// As tar packs the directory of a server that was killed.
TEST_F(JournalBackupTest, TemporaryFilesOfAnArchiveArePassedOver) {
  const std::string archive =
      absl::StrCat(ArchiveHeader("TRIM.tmp", 4, 0), "half", ArchivePadding(4),
                   ArchiveOf(&harness_.journal()));
  const absl::Status status = Unpack(archive, &harness_.files(), kBackup);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(harness_.files().OpenToRead("/backup/TRIM.tmp").ok());
  EXPECT_EQ(Read(kBackup), expected_);
}

// As of a journal that is elsewhere.
TEST_F(JournalBackupTest, ABackupFromRecordsHasThemAtTheirPlaces) {
  const LocalJournal& journal = harness_.journal();
  RecordBackup backup({journal.First(0), journal.First(1)},
                      /*segment_bytes=*/4096);
  std::string archive;
  const auto add = [&](uint32_t partition, uint64_t position,
                       absl::string_view record) {
    archive += backup.Take(100);
    return backup.Add(partition, position, record);
  };
  ASSERT_EQ(journal.Read({{{0, journal.First(0)}, {1, journal.First(1)}}}, add),
            absl::OkStatus());
  const std::string large(RecordBackup::kGroupBytes, 'x');
  for (int i = 0; i < 3; ++i) {
    const uint64_t end = backup.next(1);
    ASSERT_EQ(backup.Add(1, end, large), absl::OkStatus());
    expected_[1][end] = large;
  }
  EXPECT_TRUE(absl::IsDataLoss(backup.Add(0, backup.next(0) + 1, "gap")));
  backup.Finish();
  while (backup.ready() > 0) archive += backup.Take(1000);
  ASSERT_EQ(Unpack(archive, &harness_.files(), kBackup), absl::OkStatus());
  EXPECT_GE(CheckJournal(&harness_.files(), kBackup)->files.size(), 3u);
  EXPECT_TRUE(*IsMarkedAsCopy(&harness_.files(), kBackup));
  EXPECT_EQ(Read(kBackup), expected_);
}

TEST_F(JournalBackupTest, AClosedJournalIsReadWithoutAChange) {
  ASSERT_TRUE(BackUpTo(kBackup).ok());
  const auto names = Names(kBackup);
  std::vector<RecordsByPosition> records(2);
  const auto add = [&](uint32_t partition, uint64_t position,
                       absl::string_view record) {
    records[partition][position] = std::string(record);
    return absl::OkStatus();
  };
  EXPECT_EQ(ReadClosedJournal(&harness_.files(), kBackup, add),
            absl::OkStatus());
  EXPECT_EQ(records, expected_);
  EXPECT_EQ(Names(kBackup), names);
  EXPECT_TRUE(
      absl::IsNotFound(ReadClosedJournal(&harness_.files(), "/missing", add)));
}

TEST_F(JournalBackupTest, ABackupFromNoRecordsIsAJournal) {
  RecordBackup backup({7, 0});
  backup.Finish();
  ASSERT_EQ(Unpack(backup.Take(SIZE_MAX), &harness_.files(), kBackup),
            absl::OkStatus());
  const auto journal = LocalJournal::Open(kBackup, harness_.options());
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ((*journal)->First(0), 7u);
  EXPECT_EQ((*journal)->End(0), 7u);
}

// A server that starts where a restore was interrupted would begin with
// nothing.
TEST_F(JournalBackupTest, NoJournalIsCreatedWhereARestoreWasInterrupted) {
  harness_.files().SetContents("/backup/RESTORING", "");
  const auto journal = LocalJournal::Open(kBackup, harness_.options());
  EXPECT_TRUE(absl::IsFailedPrecondition(journal.status()));
  EXPECT_THAT(std::string(journal.status().message()),
              HasSubstr("restore it again"));
}

// On real files: tar knows the archive, and we its.
TEST(JournalTarTest, TarUnpacksAnArchiveAndPacksOne) {
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  LocalJournalOptions options;
  options.partitions = 1;
  options.own_thread = false;
  auto journal = LocalJournal::Open(path + "/journal", options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  (*journal)->Append(0, {"record"}, Durability::kSync, [](auto, auto) {});
  (*journal)->RunOnce();
  std::ofstream(path + "/backup.tar", std::ios::binary)
      << ArchiveOf(journal->get());
  const std::string commands =
      absl::StrCat("cd ", path,
                   " && mkdir out && tar xf backup.tar -C out && tar cf "
                   "again.tar -C out . && tar cf named.tar out");
  ASSERT_EQ(std::system(commands.c_str()), 0);
  FileSystem* const files = FileSystem::Posix();
  ASSERT_TRUE(RestoreJournal(files, path + "/out", path + "/restored").ok());
  for (const char* name : {"again", "named"}) {
    std::ifstream file(absl::StrCat(path, "/", name, ".tar"), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const absl::Status status =
        Unpack(bytes, files, absl::StrCat(path, "/", name));
    EXPECT_TRUE(status.ok()) << name << ": " << status;
  }
}

TEST(JournalTarTest, TwoCopiesToOneDirectoryAreRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/backup";
  const auto first = JournalCopy::Begin(FileSystem::Posix(), path);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      JournalCopy::Begin(FileSystem::Posix(), path).status()));
}

}  // namespace
}  // namespace timecache::server
