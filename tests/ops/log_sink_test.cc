#include "server/ops/log_sink.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

// Both ends of a pipe or of a socket.
class LogSinkTest : public ::testing::Test {
 protected:
  ~LogSinkTest() override {
    for (const int fd : fds_) close(fd);
  }

  void OpenPipe() { ASSERT_EQ(pipe(fds_), 0); }
  int reader() const { return fds_[0]; }
  int writer() const { return fds_[1]; }

  static std::shared_ptr<LogSink> MakeSink(int fd) {
    return std::make_shared<LogSink>(
        fd, [](uint64_t dropped) { return absl::StrCat("dropped ", dropped); });
  }
  static void Log(LogSink* sink, const std::string& line) { sink->Write(line); }

  // All that is there to read now.
  std::vector<std::string> ReadLines() {
    std::string bytes;
    std::string buffer(1 << 20, '\0');
    fcntl(reader(), F_SETFL, O_NONBLOCK);
    ssize_t got = 0;
    while ((got = read(reader(), buffer.data(), buffer.size())) > 0) {
      bytes.append(buffer, 0, static_cast<size_t>(got));
    }
    return absl::StrSplit(bytes, '\n', absl::SkipEmpty());
  }

  int fds_[2] = {-1, -1};
};

TEST_F(LogSinkTest, WritesALineEach) {
  OpenPipe();
  const auto sink = MakeSink(writer());
  Log(sink.get(), "one");
  Log(sink.get(), "two");
  EXPECT_THAT(ReadLines(), ElementsAre("one", "two"));
  EXPECT_EQ(sink->dropped(), 0u);
}

// The reader is there, but stuck.
TEST_F(LogSinkTest, AFullPipeDropsWholeLinesAndSaysHowMany) {
  OpenPipe();
  const auto sink = MakeSink(writer());
  constexpr int kLines = 1000;
  for (int i = 0; i < kLines; ++i) {
    Log(sink.get(), absl::StrCat(i, std::string(1000, 'x')));
  }
  const uint64_t dropped = sink->dropped();
  EXPECT_GT(dropped, 0u);
  std::vector<std::string> lines = ReadLines();
  EXPECT_LE(lines.size() + dropped, static_cast<size_t>(kLines));
  Log(sink.get(), "again");
  const std::vector<std::string> more = ReadLines();
  ASSERT_GE(more.size(), 2u);
  EXPECT_EQ(more[more.size() - 2], absl::StrCat("dropped ", dropped));
  EXPECT_EQ(more.back(), "again");
  EXPECT_EQ(sink->dropped(), dropped);
}

TEST_F(LogSinkTest, LongLinesStayWholeAcrossAFullPipe) {
  OpenPipe();
  const auto sink = MakeSink(writer());
  const std::string line(50'000, 'x');
  std::string all;
  for (int round = 0; round < 20; ++round) {
    Log(sink.get(), line);
    if (round % 3 == 2) {
      for (const std::string& read : ReadLines()) all += read;
    }
  }
  for (const std::string& read : ReadLines()) all += read;
  Log(sink.get(), "end");
  for (const std::string& read : ReadLines()) all += read;
  // What is not a note or the end is a whole number of lines.
  const size_t written = 20 - sink->dropped();
  EXPECT_GT(sink->dropped(), 0u);
  EXPECT_EQ(static_cast<size_t>(std::count(all.begin(), all.end(), 'x')),
            written * line.size());
}

TEST_F(LogSinkTest, ASocketDoesNotBlockEither) {
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0);
  const auto sink = MakeSink(writer());
  for (int i = 0; i < 10'000; ++i) Log(sink.get(), std::string(1000, 'x'));
  EXPECT_GT(sink->dropped(), 0u);
  ReadLines();
  Log(sink.get(), "again");
  EXPECT_EQ(ReadLines().back(), "again");
}

TEST_F(LogSinkTest, AReaderThatLeftAndAFullDiskCostLinesAlone) {
  OpenPipe();
  close(fds_[0]);
  signal(SIGPIPE, SIG_IGN);
  const auto sink = MakeSink(writer());
  Log(sink.get(), "nobody");
  EXPECT_EQ(sink->dropped(), 1u);
  fds_[0] = open("/dev/full", O_WRONLY);
  ASSERT_GE(fds_[0], 0);
  const auto full = MakeSink(fds_[0]);
  Log(full.get(), "no room");
  Log(full.get(), "still none");
  EXPECT_EQ(full->dropped(), 2u);
}

}  // namespace
}  // namespace timecache::server
