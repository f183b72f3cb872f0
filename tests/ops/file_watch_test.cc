#include "server/ops/file_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/ops/read_file.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Never by itself within a test.
constexpr absl::Duration kNever = absl::Hours(24);
constexpr absl::Duration kSoon = absl::Milliseconds(5);
constexpr absl::Duration kPatience = absl::Seconds(60);

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "file_watch.XXXXXX").string();
    dir_ = mkdtemp(name.data());
  }
  ~FileWatchTest() override { std::filesystem::remove_all(dir_); }

  std::string Path(const std::string& name) const { return dir_ / name; }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return Path(name);
  }

  // Adds a set whose callbacks are written down in seen_.
  void Watch(const std::vector<std::string>& paths,
             absl::Duration interval = kNever) {
    ASSERT_TRUE(watch_
                    .Add(paths, interval,
                         [this](const FileWatch::Contents& contents) {
                           absl::MutexLock lock(&mu_);
                           seen_.push_back(Text(contents));
                         })
                    .ok());
  }

  std::vector<std::string> TakeSeen() {
    absl::MutexLock lock(&mu_);
    return std::exchange(seen_, {});
  }

  std::vector<std::string> CheckAndTake() {
    watch_.Check();
    return TakeSeen();
  }

  static std::string Text(const FileWatch::Contents& contents) {
    std::string text;
    for (const auto& content : contents) {
      text += "[";
      text += content.ok() ? *content
                           : absl::StatusCodeToString(content.status().code());
      text += "]";
    }
    return text;
  }

  std::filesystem::path dir_;
  absl::Mutex mu_;
  std::vector<std::string> seen_;
  FileWatch watch_;
};

TEST_F(FileWatchTest, TellsTheFirstContentBeforeAddReturns) {
  Watch({Write("a", "one"), Write("b", "two")});
  EXPECT_THAT(TakeSeen(), ElementsAre("[one][two]"));
}

TEST_F(FileWatchTest, TellsNothingWhereNothingChanged) {
  Watch({Write("a", "one")});
  TakeSeen();
  EXPECT_THAT(CheckAndTake(), IsEmpty());
  // Written again, and yet the same.
  Write("a", "one");
  EXPECT_THAT(CheckAndTake(), IsEmpty());
}

TEST_F(FileWatchTest, ChangeOfOneFileTellsTheWholeSet) {
  Watch({Write("a", "one"), Write("b", "two")});
  TakeSeen();
  Write("b", "owt");
  EXPECT_THAT(CheckAndTake(), ElementsAre("[one][owt]"));
}

TEST_F(FileWatchTest, SetsAreToldApart) {
  Watch({Write("a", "one")});
  Watch({Write("b", "two")});
  TakeSeen();
  Write("a", "three");
  EXPECT_THAT(CheckAndTake(), ElementsAre("[three]"));
}

TEST_F(FileWatchTest, SeesRenameOverThePath) {
  Watch({Write("a", "one")});
  TakeSeen();
  std::filesystem::rename(Write("new", "eno"), Path("a"));
  EXPECT_THAT(CheckAndTake(), ElementsAre("[eno]"));
}

TEST_F(FileWatchTest, SeesTheSymlinkSwapOfAKubernetesVolume) {
  std::filesystem::create_directory(dir_ / "..1");
  std::filesystem::create_directory(dir_ / "..2");
  Write("..1/tls.crt", "one");
  Write("..2/tls.crt", "two");
  std::filesystem::create_symlink("..1", dir_ / "..data");
  std::filesystem::create_symlink("..data/tls.crt", dir_ / "tls.crt");
  Watch({Path("tls.crt")});
  EXPECT_THAT(TakeSeen(), ElementsAre("[one]"));

  std::filesystem::create_symlink("..2", dir_ / "..data_tmp");
  std::filesystem::rename(dir_ / "..data_tmp", dir_ / "..data");
  std::filesystem::remove_all(dir_ / "..1");
  EXPECT_THAT(CheckAndTake(), ElementsAre("[two]"));
}

TEST_F(FileWatchTest, TellsThatAFileVanishedAndCameBackOnceEach) {
  Watch({Write("a", "one")});
  TakeSeen();
  std::filesystem::remove(Path("a"));
  EXPECT_THAT(CheckAndTake(), ElementsAre("[NOT_FOUND]"));
  EXPECT_THAT(CheckAndTake(), IsEmpty());
  Write("a", "one");
  EXPECT_THAT(CheckAndTake(), ElementsAre("[one]"));
}

TEST_F(FileWatchTest, MissingFileMayComeLater) {
  Watch({Path("a")});
  EXPECT_THAT(TakeSeen(), ElementsAre("[NOT_FOUND]"));
  Write("a", "");
  EXPECT_THAT(CheckAndTake(), ElementsAre("[]"));
}

TEST_F(FileWatchTest, LooksByItselfAtTheInterval) {
  const std::string path = Write("a", "0");
  Watch({path}, kSoon);
  for (int i = 1; i <= 5; ++i) {
    Write("a", std::to_string(i));
    const std::string want = "[" + std::to_string(i) + "]";
    absl::MutexLock lock(&mu_);
    const auto told = [this, &want] {
      return !seen_.empty() && seen_.back() == want;
    };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&told), kPatience)) << i;
  }
}

TEST_F(FileWatchTest, NoCallbackAfterTheDestructor) {
  const std::string path = Write("a", "one");
  int calls = 0;
  {
    FileWatch watch;
    ASSERT_TRUE(
        watch.Add({path}, kSoon, [&calls](const auto&) { ++calls; }).ok());
  }
  EXPECT_EQ(calls, 1);
}

TEST_F(FileWatchTest, RefusesMoreFilesThanItsBound) {
  const std::vector<std::string> all(FileWatch::kMaxFiles, Write("a", "one"));
  Watch(all);
  int calls = 0;
  const absl::Status status =
      watch_.Add({Path("a")}, kNever, [&calls](const auto&) { ++calls; });
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(calls, 0);
}

TEST_F(FileWatchTest, ReadFileSaysWhatIsWrong) {
  EXPECT_EQ(*ReadFile(Write("a", "12345"), 5), "12345");
  const absl::Status longer = ReadFile(Path("a"), 4).status();
  EXPECT_TRUE(absl::IsResourceExhausted(longer));
  EXPECT_THAT(std::string(longer.message()),
              Path("a") + ": is longer than 4 bytes");
  const absl::Status missing = ReadFile(Path("b"), 4).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()),
              StartsWith(Path("b") + ": cannot be read"));
  const absl::Status directory = ReadFile(dir_, 4).status();
  EXPECT_TRUE(absl::IsInvalidArgument(directory));
  EXPECT_THAT(std::string(directory.message()), HasSubstr("is a directory"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile(Path("pipe"), 4).status()));
}

}  // namespace
}  // namespace timecache
