#include "timecache/recipes/join.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/recipes/recipe_fixture.h"
#include "tests/support/effort.h"
#include "tests/support/engine/dice.h"
#include "timecache/pipeline.h"
#include "timecache/status.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr absl::Duration kJoinTtl = absl::Seconds(10);
// And a bucket of the default namespace.
constexpr absl::Duration kJoinDeath = absl::Milliseconds(10'300);

JoinOptions People() { return {.sources = {"gender", "age"}, .ttl = kJoinTtl}; }

std::optional<Joined> Must(const absl::StatusOr<std::optional<Joined>>& row) {
  EXPECT_TRUE(row.ok()) << row.status();
  return row.value_or(std::nullopt);
}

class JoinTest : public RecipeTest {
 protected:
  std::vector<IncompleteJoin> ReadIncomplete(Watcher& watcher) const {
    std::vector<IncompleteJoin> rows;
    for (const ExpiredEvent& event : ReadEvents(watcher)) {
      auto row = join_.Incomplete(event);
      if (row) rows.push_back(*std::move(row));
    }
    return rows;
  }

  const Join join_{client_, "people", People()};
};

TEST_F(JoinTest, TheLastTupleGetsTheRow) {
  EXPECT_FALSE(Must(join_.Add("7", "gender", "female")));
  EXPECT_FALSE(Must(join_.Add("8", "age", "41")));
  const auto row = Must(join_.Add("7", "age", "42"));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->id, "7");
  EXPECT_THAT(row->tuples, ElementsAre("female", "42"));
  // In the order of the sources, not in that of arrival.
  EXPECT_THAT(Must(join_.Add("8", "gender", "male"))->tuples,
              ElementsAre("male", "41"));
  EXPECT_EQ(client_.Size()->entries, 0u);
}

TEST_F(JoinTest, TheSameTupleAgainIsOkAndAnotherIsNot) {
  EXPECT_FALSE(Must(join_.Add("7", "gender", "female")));
  EXPECT_FALSE(Must(join_.Add("7", "gender", "female")));
  EXPECT_TRUE(HasReason(join_.Add("7", "gender", "male").status(),
                        ErrorReason::kPartExists));
  EXPECT_THAT(Must(join_.Add("7", "age", "42"))->tuples,
              ElementsAre("female", "42"));
}

TEST_F(JoinTest, WhatIsNotCompleteInTimeFailsWithWhatCame) {
  const auto watcher = Watch({.key_prefix = join_.key_prefix()});
  const Join other(client_, "people-too", People());
  Must(join_.Add("7", "age", "42"));
  Must(other.Add("9", "age", "1"));
  Pass(absl::Seconds(9));
  Must(join_.Add("8", "gender", "male"));
  Pass(kJoinDeath - absl::Seconds(9));
  auto rows = ReadIncomplete(*watcher);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].id, "7");
  EXPECT_THAT(rows[0].tuples,
              ElementsAre(std::nullopt, Optional(std::string("42"))));
  // Too late: it begins anew, and fails alone.
  EXPECT_FALSE(Must(join_.Add("7", "gender", "female")));
  EXPECT_TRUE(Must(join_.Add("8", "age", "5")));
  Pass(kJoinDeath);
  rows = ReadIncomplete(*watcher);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(rows[0].tuples,
              ElementsAre(Optional(std::string("female")), std::nullopt));
}

TEST_F(JoinTest, FieldsOfAnIdAreKeptApart) {
  EXPECT_NE(Join::Id({"a", "bc"}), Join::Id({"ab", "c"}));
  EXPECT_NE(Join::Id({"a", ""}), Join::Id({"a"}));
  EXPECT_EQ(Join::Id({"a", "bc"}), Join::Id({"a", "bc"}));
}

class UnansweredJoinTest : public UnansweredTest {
 protected:
  const Join join_{client_, "people", People()};
  const Join impatient_{MakeImpatientClient(), "people", People()};
};

