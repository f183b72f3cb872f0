// timecachectl journal: on directories that a journal has written.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/log/local/local_journal.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/process.h"

namespace timecache {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using server::LocalJournal;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRecords = 200;

class CliJournalTest : public ::testing::Test {
 protected:
  CliJournalTest() {
    auto journal = Open(path_);
    for (int i = 0; i < kRecords; ++i) {
      journal->Append(static_cast<uint32_t>(i % 2),
                      {absl::StrCat("record ", i, std::string(100, 'r'))},
                      server::Durability::kAsync,
                      [](const absl::StatusOr<uint64_t>& position, auto) {
                        EXPECT_TRUE(position.ok()) << position.status();
                      });
      // Several groups, and segments.
      if (i % 10 == 9) journal->RunOnce();
    }
  }

  static std::unique_ptr<LocalJournal> Open(const std::string& path) {
    server::LocalJournalOptions options;
    options.partitions = 2;
    options.segment_bytes = 1 << 12;
    options.own_thread = false;
    auto journal = LocalJournal::Open(path, options);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return *std::move(journal);
  }

  static test::Exit Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TIMECACHECTL, "journal"});
    return test::ChildProcess(arguments).Wait();
  }
  json Check(int code) const {
    const test::Exit result = Run({"check", path_, "--json"});
    EXPECT_EQ(result.code, code) << result.err;
    return json::parse(result.out, nullptr, false);
  }

  std::string Segment(int number) const {
    return absl::StrCat(path_, "/0000000000000000000", number);
  }
  static void FlipByte(const std::string& path, std::streamoff offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char flipped = static_cast<char>(file.get() ^ 1);
    file.seekp(offset);
    file.put(flipped);
    EXPECT_TRUE(file.good());
  }

  const server::TemporaryDirectory root_;
  const std::string path_ = root_.path() + "/journal";
  const std::string copy_ = root_.path() + "/copy";
};

TEST_F(CliJournalTest, AnIntactJournalIsSaidToBeSo) {
  const test::Exit result = Run({"check", path_ + "/"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr(absl::StrCat(
                              path_, ": intact: 200 records in 2 partitions")));
  EXPECT_THAT(result.out, Not(HasSubstr("salvage")));
  EXPECT_EQ(result.err, "");
  const json report = Check(0);
  EXPECT_EQ(report.at("intact"), true);
  EXPECT_EQ(report.at("records"), kRecords);
  EXPECT_EQ(report.at("lost"), 0);
  EXPECT_EQ(report.at("partitions").at(1).at("end"), kRecords / 2);
  EXPECT_GE(report.at("files").size(), 2u);
}

TEST_F(CliJournalTest, OfADamagedOneItSaysWhichFileHowMuchAndWhatToDo) {
  FlipByte(Segment(1), 1'000);
  const test::Exit result = Run({"check", path_});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr(": damaged: "));
  EXPECT_THAT(result.out, HasSubstr(absl::StrCat(Segment(1), ": byte ")));
  EXPECT_THAT(result.out, HasSubstr("bytes readable"));
  EXPECT_THAT(result.out, HasSubstr("of positions 0 to 100 lost"));
  EXPECT_THAT(result.out, HasSubstr(absl::StrCat(
                              "timecachectl journal salvage ", path_, " ")));
  const json report = Check(1);
  EXPECT_EQ(report.at("intact"), false);
  EXPECT_GE(report.at("lost"), 1);
  EXPECT_EQ(report.at("lost").get<int>() + report.at("records").get<int>(),
            kRecords);
  EXPECT_EQ(report.at("files").at(0).at("path"), Segment(1));
  EXPECT_TRUE(report.at("files").at(0).contains("damage"));
  EXPECT_FALSE(report.at("files").at(1).contains("damage"));
}

TEST_F(CliJournalTest, RestoreOfAnArchiveSaysHowToRestoreOne) {
  const std::string archive = path_ + ".tar";
  const std::string to = path_ + ".new";
  std::ofstream(archive) << "an archive";
  const test::Exit result = Run({"restore", archive, to});
  fs::remove(archive);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err,
              HasSubstr(absl::StrCat("timecachectl journal restore - ", to,
                                     " < ", archive)));
  EXPECT_FALSE(fs::exists(to));
}

TEST_F(CliJournalTest, OfWhatCannotBeReadAtAllABackupIsLeft) {
  for (const auto& file : fs::directory_iterator(path_)) {
    fs::resize_file(file.path(), 0);
  }
  const test::Exit result = Run({"check", path_});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("nothing is readable"));
  EXPECT_THAT(result.out, HasSubstr("Restore a backup."));
  EXPECT_EQ(Check(1).at("intact"), false);
  EXPECT_EQ(Run({"salvage", path_, copy_}).code, 2);
}

TEST_F(CliJournalTest, SalvageMakesAJournalOfWhatIsReadable) {
  FlipByte(Segment(1), 1'000);
  const uint64_t readable = Check(1).at("records");
  const test::Exit result = Run({"salvage", path_, copy_});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr(absl::StrCat("copied ", readable, " records of ", path_,
                                     " to ", copy_)));
  EXPECT_THAT(result.out, HasSubstr("of positions 0 to 100 lost"));
  EXPECT_EQ(Run({"check", copy_}).code, 0);
  EXPECT_EQ(Run({"check", path_}).code, 1) << "it was changed";
  uint64_t records = 0;
  EXPECT_TRUE(Open(copy_)
                  ->Read({{{0, 0}, {1, 0}}},
                         [&](uint32_t, uint64_t, absl::string_view) {
                           ++records;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(records, readable);
}

TEST_F(CliJournalTest, AJournalInUseIsLeftAlone) {
  const auto journal = Open(path_);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"check", path_},
                                             {"salvage", path_, copy_}}) {
    const test::Exit result = Run(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("in use"));
    EXPECT_THAT(result.err, HasSubstr("stop it first"));
  }
  EXPECT_FALSE(fs::exists(copy_));
}

TEST_F(CliJournalTest, WhatIsNoJournalIsAnError) {
  fs::create_directory(copy_);
  for (const std::string& path : {copy_, root_.path() + "/nothing"}) {
    const test::Exit result = Run({"check", path});
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(path));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(copy_), {}), 0)
      << "a check has left a file";
}

}  // namespace
}  // namespace timecache
