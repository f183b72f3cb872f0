// sessionize and the demo as processes, on the real server.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/support/server_process.h"
#include "timecache/client.h"
#include "timecache/virtual_clock.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kVirtual = {"--listen", "127.0.0.1:0",
                                           "--virtual-clock"};

// A file for as long as it is needed.
class TempFile {
 public:
  explicit TempFile(const std::string& text) {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(write(fd, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
    close(fd);
  }
  ~TempFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/timecached-test-XXXXXX";
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  return lines;
}

// Those that end at one moment come in any order.
std::vector<std::string> Sorted(const std::string& text) {
  std::vector<std::string> lines = Lines(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

test::Exit Sessionize(const test::ServerProcess& server,
                      const std::vector<std::string>& arguments,
                      const std::string& input = "") {
  std::vector<std::string> argv = {SESSIONIZE, "--json", "--address",
                                   server.address()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return test::ChildProcess(argv, input).Wait();
}

// A request of this visitor at 10:00:00 plus so many seconds.
std::string Request(const std::string& visitor, int second,
                    const std::string& bytes = "100") {
  char time[16];
  std::snprintf(time, sizeof(time), "%02d:%02d:%02d", 10 + second / 3600,
                second / 60 % 60, second % 60);
  return absl::StrCat(visitor, " - - [17/May/2015:", time,
                      " +0000] \"GET / HTTP/1.1\" 200 ", bytes,
                      " \"-\" \"Agent \\\"7\\\"\"\n");
}

// 10:00:00 is a multiple of 18 s: a session of second 0 ends at second 1800.
std::string SmallLog() {
  return absl::StrCat(
      Request("192.0.2.1", 0), "no log line\n", Request("192.0.2.2", 1, "-"),
      Request("2001:db8::7", 18, "7"), Request("host.example", 900),
      // Late: by less and by more than what came before.
      Request("192.0.2.2", 890), Request("2001:db8::7", 3),
      "192.0.2.9 - - [31/Apr/2015:10:00:00 +0000] \"GET /\" 200 1\n", "\n",
      // Just before its end: its session goes on.
      Request("192.0.2.1", 1799),
      // The same moment in another time zone, and the line's end is "\r\n".
      "192.0.2.3 - bob [17/May/2015:12:30:00 +0200] \"GET /\" 304 -\r\n",
      std::string(100'000, 'x'), "\n",
      // At its very end, 900 s + 1800 s: a new session.
      Request("host.example", 2700, "11"),
      // Long after all others have ended, and without the line's end.
      Request("192.0.2.1", 12'000, "18446744073709551"),
      "192.0.2.2 - - [17/May/2015:10:00:05 +0000] \"GET /\" 200 5");
}

TEST(Sessionize, SmallLogByHand) {
  const TempFile file(SmallLog());
  const test::ServerProcess server(kVirtual);
  const test::Exit result = Sessionize(server, {file.path()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("15 lines, 4 of them skipped; 8 sessions"));
  EXPECT_THAT(result.err, HasSubstr("line 2 is skipped"));
  const std::vector<std::string> lines = Sorted(result.out);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0],
            R"({"visitor":"192.0.2.1","first":"2015-05-17T10:00:00Z",)"
            R"("last":"2015-05-17T10:29:59Z","requests":2,"bytes":200,)"
            R"("ended_at":"2015-05-17T11:00:00Z"})");
  EXPECT_EQ(lines[1],
            R"({"visitor":"192.0.2.1","first":"2015-05-17T13:20:00Z",)"
            R"("last":"2015-05-17T13:20:00Z","requests":1,)"
            R"("bytes":18446744073709551,"ended_at":"2015-05-17T13:50:06Z"})");
  EXPECT_EQ(lines[2],
            R"({"visitor":"192.0.2.2","first":"2015-05-17T10:00:01Z",)"
            R"("last":"2015-05-17T10:14:50Z","requests":2,"bytes":100,)"
            R"("ended_at":"2015-05-17T10:45:00Z"})");
}

TEST(Sessionize, SessionsGoOnInAnotherRun) {
  const std::string log = SmallLog();
  const size_t half = log.find("host.example", log.size() / 2);
  const TempFile rest(log.substr(half));
  const test::ServerProcess server(kVirtual);
  const test::Exit before =
      Sessionize(server, {"--leave", "-"}, log.substr(0, half));
  EXPECT_EQ(before.code, 0) << before.err;
  const test::Exit after = Sessionize(server, {rest.path()});
  EXPECT_EQ(after.code, 0) << after.err;
  const test::ServerProcess other(kVirtual);
  EXPECT_EQ(Sorted(before.out + after.out),
            Sorted(Sessionize(other, {"-"}, log).out));
}

TEST(Sessionize, SessionsEndInRealTimeToo) {
  const test::ServerProcess server;
  const test::Exit result =
      Sessionize(server, {"--ttl", "100ms", "--buckets", "11", "-"},
                 Request("192.0.2.1", 0) + Request("2001:db8::7", 9));
  EXPECT_EQ(result.code, 0) << result.err;
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 2u) << result.out;
  EXPECT_THAT(
      result.out,
      HasSubstr(R"({"visitor":"192.0.2.1","first":"2015-05-17T10:00:00Z",)"
                R"("last":"2015-05-17T10:00:00Z","requests":1,)"));
  EXPECT_THAT(result.out, HasSubstr(R"({"visitor":"2001:db8::7")"));
}

TEST(Sessionize, LeavesSessionsToARealServer) {
  const test::ServerProcess server;
  const test::Exit result =
      Sessionize(server, {"--leave", "-"}, Request("192.0.2.1", 0));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  const auto entry = Client(server.address()).In("sessions").Get("192.0.2.1");
  ASSERT_TRUE(entry.ok() && *entry) << entry.status();
  EXPECT_THAT((*entry)->value, HasSubstr("\"requests\":1"));
}

TEST(Sessionize, SecondRunOnOneVirtualClockIsRefused) {
  const test::ServerProcess server(kVirtual);
  const std::string log = Request("192.0.2.1", 0) + Request("192.0.2.1", 60);
  const test::Exit first = Sessionize(server, {"-"}, log);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(Lines(first.out), ::testing::SizeIs(1));
  for (const char* ns : {"sessions", "others"}) {
    const test::Exit second = Sessionize(server, {"--namespace", ns, "-"}, log);
    EXPECT_EQ(second.code, 2);
    EXPECT_THAT(second.err, HasSubstr("start a new server"));
    EXPECT_EQ(second.out, "");
    const auto size = Client(server.address()).In(ns).Size();
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(size->entries, 0u);
  }
}

TEST(Sessionize, LogThatBeginsALittleBehindTheClockIsWarnedAbout) {
  const test::ServerProcess server(kVirtual);
  const test::Exit first =
      Sessionize(server, {"--leave", "-"},
                 Request("192.0.2.1", 0) + Request("192.0.2.1", 60));
  EXPECT_EQ(first.code, 0) << first.err;
  const test::Exit second = Sessionize(server, {"-"}, Request("192.0.2.1", 30));
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("count as late"));
  EXPECT_THAT(second.out, HasSubstr("\"requests\":3"));
}

TEST(Sessionize, EmptyLogHasNoSessions) {
  const test::ServerProcess server(kVirtual);
  const test::Exit result = Sessionize(server, {"-"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Sessionize, ErrorsSayWhatToDo) {
  test::Exit result =
      test::ChildProcess({SESSIONIZE, "--address", "unix:/nowhere", "-"})
          .Wait();
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("./dev run"));
  result = test::ChildProcess({SESSIONIZE, "/nowhere/access.log"}).Wait();
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("No such file"));
  result = test::ChildProcess({SESSIONIZE}).Wait();
  EXPECT_EQ(result.code, 2);
  result = test::ChildProcess({SESSIONIZE, "--help"}).Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("Examples:"));
}

TEST(Sessionize, TextHasOneHeading) {
  const test::ServerProcess server(kVirtual);
  const test::Exit result =
      test::ChildProcess({SESSIONIZE, "--address", server.address(), "-"},
                         Request("a.example", 0) + Request("b.example", 5000))
          .Wait();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(Lines(result.out),
              ElementsAre(HasSubstr("VISITOR"), HasSubstr("a.example"),
                          HasSubstr("b.example")));
}

TEST(Demo, RunsOnALogAndSaysWhatItFound) {
  const TempFile log(SmallLog());
  const test::Exit result =
      test::ChildProcess({DEMO, BUILD_DIR, log.path()}).Wait();
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("15 lines, 4 of them skipped"));
  EXPECT_THAT(result.out, HasSubstr("8 sessions"));
  EXPECT_EQ(test::ChildProcess({DEMO, BUILD_DIR, "/nowhere"}).Wait().code, 2);
}

}  // namespace
}  // namespace timecache