TEST_F(UnansweredJoinTest, ATupleIsAddedAgain) {
  LeaveUnanswered(
      [&] { return impatient_.Add("7", "gender", "female").status(); });
  EXPECT_FALSE(Must(join_.Add("7", "gender", "female")));
  EXPECT_TRUE(Must(join_.Add("7", "age", "42")));
}

// The row went with the answer; its repetition does not make it twice.
TEST_F(UnansweredJoinTest, TheLastTupleAddedAgainFailsAlone) {
  const auto watcher = Watch();
  Must(join_.Add("7", "gender", "female"));
  LeaveUnanswered([&] { return impatient_.Add("7", "age", "42").status(); });
  EXPECT_FALSE(Must(join_.Add("7", "age", "42")));
  Pass(kJoinDeath);
  const auto events = ReadEvents(*watcher);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(join_.Incomplete(events[0])->tuples,
              ElementsAre(std::nullopt, Optional(std::string("42"))));
}

// Two sources, each with an order of its own and a connection of its own; of
// each 3 % of the tuples never come.
TEST_F(JoinTest, ManyIdsEndOnceEach) {
  constexpr int kIds = test::Rounds(100'000);
  constexpr int kLostPerMille = 30;
  const auto watcher = Watch({.key_prefix = join_.key_prefix()});

  std::vector<std::vector<bool>> sent(2, std::vector<bool>(kIds));
  absl::Mutex mu;
  std::vector<int> completed(kIds);
  int wrong = 0;
  const auto add_all = [&](int source) {
    Dice dice(static_cast<uint64_t>(source) + 1);
    std::vector<int> ids(kIds);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937_64(source));
    const Client client = MakeClient();
    Pipeline pipeline(client);
    for (const int id : ids) {
      if (dice.Chance(kLostPerMille)) continue;
      sent[source][id] = true;
      const absl::Status added = pipeline.Add(
          join_.MakeOperation(absl::StrCat(id), People().sources[source],
                              absl::StrCat(source, ":", id)),
          [&, id](const OperationResult& result) {
            const auto row = join_.Row(absl::StrCat(id), result);
            absl::MutexLock lock(&mu);
            if (!row.ok()) ++wrong;
            if (!row.ok() || !*row) return;
            ++completed[id];
            wrong += (*row)->tuples !=
                     std::vector<std::string>{absl::StrCat("0:", id),
                                              absl::StrCat("1:", id)};
          });
      EXPECT_TRUE(added.ok()) << added;
    }
    EXPECT_TRUE(pipeline.Close().ok());
  };
  std::thread ages([&] { add_all(1); });
  add_all(0);
  ages.join();
  EXPECT_EQ(wrong, 0);

  Pass(kJoinDeath);
  std::vector<int> failed(kIds);
  for (const IncompleteJoin& row : ReadIncomplete(*watcher)) {
    int id = -1;
    ASSERT_TRUE(absl::SimpleAtoi(row.id, &id));
    ++failed[id];
    for (int source = 0; source < 2; ++source) {
      const auto& tuple = row.tuples[source];
      ASSERT_EQ(tuple.has_value(), sent[source][id]);
      if (tuple) {
        ASSERT_EQ(*tuple, absl::StrCat(source, ":", id));
      }
    }
  }
  int joined = 0;
  for (int id = 0; id < kIds; ++id) {
    const int tuples = sent[0][id] + sent[1][id];
    ASSERT_EQ(completed[id], tuples == 2 ? 1 : 0) << id;
    ASSERT_EQ(failed[id], tuples == 1 ? 1 : 0) << id;
    joined += completed[id];
  }
  EXPECT_GT(joined, kIds * 9 / 10);
  EXPECT_LT(joined, kIds);
  EXPECT_EQ(client_.Size()->entries, 0u);
}

}  // namespace
}  // namespace timecache::test
