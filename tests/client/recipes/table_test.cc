#include "timecache/recipes/table.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/recipes/recipe_fixture.h"
#include "tests/support/engine/dice.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TableTest : public RecipeTest {
 protected:
  const Table table_{client_, "online", {.ttl = absl::Seconds(10)}};
};

TEST_F(TableTest, MembersAreAddedFoundListedAndRemoved) {
  EXPECT_EQ(table_.Add("bob").value(), true);
  EXPECT_EQ(table_.Add("alice").value(), true);
  EXPECT_EQ(table_.Add("bob").value(), false);
  EXPECT_EQ(table_.Contains("bob").value(), true);
  EXPECT_EQ(table_.Contains("carol").value(), false);
  EXPECT_THAT(table_.List().value(), ElementsAre("alice", "bob"));
  EXPECT_EQ(table_.Remove("bob").value(), true);
  EXPECT_EQ(table_.Remove("bob").value(), false);
  EXPECT_THAT(table_.List().value(), ElementsAre("alice"));
}

TEST_F(TableTest, AnotherTableIsAnother) {
  const Table other(client_, "onliner");
  ASSERT_TRUE(other.Add("x").ok());
  EXPECT_THAT(table_.List().value(), IsEmpty());
  EXPECT_EQ(table_.MemberOf("onliner/x"), std::nullopt);
  EXPECT_EQ(table_.MemberOf("online/x/y"), "x/y");
}

TEST_F(TableTest, MembersExpireOneByOneAndAreTold) {
  const auto watcher = Watch({.key_prefix = table_.key_prefix()});
  ASSERT_TRUE(table_.Add("goes").ok());
  ASSERT_TRUE(table_.Add("stays").ok());
  Pass(absl::Seconds(9));
  EXPECT_EQ(table_.Add("stays").value(), false);
  Pass(absl::Seconds(2));
  EXPECT_THAT(table_.List().value(), ElementsAre("stays"));
  const auto events = ReadEvents(*watcher);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(table_.MemberOf(events[0].key), "goes");
}

using UnansweredTableTest = UnansweredTest;

TEST_F(UnansweredTableTest, AnAddIsRepeated) {
  const Table impatient(MakeImpatientClient(), "online");
  LeaveUnanswered([&] { return impatient.Add("alice").status(); });
  const Table table(client_, "online");
  EXPECT_EQ(table.Add("alice").value(), false) << "its first attempt was";
  EXPECT_THAT(table.List().value(), ElementsAre("alice"));
}

// Each thread has members of its own, and they compete for one: of its changes
// each that said so is one.
TEST_F(TableTest, ConcurrentChangesAreAllKept) {
  constexpr int kThreads = 4;
  constexpr int kMembers = 40;
  std::vector<std::thread> threads;
  std::vector<int> changes(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Table table(MakeClient(), "online");
      for (int member = 0; member < kMembers; ++member) {
        const std::string name = absl::StrCat(i, "-", member);
        EXPECT_EQ(table.Add(name).value(), true);
        if (member % 3 == 0) {
          EXPECT_EQ(table.Remove(name).value(), true);
        }
        changes[i] += table.Add("all").value();
        changes[i] -= table.Remove("all").value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int sum = 0;
  for (const int each : changes) sum += each;
  EXPECT_EQ(sum, table_.Contains("all").value() ? 1 : 0);
  std::set<std::string> expected;
  for (int i = 0; i < kThreads; ++i) {
    for (int member = 0; member < kMembers; ++member) {
      if (member % 3 != 0) expected.insert(absl::StrCat(i, "-", member));
    }
  }
  EXPECT_THAT(table_.List().value(), ::testing::ElementsAreArray(expected));
}

}  // namespace
}  // namespace timecache::test
