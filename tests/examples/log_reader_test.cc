#include "client/examples/log_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace timecache::sessionize {
namespace {

// A pipe: what is written to it can be read. At most 64 KiB at a time.
class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end_ = ends[0];
    write_end_ = ends[1];
  }
  ~LogReaderTest() override {
    CloseWriter();
    close(read_end_);
  }

  void Write(const std::string& text) {
    ASSERT_EQ(write(write_end_, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void CloseWriter() {
    if (write_end_ >= 0) close(std::exchange(write_end_, -1));
  }

  void ExpectLine(LogReader& reader, const std::string& expected) {
    std::string line;
    const auto any = reader.Next(line);
    ASSERT_TRUE(any.ok() && *any) << any.status();
    EXPECT_EQ(line, expected);
  }
  void ExpectEnd(LogReader& reader) {
    std::string line;
    const auto any = reader.Next(line);
    ASSERT_TRUE(any.ok()) << any.status();
    EXPECT_FALSE(*any) << line;
  }

  int read_end_ = -1;
  int write_end_ = -1;
};

TEST_F(LogReaderTest, LinesWithAndWithoutAnEnd) {
  Write("one\n\nthree\r\nlast");
  CloseWriter();
  LogReader reader(read_end_);
  ExpectLine(reader, "one");
  ExpectLine(reader, "");
  ExpectLine(reader, "three\r");
  ExpectLine(reader, "last");
  ExpectEnd(reader);
  EXPECT_EQ(reader.bytes_read(), 16u);
}

TEST_F(LogReaderTest, EmptyLogHasNoLines) {
  CloseWriter();
  LogReader reader(read_end_);
  ExpectEnd(reader);
}

TEST_F(LogReaderTest, LineComesBeforeTheOneAfterItIsWritten) {
  LogReader reader(read_end_);
  Write("first\n");
  ExpectLine(reader, "first");
  Write("sec");
  Write("ond\n");
  ExpectLine(reader, "second");
  CloseWriter();
  ExpectEnd(reader);
}

TEST_F(LogReaderTest, HasLineWhileAWholeOneIsHere) {
  LogReader reader(read_end_);
  EXPECT_FALSE(reader.HasLine());
  Write("first\nsecond\nthi");
  ExpectLine(reader, "first");
  EXPECT_TRUE(reader.HasLine());
  ExpectLine(reader, "second");
  EXPECT_FALSE(reader.HasLine());
  Write("rd\n");
  ExpectLine(reader, "third");
  EXPECT_FALSE(reader.HasLine());
}

TEST(LogReader, DirectoryIsNoLog) {
  const int fd = open("/", O_RDONLY | O_CLOEXEC);
  LogReader reader(fd);
  std::string line;
  EXPECT_EQ(reader.Next(line).status().code(), absl::StatusCode::kUnknown);
  close(fd);
}

TEST(LogReader, LineThatIsTooLongIsCutAndTheNextIsWhole) {
  char path[] = "/tmp/timecached-test-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  unlink(path);
  const std::string text = absl::StrCat(
      std::string(LogReader::kMaxLineBytes, 'a'), "\n",
      std::string(3 * LogReader::kMaxLineBytes + 1, 'b'), "\nnext\n");
  ASSERT_EQ(write(fd, text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
  ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
  LogReader reader(fd);
  std::string line;
  ASSERT_TRUE(*reader.Next(line));
  EXPECT_EQ(line, std::string(LogReader::kMaxLineBytes, 'a'));
  EXPECT_FALSE(reader.cut());
  ASSERT_TRUE(*reader.Next(line));
  EXPECT_EQ(line, std::string(LogReader::kMaxLineBytes, 'b'));
  EXPECT_TRUE(reader.cut());
  ASSERT_TRUE(*reader.Next(line));
  EXPECT_EQ(line, "next");
  EXPECT_FALSE(reader.cut());
  EXPECT_FALSE(*reader.Next(line));
  EXPECT_EQ(reader.bytes_read(), text.size());
  close(fd);
}

}  // namespace
}  // namespace timecache::sessionize
