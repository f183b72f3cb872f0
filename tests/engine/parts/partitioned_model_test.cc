// Namespaces of several partitions, played with beside one of a single map: the
// results are the same.

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/partitions.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/parts_world.h"

namespace timecache::server {
namespace {

constexpr char kName[] = "orders";
constexpr int kModelKeys = 60;
constexpr int kSteps = 3'000;

// Without the version, which is another in each.
std::string TextOf(const Result& result) {
  const Entry& entry = result.entry;
  std::string text = absl::StrCat(
      static_cast<int>(result.status.code()), " ",
      ReasonOf(result.status).has_value() ? ReasonName(*ReasonOf(result.status))
                                          : absl::string_view("-"),
      result.found, result.removed, result.duplicate, result.version != 0, " ",
      result.number, " ", result.waits);
  if (result.has_entry) {
    absl::StrAppend(&text, " ", entry.value, " ", entry.put_us, " ",
                    entry.deadline_us, " ", entry.create_us, " ",
                    entry.own_ttl_us, " ", entry.parts);
  }
  return text;
}

class PartitionedModelTest : public testing::TestWithParam<int> {
 protected:
  PartitionedModelTest() {
    EXPECT_TRUE(gatherings_[0].Set("a", gatherings_.size(), {}).ok());
    EXPECT_TRUE(gatherings_[1].Set("b", gatherings_.size(), {}).ok());
    EXPECT_TRUE(gatherings_[2].Set("c", gatherings_.size(), {}).ok());
  }

  void Create() {
    NamespaceOptions options = WithBuckets(10 * kSecond, 11);
    options.idempotency_window_us = 60 * kSecond;
    ASSERT_TRUE(one_.Create(kName, options).ok());
    options.num_partitions = GetParam();
    ASSERT_TRUE(many_.Create(kName, options).ok());
    versions_.clear();
  }

  std::string Key() {
    return absl::StrCat("key-", dice_.Draw(0, kModelKeys - 1));
  }

