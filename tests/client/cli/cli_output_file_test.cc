// The files that timecachectl writes stay what they are: links, devices, FIFOs,
// modes.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/output_file.h"
#include "client/cli/resume_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace fs = std::filesystem;
using Replace = OutputFile::Replace;

// A directory of the test's own, and what it holds.
class Files {
 protected:
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return (std::ostringstream() << file.rdbuf()).str();
  }
  static struct stat StatOf(const std::string& path) {
    struct stat status = {};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status;
  }
  static unsigned ModeOf(const std::string& path) {
    return StatOf(path).st_mode & 0777;
  }
  void Make(const std::string& text, mode_t mode) const {
    std::ofstream(path_) << text;
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
  }
  static absl::Status WriteAll(const std::string& path, Replace replace,
                               const std::string& text) {
    auto file = OutputFile::Open(path, replace);
    if (!file.ok()) return file.status();
    absl::Status status = file->Write(text);
    if (status.ok()) status = file->Finish();
    return status;
  }

  static constexpr Replace kBoth[] = {Replace::kWhenWhole, Replace::kInPlace};
  const server::TemporaryDirectory root_;
  const std::string directory_ = root_.path();
  const std::string path_ = directory_ + "/file";
};

class OutputFileTest : public ::testing::Test, protected Files {};
class OutputFileCommandTest : public CliTest, protected Files {};

TEST_F(OutputFileTest, ANewFileIsOnlyItsOwners) {
  for (const Replace replace : kBoth) {
    EXPECT_EQ(WriteAll(path_, replace, "new"), absl::OkStatus());
    EXPECT_EQ(Content(path_), "new");
    EXPECT_EQ(ModeOf(path_), 0600u);
    EXPECT_FALSE(fs::exists(path_ + ".partial"));
    fs::remove(path_);
  }
}

TEST_F(OutputFileTest, AFileThatExistsKeepsItsModeAndOwner) {
  for (const Replace replace : kBoth) {
    for (const mode_t mode : {0600u, 0640u, 0664u}) {
      Make("longer than it is to be", mode);
      // Only root may give files away.
      const uid_t owner = geteuid() == 0 ? 65534 : geteuid();
      ASSERT_EQ(chown(path_.c_str(), owner, -1), 0);
      EXPECT_EQ(WriteAll(path_, replace, "new"), absl::OkStatus());
      EXPECT_EQ(Content(path_), "new");
      EXPECT_EQ(ModeOf(path_), mode);
      EXPECT_EQ(StatOf(path_).st_uid, owner);
      fs::remove(path_);
    }
  }
}

TEST_F(OutputFileTest, AFileIsReplacedOnlyOnceItIsWhole) {
  Make("old", 0600);
  {
    auto file = OutputFile::Open(path_, Replace::kWhenWhole);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->Write("half of the new"), absl::OkStatus());
    EXPECT_EQ(Content(path_), "old");
    EXPECT_EQ(ModeOf(path_ + ".partial"), 0600u);
    // A second writer would mix up the two.
    EXPECT_THAT(WriteAll(path_, Replace::kWhenWhole, "x").message(),
                HasSubstr("in use by another timecachectl"));
  }
  EXPECT_EQ(Content(path_), "old");
  EXPECT_FALSE(fs::exists(path_ + ".partial"));
}

TEST_F(OutputFileTest, ALinkStaysOneAndItsTargetIsWritten) {
  const std::string link = directory_ + "/link";
  for (const Replace replace : kBoth) {
    // A target that is not there yet, then the same again.
    fs::create_symlink("file", link);
    for (const char* text : {"first", "second"}) {
      EXPECT_EQ(WriteAll(link, replace, text), absl::OkStatus());
      EXPECT_TRUE(fs::is_symlink(link));
      EXPECT_FALSE(fs::is_symlink(path_));
      EXPECT_EQ(Content(path_), text);
    }
    fs::remove(link);
    fs::remove(path_);
  }
  fs::create_symlink("link", link);
  EXPECT_THAT(WriteAll(link, Replace::kWhenWhole, "x").message(),
              HasSubstr("Too many levels of symbolic links"));
}

TEST_F(OutputFileTest, AnotherNameOfTheFileStaysOne) {
  Make("old", 0600);
  const std::string other = directory_ + "/other";
  fs::create_hard_link(path_, other);
  EXPECT_EQ(WriteAll(path_, Replace::kWhenWhole, "new"), absl::OkStatus());
  EXPECT_EQ(Content(other), "new");
}

TEST_F(OutputFileTest, ALinkAtThePlaceOfThePartialFileIsNotFollowed) {
  Make("old", 0600);
  const std::string victim = directory_ + "/victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, path_ + ".partial");
  EXPECT_FALSE(WriteAll(path_, Replace::kWhenWhole, "new").ok());
  EXPECT_EQ(Content(victim), "precious");
  EXPECT_EQ(Content(path_), "old");
}

TEST_F(OutputFileTest, AFifoIsWrittenThrough) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0640), 0);
  for (const Replace replace : kBoth) {
    auto reader =
        std::async(std::launch::async, [this] { return Content(path_); });
    EXPECT_EQ(WriteAll(path_, replace, "through"), absl::OkStatus());
    EXPECT_EQ(reader.get(), "through");
    EXPECT_TRUE(S_ISFIFO(StatOf(path_).st_mode));
    EXPECT_EQ(ModeOf(path_), 0640u);
  }
}

