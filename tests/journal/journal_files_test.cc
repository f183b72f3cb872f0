// What the journal stands on: checksums, and files of the operating system.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/journal/local/crc32c.h"
#include "server/journal/local/file_system.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
  auto lock = files_->Lock(Path("LOCK"));
  ASSERT_TRUE(lock.ok());
  const absl::Status second = files_->Lock(Path("LOCK")).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr("in use"));
  *lock = nullptr;
  EXPECT_TRUE(files_->Lock(Path("LOCK")).ok());
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
