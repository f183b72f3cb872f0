#include "timecache/recipes/array.h"

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/recipes/recipe_fixture.h"
#include "timecache/status.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> ValuesOf(
    const absl::StatusOr<Array::Contents>& contents) {
  EXPECT_TRUE(contents.ok()) << contents.status();
  std::vector<std::string> values;
  if (!contents.ok()) return values;
  for (const Array::Item& item : contents->items) values.push_back(item.value);
  return values;
}

class ArrayTest : public RecipeTest {
 protected:
  const Array array_{client_, "array"};
};

TEST_F(ArrayTest, ItemsAreAddedAtTheEndAndRemoved) {
  EXPECT_THAT(ValuesOf(array_.Read()), IsEmpty());
  EXPECT_EQ(array_.Read()->version, 0u);
  const uint64_t a = array_.Add("a").value();
  array_.Add("").value();
  array_.Add("a").value();
  EXPECT_THAT(ValuesOf(array_.Read()), ElementsAre("a", "", "a"));
  EXPECT_TRUE(array_.Remove(a).ok());
  EXPECT_TRUE(array_.Remove(a).ok());
  EXPECT_TRUE(array_.Remove(4711).ok());
  EXPECT_THAT(ValuesOf(array_.Read()), ElementsAre("", "a"));
  const Array none(client_, "none");
  EXPECT_TRUE(none.Remove(a).ok());
  EXPECT_EQ(none.Read()->version, 0u) << "a removal makes no array";
}

TEST_F(ArrayTest, WhatIsDoneAgainCountsOnce) {
  const Array::Item item = {.id = Array::NewId(), .value = "once"};
  ASSERT_TRUE(array_.Add(item).ok());
  ASSERT_TRUE(array_.Add(item).ok());
  EXPECT_THAT(ValuesOf(array_.Read()), ElementsAre("once"));
  ASSERT_TRUE(array_.Remove(item.id).ok());
  ASSERT_TRUE(array_.Add(item).ok()) << "an attempt that arrives late";
  EXPECT_THAT(ValuesOf(array_.Read()), IsEmpty());
}

TEST_F(ArrayTest, CompactedItIsTheSameAndKeepsItsDeadline) {
  for (int i = 0; i < 10; ++i) {
    const uint64_t id = array_.Add(absl::StrCat(i)).value();
    if (i % 2 == 0) {
      ASSERT_TRUE(array_.Remove(id).ok());
    }
  }
  const auto before = array_.Read();
  const auto deadline = client_.Get("array").value()->deadline;
  Pass(absl::Seconds(1));
  ASSERT_TRUE(array_.Compact().ok());
  const auto after = array_.Read();
  EXPECT_EQ(ValuesOf(after), ValuesOf(before));
  EXPECT_EQ(after->items[0].id, before->items[0].id);
  EXPECT_EQ(after->stored_bytes, before->compact_bytes);
  EXPECT_LT(after->stored_bytes, before->stored_bytes);
  EXPECT_EQ(client_.Get("array").value()->deadline, deadline);
}

TEST_F(ArrayTest, AddingRenewsOrNot) {
  const Array fixed(client_, "fixed", {.renew = false});
  ASSERT_TRUE(fixed.Add("a").ok());
  ASSERT_TRUE(array_.Add("a").ok());
  Pass(absl::Seconds(29));
  ASSERT_TRUE(fixed.Add("b").ok());
  ASSERT_TRUE(array_.Add("b").ok());
  Pass(absl::Seconds(2));
  EXPECT_THAT(ValuesOf(fixed.Read()), IsEmpty());
  EXPECT_THAT(ValuesOf(array_.Read()), ElementsAre("a", "b"));
}

TEST_F(ArrayTest, AFullEntryIsCompactedOnce) {
  server_.Create("small", "max_value_bytes: 256");
  const Array array(client_.In("small"), "array");
  for (int i = 0; i < 100; ++i) {
    const auto id = array.Add(absl::StrCat("item ", i));
    ASSERT_TRUE(id.ok()) << id.status();
    ASSERT_TRUE(array.Remove(*id).ok());
  }
  EXPECT_THAT(ValuesOf(array.Read()), IsEmpty());
  // It is full of what is there.
  absl::Status added;
  while (added.ok()) added = array.Add("item").status();
  EXPECT_TRUE(HasReason(added, ErrorReason::kValueTooLarge)) << added;
  EXPECT_GT(array.Read()->items.size(), 10u);
}

TEST_F(ArrayTest, AnotherValueIsNoArray) {
  ASSERT_TRUE(client_.Put("array", "some text").ok());
  EXPECT_TRUE(absl::IsDataLoss(array_.Read().status()));
  EXPECT_TRUE(absl::IsDataLoss(array_.Compact()));
  EXPECT_TRUE(absl::IsDataLoss(Array::Fold("+1234").status()));
}

TEST_F(ArrayTest, UpdateChangesTheWhole) {
  const auto add = [](const std::string& value) {
    return [value](std::vector<Array::Item>& items) {
      items.insert(items.begin(), {.id = Array::NewId(), .value = value});
    };
  };
  ASSERT_TRUE(array_.Update(add("b")).ok());
  ASSERT_TRUE(array_.Update(add("a")).ok());
  EXPECT_THAT(ValuesOf(array_.Read()), ElementsAre("a", "b"));
  // One who is always overtaken.
  const absl::Status aborted = array_.Update(
      [&](std::vector<Array::Item>&) { array_.Add("c").value(); });
  EXPECT_TRUE(absl::IsAborted(aborted)) << aborted;
}

using UnansweredArrayTest = UnansweredTest;

TEST_F(UnansweredArrayTest, AnAddIsRepeatedWithItsId) {
  const Array array(client_, "array");
  const Array impatient(MakeImpatientClient(), "array");
  const Array::Item item = {.id = Array::NewId(), .value = "once"};
  LeaveUnanswered([&] { return impatient.Add(item); });
  ASSERT_TRUE(array.Add(item).ok());
  EXPECT_THAT(ValuesOf(array.Read()), ElementsAre("once"));
}

// Each thread adds, and removes a third of that; some change the whole, and one
// compacts all the time.
TEST_F(ArrayTest, ConcurrentChangesAreAllKept) {
  constexpr int kThreads = 4;
  constexpr int kItems = 60;
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Array array(MakeClient(), "array");
      for (int item = 0; item < kItems; ++item) {
        const auto id = array.Add(absl::StrCat(i, "-", item));
        EXPECT_TRUE(id.ok()) << id.status();
        if (id.ok() && item % 3 == 0) {
          EXPECT_TRUE(array.Remove(*id).ok());
        }
      }
      --running;
    });
  }
  int compacted = 0;
  while (running > 0) compacted += array_.Compact().ok();
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(compacted, 0);

  std::map<std::string, int> found;
  std::map<char, int> last;
  for (const std::string& value : ValuesOf(array_.Read())) {
    ++found[value];
    // Of one thread, in its order.
    const int number = std::stoi(value.substr(2));
    EXPECT_GE(number, last[value[0]]);
    last[value[0]] = number;
  }
  for (int i = 0; i < kThreads; ++i) {
    for (int item = 0; item < kItems; ++item) {
      EXPECT_EQ(found[absl::StrCat(i, "-", item)], item % 3 == 0 ? 0 : 1);
    }
  }
}

}  // namespace
}  // namespace timecache::test