  // An operation, and in `other` the same with the version of the other world.
  Operation Draw(const std::string& key, Operation* other) {
    Operation op;
    op.kind = static_cast<OpKind>(dice_.Draw(0, 7));
    op.key = key;
    if (op.kind == OpKind::kGather) {
      op.gathering = &gatherings_[dice_.Index(gatherings_.size())];
    }
    if (op.kind == OpKind::kCombine) {
      op.operand = dice_.Draw(-3, 3);
      op.remove_if_zero = dice_.Chance(500);
    } else if (op.kind == OpKind::kPut && dice_.Chance(300)) {
      op.value = "7";
    } else {
      op.value = absl::string_view(Noise()).substr(
          static_cast<size_t>(dice_.Draw(0, 1'000)),
          static_cast<size_t>(dice_.Draw(0, 40)));
    }
    op.touch = op.kind == OpKind::kGet && dice_.Chance(300);
    op.return_previous =
        (op.kind == OpKind::kPut || op.kind == OpKind::kRemove) &&
        dice_.Chance(300);
    if (op.kind == OpKind::kPut && dice_.Chance(300)) {
      op.condition =
          dice_.Chance(500) ? Condition::kIfAbsent : Condition::kIfPresent;
    }
    if (op.kind == OpKind::kPut && dice_.Chance(300)) {
      op = op.WithTtl(dice_.Draw(1, 30) * kSecond);
    }
    *other = op;
    const auto known = versions_.find(key);
    if (known != versions_.end() && dice_.Chance(200) &&
        (op.kind == OpKind::kRemove || op.kind == OpKind::kAppend ||
         op.kind == OpKind::kTouch)) {
      op.condition = other->condition = Condition::kIfVersion;
      op.if_version = known->second.first;
      other->if_version = known->second.second;
    }
    return op;
  }

  void Note(const Operation& op, const Result& one, const Result& many) {
    ASSERT_EQ(TextOf(one), TextOf(many)) << op.key;
    if (one.version != 0) {
      versions_[std::string(op.key)] = {one.version, many.version};
    }
  }

  void Batch(bool atomic) {
    std::vector<std::string> keys(static_cast<size_t>(dice_.Draw(1, 30)));
    for (std::string& key : keys) {
      key = atomic ? absl::StrCat("{tag}", Key()) : Key();
    }
    std::vector<Operation> first;
    std::vector<Operation> second;
    for (const std::string& key : keys) {
      Operation other;
      first.push_back(Draw(key, &other));
      second.push_back(other);
    }
    std::vector<Result> one(keys.size());
    std::vector<Result> many(keys.size());
    absl::Status status;
    if (atomic) {
      one_.store().ExecuteAtomic(kName, first, absl::MakeSpan(one),
                                 [&](absl::Status done) { status = done; });
      many_.store().ExecuteAtomic(
          kName, second, absl::MakeSpan(many),
          [&](absl::Status done) { EXPECT_EQ(done, status); });
    } else {
      status = one_.Execute(kName, first, &one);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(many_.Execute(kName, second, &many).ok());
    }
    if (!status.ok()) return;
    for (size_t i = 0; i < keys.size(); ++i) Note(first[i], one[i], many[i]);
  }

  void CompareSizes() {
    const NamespaceSize one = *one_.GetSize(kName);
    const NamespaceSize many = *many_.GetSize(kName);
    ASSERT_EQ(one.entries, many.entries);
    ASSERT_EQ(one.bytes, many.bytes);
  }

  using Entries = std::map<std::string, std::pair<std::string, int64_t>>;
  Entries Walk(PartsWorld* world, absl::string_view prefix) {
    Entries entries;
    ScanPosition position;
    bool more = true;
    while (more) {
      // As a client that goes on with another walk now and then.
      if (dice_.Chance(200)) position.begun = false;
      world->store().Scan(
          kName, prefix, static_cast<int>(dice_.Draw(1, 10)), 1'000, &position,
          &more,
          [&](const ScannedEntry& entry) {
            EXPECT_TRUE(
                entries
                    .emplace(entry.key, std::pair(std::string(entry.value),
                                                  entry.deadline_us))
                    .second)
                << entry.key;
          },
          [](const absl::Status& done) { EXPECT_TRUE(done.ok()) << done; });
      EXPECT_NE(position.map, 0u);
    }
    return entries;
  }

  void CompareDeaths() {
    DeathsQuery query;
    query.max_bars = static_cast<size_t>(dice_.Draw(1, 20));
    if (dice_.Chance(500)) query.within_us = dice_.Draw(1, 20) * kSecond;
    const auto ask = [&](PartsWorld* world) {
      return *PartsWorld::Get<DeathsAhead>([&](auto done) {
        world->store().GetDeaths(kName, query, std::move(done));
      });
    };
    const DeathsAhead one = ask(&one_);
    const DeathsAhead many = ask(&many_);
    ASSERT_EQ(one.bars.size(), many.bars.size());
    ASSERT_EQ(std::tie(one.bar_us, one.begin_us, one.later.entries),
              std::tie(many.bar_us, many.begin_us, many.later.entries));
    for (size_t i = 0; i < one.bars.size(); ++i) {
      ASSERT_EQ(one.bars[i].entries, many.bars[i].entries);
      ASSERT_EQ(one.bars[i].bytes, many.bars[i].bytes);
    }
  }

  void ChangeOptions() {
    const int64_t ttl_us = dice_.Draw(5, 20) * kSecond;
    const bool sliding = dice_.Chance(300);
    const auto change = [=](NamespaceOptions* options) {
      options->ttl_us = ttl_us;
      options->sliding = sliding;
      return absl::OkStatus();
    };
    ASSERT_TRUE(one_.Update(kName, change).ok());
    ASSERT_TRUE(many_.Update(kName, change).ok());
    for (const auto& map : many_.registry().List()) {
      EXPECT_EQ(map->options().ttl_us, ttl_us);
    }
  }

  void Recreate() {
    ASSERT_TRUE(one_.Delete(kName).ok());
    ASSERT_TRUE(many_.Delete(kName).ok());
    ASSERT_TRUE(many_.MapNames().empty());
    Create();
  }

  void CompareStatistics() {
    const auto one = *one_.Describe(kName);
    const auto many = *many_.Describe(kName);
    EXPECT_EQ(one.statistics->operations.puts,
              many.statistics->operations.puts);
    EXPECT_EQ(one.statistics->operations.hits,
              many.statistics->operations.hits);
    EXPECT_EQ(one.statistics->operations.removals,
              many.statistics->operations.removals);
    EXPECT_EQ(one.statistics->entries, many.statistics->entries);
    EXPECT_EQ(one.statistics->bytes, many.statistics->bytes);
    EXPECT_EQ(many.options.num_partitions, GetParam());
  }

  void Step() {
    const int64_t act = dice_.Draw(0, 99);
    if (act < 40) {
      const std::string key = Key();
      Operation other;
      const Operation op = Draw(key, &other);
      Note(op, one_.Execute(kName, op), many_.Execute(kName, other));
    } else if (act < 80) {
      Batch(/*atomic=*/act < 50);
    } else if (act < 85) {
      clock_.AdvanceTo(clock_.NowUs() + dice_.Draw(1, 3) * kSecond);
    } else if (act < 90) {
      CompareSizes();
    } else if (act < 93) {
      const std::string prefix = dice_.Chance(300) ? "key-1" : "";
      ASSERT_EQ(Walk(&one_, prefix), Walk(&many_, prefix));
    } else if (act < 96) {
      CompareDeaths();
    } else if (act < 98) {
      CompareStatistics();
    } else if (act < 99) {
      ChangeOptions();
    } else if (dice_.Chance(100)) {
      Recreate();
    }
  }

  Dice dice_{static_cast<uint64_t>(GetParam())};
  ManualClock clock_{kStartUs};
  PartsWorld one_{&clock_};
  PartsWorld many_{&clock_};
  // The parts of a key.
  std::array<Gathering, 3> gatherings_;
  // The last known ones of a key, in both worlds.
  std::map<std::string, std::pair<uint64_t, uint64_t>> versions_;
};

TEST_P(PartitionedModelTest, AnswersAsASingleMapDoes) {
  Create();
  for (int i = 0; i < kSteps && !HasFatalFailure(); ++i) Step();
  CompareSizes();
  CompareStatistics();
}

INSTANTIATE_TEST_SUITE_P(Partitions, PartitionedModelTest,
                         testing::Values(1, 3, 16));

}  // namespace
}  // namespace timecache::server
