// What the journal stands on: checksums, and files of the operating system.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/crc32c.h"
#include "server/log/local/file_system.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Crc32cTest, HasThePublishedValues) {
  // RFC 3720, B.4, and the check value of the CRC catalogue.
  EXPECT_EQ(Crc32c(0, "123456789"), 0xe3069283);
  EXPECT_EQ(Crc32c(0, std::string(32, '\0')), 0x8a9136aa);
  EXPECT_EQ(Crc32c(0, std::string(32, '\xff')), 0x62a8ab43);
  EXPECT_EQ(Crc32c(0, ""), 0);
}

TEST(Crc32cTest, GoesOnFromWhatWasBefore) {
  const std::string text = "any text, of a length that is no multiple of eight";
  for (size_t at = 0; at <= text.size(); ++at) {
    EXPECT_EQ(Crc32c(Crc32c(0, text.substr(0, at)), text.substr(at)),
              Crc32c(0, text));
  }
}

class PosixFileSystemTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) {
    return directory_.path() + "/" + name;
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
  }
  absl::StatusOr<std::unique_ptr<DirectoryLock>> LockDirectory() {
    return files_->Lock(directory_.path(), "LOCK",
                        FileSystem::LockedBy::kWriter);
  }

  TemporaryDirectory directory_;
  FileSystem* const files_ = FileSystem::Posix();
};

TEST_F(PosixFileSystemTest, ErrorsNameThePath) {
  const absl::Status missing = files_->Open(Path("missing")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), StartsWith(Path("missing")));
  EXPECT_TRUE(absl::IsNotFound(files_->Remove(Path("missing"))));
  EXPECT_TRUE(absl::IsNotFound(files_->List(Path("missing")).status()));
}

TEST_F(PosixFileSystemTest, AReadEndsWithTheFile) {
  Write("file", "12345");
  const auto file = files_->Open(Path("file"));
  ASSERT_TRUE(file.ok());
  char bytes[10];
  EXPECT_EQ(*(*file)->Read(3, sizeof(bytes), bytes), 2);
  EXPECT_EQ(*(*file)->Read(5, sizeof(bytes), bytes), 0);
  ASSERT_TRUE((*file)->Truncate(4).ok());
  EXPECT_EQ(*(*file)->Size(), 4);
}

TEST_F(PosixFileSystemTest, ALockExcludesAnotherUntilItIsGone) {
  auto lock = LockDirectory();
  ASSERT_TRUE(lock.ok());
  const absl::Status second = LockDirectory().status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr("in use"));
  *lock = nullptr;
  EXPECT_TRUE(LockDirectory().ok());
}

// Whoever takes it for stale does not get past the lock.
TEST_F(PosixFileSystemTest, ALockExcludesAnotherWithoutItsFile) {
  const auto lock = LockDirectory();
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE(files_->Remove(Path("LOCK")).ok());
  EXPECT_EQ(LockDirectory().status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE((*lock)->Sync().ok());
}

// As earlier versions lock it.
TEST_F(PosixFileSystemTest, ALockOfTheFileAloneExcludesAnother) {
  const int file = open(Path("LOCK").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(file, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(LockDirectory().status().code(),
            absl::StatusCode::kFailedPrecondition);
  close(file);
  EXPECT_TRUE(LockDirectory().ok());
}

TEST_F(PosixFileSystemTest, AReaderLocksADirectoryWithoutTheFile) {
  const auto lock =
      files_->Lock(directory_.path(), "LOCK", FileSystem::LockedBy::kReader);
  EXPECT_TRUE(lock.ok());
  EXPECT_FALSE(LockDirectory().ok());
  EXPECT_THAT(*files_->List(directory_.path()), IsEmpty());
}

TEST_F(PosixFileSystemTest, RoomThatIsAllocatedDoesNotChangeTheSize) {
  const auto file = files_->Create(Path("file"));
  ASSERT_TRUE(file.ok());
  const absl::Status status = (*file)->Allocate(1 << 20);
  if (absl::IsUnimplemented(status)) GTEST_SKIP() << status;
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*(*file)->Size(), 0);
  EXPECT_GE(*(*file)->Allocated(), 1 << 20);
  ASSERT_TRUE((*file)->Write(0, "abc").ok());
  ASSERT_TRUE((*file)->Truncate(3).ok());
  EXPECT_LT(*(*file)->Allocated(), 1 << 20);
}

TEST_F(PosixFileSystemTest, AFileIsWrittenWholeAndNothingElseIsLeft) {
  Write("file", "before");
  ASSERT_TRUE(
      WriteFileAtomically(files_, directory_.path(), "file", "after").ok());
  EXPECT_EQ(*ReadSmallFile(files_, Path("file")), "after");
  EXPECT_THAT(*files_->List(directory_.path()), ElementsAre("file"));
}

TEST_F(PosixFileSystemTest, ADirectoryThatIsNotEmptyIsNotTaken) {
  EXPECT_TRUE(CreateEmptyDirectory(files_, Path("new")).ok());
  EXPECT_TRUE(CreateEmptyDirectory(files_, Path("new")).ok());
  Write("new/file", "");
  EXPECT_EQ(CreateEmptyDirectory(files_, Path("new")).code(),
            absl::StatusCode::kAlreadyExists);
}

// Which would be refused as long as there is no room.
TEST_F(PosixFileSystemTest, AFileWithoutADescriptorIsNoFullDisk) {
  const std::string path = Path("file");
  // Of a type that it has not seen yet the sanitizer cannot say without a
  // descriptor what it is.
  FileSystem* const files = FileSystem::Posix();
  ASSERT_TRUE(files->Create(Path("first")).ok());
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = files->Create(path).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

}  // namespace
}  // namespace timecache::server
