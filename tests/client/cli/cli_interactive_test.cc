// shell: its parts, and as a process, with and without a terminal.
#include <signal.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/ui/history_file.h"
#include "client/cli/ui/split_words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"
#include "tests/client/cli/terminal_process.h"
#include "tests/support/net/certificates.h"

namespace timecache {
namespace {

using cli::HistoryFile;
using cli::SplitWords;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SplitWordsTest, AreAsOfAShell) {
  EXPECT_THAT(*SplitWords(" put  a\t1 "), ElementsAre("put", "a", "1"));
  EXPECT_THAT(*SplitWords(""), IsEmpty());
  EXPECT_THAT(*SplitWords("put 'a b' \"c \\\"d\\\" \\n\" e\\ f ''"),
              ElementsAre("put", "a b", "c \"d\" \\n", "e f", ""));
  EXPECT_THAT(*SplitWords("a'b'\"c\""), ElementsAre("abc"));
  EXPECT_THAT(SplitWords("put 'a").status().message(), HasSubstr("quote"));
  EXPECT_THAT(SplitWords("put a\\").status().message(), HasSubstr("backslash"));
}

TEST(HistoryFileTest, KeepsTheLastLinesForTheUserAlone) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.Path("history");
  {
    HistoryFile history(path);
    history.Add("get a");
    history.Add("get a");
    history.Add(" put a secret");
    history.Add(std::string(HistoryFile::kMaxLineBytes + 1, 'x'));
    history.Add("");
    EXPECT_THAT(history.lines(), ElementsAre("get a"));
  }
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  HistoryFile history(path);
  for (size_t i = 0; i < HistoryFile::kMaxLines; ++i) {
    history.Add(absl::StrCat("get ", i));
  }
  EXPECT_THAT(history.lines(), SizeIs(HistoryFile::kMaxLines));
  EXPECT_EQ(HistoryFile(path).lines(), history.lines());
  EXPECT_EQ(history.lines().front(), "get 0");
  HistoryFile none("");
  none.Add("get a");
  EXPECT_THAT(none.lines(), ElementsAre("get a"));
}

class CliShellTest : public CliTest {
 protected:
  // The shell at an xterm, with files of its own. libedit does not free the names
  // of functions that it was given.
  std::vector<std::string> AtTerminal() const {
    std::vector<std::string> argv = Argv({"shell"});
    argv.insert(
        argv.begin(),
        {"/usr/bin/env", "TERM=xterm", "ASAN_OPTIONS=detect_leaks=0",
         "HOME=" + home_.Path(""), "XDG_STATE_HOME=" + home_.Path("state")});
    return argv;
  }

  const test::TemporaryDirectory home_;
};

TEST_F(CliShellTest, RunsTheLinesOfAPipeOnOneConnection) {
  ASSERT_TRUE(client_.CreateNamespace("orders").ok());
  const test::Exit result = Run(
      {"shell"},
      "put a 1\nget a\nuse orders\nput 'b c' 2 --json\nsize\nexit\nget a\n");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\n1\n"), HasSubstr("1 entries")));
  EXPECT_EQ(client_.In("orders").Get("b c")->value().value, "2");
  // Flags of a line are those of this line alone.
  EXPECT_THAT(result.out, HasSubstr("1 entries, "));
}

TEST_F(CliShellTest, GoesOnAfterAnErrorAndEndsWithTheLargestCode) {
  const test::Exit result =
      Run({"shell"}, "gett a\nput 'a\nshell\nuse\nget a\nput a 1\n");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("did you mean \"get\""), HasSubstr("no end"),
            HasSubstr("this is the shell"), HasSubstr("name of a namespace")));
  EXPECT_TRUE(client_.Get("a")->has_value());
  EXPECT_EQ(Run({"shell"}, "get b\n").code, 1);
}

TEST_F(CliShellTest, AtATerminalItHasAPromptAndCompletes) {
  ASSERT_TRUE(client_.CreateNamespace("orders").ok());
  ASSERT_TRUE(client_.CreateNamespace("ordinals").ok());
  {
    TerminalProcess process(AtTerminal());
    ASSERT_TRUE(process.WaitFor(service_.address() + "/default> "))
        << process.screen();
    process.Type("us\to\t\t");
    ASSERT_TRUE(process.WaitFor("orders  ordinals")) << process.screen();
    process.Type("e\t\r");
    ASSERT_TRUE(process.WaitFor("/orders> ")) << process.screen();
    // Ctrl-U, Ctrl-B, Ctrl-E, Ctrl-W.
    process.Type("get b\x15put \xc3\xa4\x02z\x05 41\x17");
    process.Type("42\r");
    ASSERT_TRUE(process.WaitFor("stored, version")) << process.screen();
    ASSERT_TRUE(process.WaitFor("/orders> ")) << process.screen();
    process.Type("get z\xc3\xa4\r");
    ASSERT_TRUE(process.WaitFor("\n42\r\n")) << process.screen();
    ASSERT_TRUE(process.WaitFor("/orders> ")) << process.screen();
    process.Type("rubbish\x02\x03");
    ASSERT_TRUE(process.WaitFor("^C\r\n")) << process.screen();
    ASSERT_TRUE(process.WaitFor("/orders> ")) << process.screen();
    process.Type("\x04");
    EXPECT_EQ(process.Wait(), 0);
  }
  const std::string history = home_.Path("state/timecached/history");
  EXPECT_EQ(HistoryFile(history).lines(),
            (std::vector<std::string>{"use orders ", "put z\xc3\xa4 42",
                                      "get z\xc3\xa4"}));
  TerminalProcess process(AtTerminal());
  ASSERT_TRUE(process.WaitFor("> "));
  process.Type("\x1b[A\x1b[A\x1b[A");
  EXPECT_TRUE(process.WaitFor("use orders")) << process.screen();
  process.Type("\x15\x04");
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(CliShellTest, SigtermLeavesTheTerminalAsItWas) {
  TerminalProcess process(AtTerminal());
  ASSERT_TRUE(process.WaitFor("/default> ")) << process.screen();
  EXPECT_FALSE(process.Echoes());
  process.Kill(SIGTERM);
  EXPECT_EQ(process.Wait(), -1);
  EXPECT_TRUE(process.Echoes());
}

}  // namespace
}  // namespace timecache