TEST_F(OutputFileTest, ADirectoryOrNoneIsRefused) {
  for (const Replace replace : kBoth) {
    EXPECT_THAT(WriteAll(directory_, replace, "x").message(),
                HasSubstr("Is a directory"));
    EXPECT_THAT(WriteAll(directory_ + "/absent/file", replace, "x").message(),
                HasSubstr("No such file or directory"));
  }
}

// In a process of its own: its user has no rights on what it may not touch.
int WriteAsAnother(const std::string& path, Replace replace,
                   const std::string& error) {
  if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) return 3;
  auto file = OutputFile::Open(path, replace);
  if (file.ok()) return file->Write("new").ok() && file->Finish().ok() ? 0 : 1;
  std::fprintf(stderr, "%s\n", std::string(file.status().message()).c_str());
  return absl::StrContains(file.status().message(), error) ? 2 : 1;
}

TEST_F(OutputFileTest, ADirectoryThatTakesNoNewFileIsNamed) {
  ASSERT_EQ(chmod(directory_.c_str(), 0555), 0);
  for (const Replace replace : kBoth) {
    EXPECT_EXIT(
        _exit(WriteAsAnother(
            path_, replace,
            absl::StrCat(path_, ": cannot create a file in ", directory_))),
        ::testing::ExitedWithCode(2), "Permission denied");
  }
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
}

TEST_F(OutputFileTest, AFileIsWrittenInPlaceWhereItCannotBeReplaced) {
  Make("old", 0666);
  ASSERT_EQ(chmod(directory_.c_str(), 0555), 0);
  const ino_t inode = StatOf(path_).st_ino;
  EXPECT_EXIT(_exit(WriteAsAnother(path_, Replace::kWhenWhole, "")),
              ::testing::ExitedWithCode(0), "");
  // Nor where it would get another owner.
  EXPECT_EQ(Content(path_), "new");
  EXPECT_EQ(StatOf(path_).st_ino, inode);
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  if (geteuid() == 0) {
    EXPECT_EXIT(_exit(WriteAsAnother(path_, Replace::kWhenWhole, "")),
                ::testing::ExitedWithCode(0), "");
    EXPECT_EQ(StatOf(path_).st_ino, inode);
    EXPECT_EQ(StatOf(path_).st_uid, 0u);
    EXPECT_EQ(ModeOf(path_), 0666u);
    EXPECT_FALSE(fs::exists(path_ + ".partial"));
  }
}

TEST_F(OutputFileTest, AFileThatMayNotBeWrittenIsNotReplaced) {
  Make("old", 0444);
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EXIT(_exit(WriteAsAnother(path_, Replace::kWhenWhole, path_)),
              ::testing::ExitedWithCode(2), "Permission denied");
  EXPECT_EQ(Content(path_), "old");
}

TEST_F(OutputFileTest, AResumeFileKeepsItsModeAndANewOneIsOnlyItsOwners) {
  const auto save = [this] {
    auto file = ResumeFile::Open(path_, {"a"});
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Record("a", "token", absl::UnixEpoch()).ok());
  };
  save();
  EXPECT_EQ(ModeOf(path_), 0600u);
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  save();
  EXPECT_EQ(ModeOf(path_), 0640u);
  // A link to one that is not there yet stays a link.
  const std::string link = directory_ + "/link";
  fs::rename(path_, link);
  fs::remove(link);
  fs::create_symlink("file", link);
  EXPECT_TRUE(ResumeFile::Open(link, {"a"}).ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(OutputFileCommandTest, DumpAndTimelineWriteThroughADevice) {
  ASSERT_TRUE(client_.Put("a", "1").ok());
  // A name of the test's own in place of /dev/full, which others share.
  fs::create_symlink("/dev/full", path_);
  const auto before = StatOf("/dev/full");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"dump", path_},
        {"dump", path_, "--format", "binary"},
        {"bench", "-n", "default", "--operations", "10", "--timeline",
         path_}}) {
    const test::Exit exit = Run(arguments);
    EXPECT_EQ(exit.code, 2);
    EXPECT_THAT(exit.err, HasSubstr(path_ + ": No space left on device"));
    EXPECT_TRUE(fs::is_symlink(path_));
    const auto after = StatOf("/dev/full");
    EXPECT_TRUE(S_ISCHR(after.st_mode));
    EXPECT_EQ(after.st_rdev, before.st_rdev);
    EXPECT_EQ(after.st_mode, before.st_mode);
    EXPECT_FALSE(fs::exists("/dev/full.partial"));
  }
}

TEST_F(OutputFileCommandTest, StandardOutputByItsNamesIsStandardOutput) {
  ASSERT_TRUE(client_.Put("a", "1").ok());
  // As a pipe, and as a file with something in it.
  for (const char* name : {"-", "/dev/stdout", "/dev/fd/1"}) {
    const test::Exit exit = Run({"dump", name});
    EXPECT_EQ(exit.code, 0) << exit.err;
    EXPECT_THAT(exit.out, StartsWith("{\"dump\""));
    EXPECT_THAT(exit.out,
                ::testing::EndsWith("{\"dump_end\":{\"entries\":1}}\n"));
    Make("", 0600);
    const test::Exit shell = test::RunToEnd(
        {"/bin/sh", "-c",
         absl::StrCat("{ echo before; ", TIMECACHECTL, " --address ",
                      service_.address(), " dump ", name, "; } > ", path_)});
    EXPECT_EQ(shell.code, 0) << shell.err;
    EXPECT_THAT(Content(path_), StartsWith("before\n{\"dump\""));
    EXPECT_THAT(Content(path_), ::testing::EndsWith("{\"entries\":1}}\n"));
  }
}

}  // namespace
}  // namespace timecache::cli
