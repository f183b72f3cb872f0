// Directories that earlier versions wrote open for ever. testdata/v1 is never
// written again: a change that needs that is a new version of the format.
#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/log/local/journal_tools.h"
#include "server/log/local/local_journal.h"
#include "tests/support/journal/journal_harness.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

// Three partitions, 40 appends, trimmed before 12, 12 and 8,
// segments of 1 KiB, closed in order.
std::string RecordOfVersion1(uint32_t partition, uint64_t position) {
  return absl::StrCat(partition, "/", position, "/",
                      std::string(position * 11 % 70, 'v'));
}

class JournalFormatTest : public ::testing::Test {
 protected:
  JournalFormatTest() {
    std::filesystem::copy(JOURNAL_TESTDATA "/v1", directory_.path(),
                          std::filesystem::copy_options::recursive);
  }
  void ExpectAll(const Journal& journal) {
    const ReadResult result = ReadAll(journal);
    ASSERT_TRUE(result.status.ok()) << result.status;
    for (uint32_t p = 0; p < 3; ++p) {
      EXPECT_EQ(journal.First(p), p < 2 ? 12 : 8);
      EXPECT_EQ(journal.End(p), 40);
      EXPECT_EQ(result.partitions[p].size(), p < 2 ? 28 : 32);
      for (const auto& [position, record] : result.partitions[p]) {
        EXPECT_EQ(record, RecordOfVersion1(p, position));
      }
    }
  }

  TemporaryDirectory directory_;
};

TEST_F(JournalFormatTest, AJournalOfVersion1IsReadAndWritten) {
  LocalJournalOptions options;
  options.own_thread = false;
  {
    const auto journal = LocalJournal::Open(directory_.path(), options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ(absl::BytesToHexString((*journal)->id()),
              "79cd8f9ac772f7eac3d626aa8c542ead");
    ExpectAll(**journal);
    uint64_t position = 0;
    (*journal)->Append(1, {"new"}, Durability::kSync,
                       [&](absl::StatusOr<uint64_t> result, auto) {
                         ASSERT_TRUE(result.ok());
                         position = *result;
                       });
    (*journal)->RunOnce();
    EXPECT_EQ(position, 40);
  }
  const auto again = LocalJournal::Open(directory_.path(), options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->End(1), 41);
}

TEST_F(JournalFormatTest, AJournalOfVersion1IsReadAfterACrash) {
  std::filesystem::remove(directory_.path() + "/END");
  LocalJournalOptions options;
  options.own_thread = false;
  const auto journal = LocalJournal::Open(directory_.path(), options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ExpectAll(**journal);
}

TEST_F(JournalFormatTest, AJournalOfVersion1IsChecked) {
  const auto report = CheckJournal(FileSystem::Posix(), directory_.path());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->intact) << report->ToString();
}

}  // namespace
}  // namespace timecache::server
