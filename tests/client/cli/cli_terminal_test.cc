// What timecachectl does at a terminal: it asks before what cannot be undone,
// and draws what fits.
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"
#include "tests/client/cli/terminal_process.h"

namespace timecache {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using CliTerminalTest = CliTest;

TEST_F(CliTerminalTest, DeletingANamespaceIsAskedFor) {
  ASSERT_TRUE(client_.CreateNamespace("n").ok());
  ASSERT_TRUE(client_.In("n").Put("a", "1").ok());
  for (const char* no : {"\n", "n\n", "no\n", "yess\n", "\x04"}) {
    TerminalProcess process(Argv({"ns", "delete", "n"}));
    ASSERT_TRUE(
        process.WaitFor("delete namespace n with its 1 entries? [y/N] "))
        << process.screen();
    process.Type(no);
    EXPECT_EQ(process.Wait(), 2);
    EXPECT_THAT(process.screen(), HasSubstr("nothing was deleted"));
    EXPECT_TRUE(client_.GetNamespace("n").ok());
  }
  TerminalProcess process(Argv({"ns", "delete", "n"}));
  ASSERT_TRUE(process.WaitFor("[y/N] "));
  process.Type("Yes\n");
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_THAT(process.screen(), HasSubstr("deleted n"));
  EXPECT_FALSE(client_.GetNamespace("n").ok());
}

TEST_F(CliTerminalTest, YesIsNotAsked) {
  ASSERT_TRUE(client_.CreateNamespace("n").ok());
  ASSERT_TRUE(client_.Put("a", "1").ok());
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"ns", "delete", "n", "--yes"},
                                             {"rm", "--prefix", "a", "-y"}}) {
    TerminalProcess process(Argv(arguments));
    EXPECT_EQ(process.Wait(), 0);
    EXPECT_THAT(process.screen(), Not(HasSubstr("[y/N]")));
  }
  EXPECT_FALSE(client_.GetNamespace("n").ok());
  EXPECT_EQ(client_.Size()->entries, 0u);
}

TEST_F(CliTerminalTest, RemovingByPrefixIsAskedForAndByKeyIsNot) {
  ASSERT_TRUE(client_.Put("a1", "1").ok());
  ASSERT_TRUE(client_.Put("a2", "1").ok());
  TerminalProcess process(Argv({"rm", "--prefix", "a"}));
  ASSERT_TRUE(process.WaitFor("of namespace default whose key begins with a?"))
      << process.screen();
  process.Type("n\n");
  EXPECT_EQ(process.Wait(), 2);
  EXPECT_EQ(client_.Size()->entries, 2u);
  EXPECT_EQ(TerminalProcess(Argv({"rm", "a1", "a2"})).Wait(), 0);
  EXPECT_EQ(client_.Size()->entries, 0u);
}

TEST_F(CliTerminalTest, ADumpIntoAFileShowsHowFarItIs) {
  ASSERT_TRUE(client_.Put("a", "1").ok());
  const std::string file =
      absl::StrCat(::testing::TempDir(), "/timecachectl_dump.", getpid());
  for (const auto& [to, shows] : std::vector<std::pair<std::string, bool>>{
           {" > " + file, true}, {" | cat > " + file, false}}) {
    TerminalProcess process(
        {"/bin/sh", "-c", absl::StrJoin(Argv({"dump"}), " ") + to});
    EXPECT_EQ(process.Wait(), 0);
    EXPECT_EQ(absl::StrContains(process.screen(), "1 entries"), shows)
        << process.screen();
  }
  EXPECT_EQ(unlink(file.c_str()), 0);
}

TEST_F(CliTerminalTest, TopShowsRatesAtEightyColumns) {
  ASSERT_TRUE(client_.CreateNamespace(std::string(63, 'n')).ok());
  TerminalProcess top(Argv({"top", "--interval", "100ms"}), 24, 80);
  EXPECT_TRUE(top.WaitFor("DIED/S")) << top.screen();
  top.Type("q");
  EXPECT_EQ(top.Wait(), 0);
}

}  // namespace
}  // namespace timecache
