#include "server/edge/file_watch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/housekeeping.h"
#include "server/base/read_file.h"

namespace timecache::server {
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

  // The sanitizers look at what a thread begins with through a pipe, which
  // takes descriptors: it begins before a test takes them all.
  void AwaitThread() {
    Watch({Write("thread", "one")}, kSoon);
    Write("thread", "two");
    absl::MutexLock lock(&mu_);
    const auto told = [this] { return seen_.size() > 1; };
    ASSERT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&told), kPatience));
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

// At most so many open files, until it goes.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t most) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = most;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

// A revocation, say, that came while the process had no descriptor left.
TEST_F(FileWatchTest, AFileThatCouldNotBeReadIsReadAgainAtTheInterval) {
  // So that no file looks as if it had been changed just now.
  FileWatch watch([] { return absl::Now() + absl::Hours(1); });
  std::vector<std::string> seen;
  const auto sees = [&](const std::string& want) {
    const auto told = [&] {
      mu_.AssertHeld();
      return !seen.empty() && seen.back() == want;
    };
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&told), kPatience);
  };
  ASSERT_TRUE(watch
                  .Add({Write("a", "one")}, kSoon,
                       [&](const FileWatch::Contents& contents) {
                         absl::MutexLock lock(&mu_);
                         seen.push_back(Text(contents));
                       })
                  .ok());
  // Its thread has begun: the sanitizers look at what a thread begins with
  // through a pipe, which takes descriptors.
  Write("new", "two");
  std::filesystem::rename(Path("new"), Path("a"));
  ASSERT_TRUE(sees("[two]"));
  {
    // Written before and moved: the limit is this process's, too.
    Write("new", "three");
    const OpenFilesLimit none(0);
    std::filesystem::rename(Path("new"), Path("a"));
    EXPECT_TRUE(sees("[RESOURCE_EXHAUSTED]"));
  }
  EXPECT_TRUE(sees("[three]"));
}

TEST_F(FileWatchTest, ReadsWhereClientsHoldAllDescriptors) {
  AwaitThread();
  Watch({Write("a", "one")});
  TakeSeen();
  Write("new", "two");
  std::filesystem::rename(Path("new"), Path("a"));
  std::vector<int> held;
  {
    const OpenFilesLimit few(64);
    for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) held.push_back(fd);
    for (int i = 0; i < 2; ++i) {
      watch_.Check();
      EXPECT_TRUE(absl::IsResourceExhausted(ReadFile(Path("a"), 9).status()));
    }
  }
  for (const int fd : held) close(fd);
  EXPECT_THAT(TakeSeen(), ElementsAre("[two]"));
}

TEST_F(FileWatchTest, TellsAgainAndAgainOfWhatCannotBeRead) {
  absl::Time now = absl::Now();
  FileWatch watch([&now] { return now; });
  std::vector<std::string> seen;
  ASSERT_TRUE(watch
                  .Add({Write("a", "one")}, kNever,
                       [&](const FileWatch::Contents& contents) {
                         seen.push_back(Text(contents));
                       })
                  .ok());
  std::filesystem::remove(Path("a"));
  watch.Check();
  now += FileWatch::kFailureReminder - absl::Seconds(1);
  watch.Check();
  EXPECT_THAT(seen, ElementsAre("[one]", "[NOT_FOUND]"));
  now += absl::Seconds(1);
  watch.Check();
  watch.Check();
  EXPECT_THAT(seen, ElementsAre("[one]", "[NOT_FOUND]", "[NOT_FOUND]"));
  Write("a", "one");
  watch.Check();
  now += absl::Hours(1);
  watch.Check();
  EXPECT_THAT(seen,
              ElementsAre("[one]", "[NOT_FOUND]", "[NOT_FOUND]", "[one]"));
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
}  // namespace timecache::server
