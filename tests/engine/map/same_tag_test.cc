// Two keys that the index cannot tell apart: what is done to one that is not
// there has nothing of the other. In a shard of 40,000 entries one key in a
// hundred has the tag of another.

#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/shard/compact_index.h"
#include "server/engine/shard/key_hash.h"
#include "server/engine/store/gathered_parts.h"
#include "server/engine/store/operation.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr uint64_t kSeed = 7;
constexpr int64_t kOtherTtlUs = 90 * kSecond;

std::pair<std::string, std::string> KeysOfOneTag() {
  const KeyHash hash(kSeed);
  std::unordered_map<uint32_t, std::string> keys;
  for (int i = 0;; ++i) {
    std::string key = absl::StrCat("key", i);
    const auto [it, is_new] =
        keys.try_emplace(CompactIndex::TagOf(hash(key)), key);
    if (!is_new) return {it->second, std::move(key)};
  }
}

NamespaceOptions OneShard() {
  NamespaceOptions options = WithBuckets(30 * kSecond, 4);
  options.num_shards = 1;
  return options;
}

class SameTagTest : public ::testing::Test {
 protected:
  SameTagTest() {
    std::tie(other_, key_) = KeysOfOneTag();
    EXPECT_TRUE(Apply(Operation::Put(other_, "secret").WithTtl(kOtherTtlUs))
                    .status.ok());
  }
  ~SameTagTest() override {
    EXPECT_EQ(Apply(Operation::Get(other_)).entry.value, "secret");
  }

  Result Apply(const Operation& op) { return map_.Apply(op, kStartUs); }
  Entry Get() { return Apply(Operation::Get(key_)).entry; }

  std::string other_;
  std::string key_;
  TimeCacheMap map_{"map",    OneShard(),           nullptr,
                    kStartUs, EventFormat::Plain(), {.hash_seed = kSeed}};
};

TEST_F(SameTagTest, AGatherThatIsCompleteAtOnceHasItsOwnPart) {
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("part", 1, {}).ok());
  const Result result = Apply(Operation::Gather(key_, &gathering, "own"));
  ASSERT_TRUE(result.has_entry);
  std::string expected(gathering.expectation());
  AppendPart({"part", "own"}, &expected);
  EXPECT_EQ(result.entry.value, expected);
  EXPECT_EQ(result.entry.deadline_us, kStartUs + 30 * kSecond);
}

TEST_F(SameTagTest, WhatIsCreatedHasItsOwnValueAndTimes) {
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("part", 2, {}).ok());
  std::string gathered(gathering.expectation());
  AppendPart({"part", "own"}, &gathered);
  Operation put = Operation::Put(key_, "own");
  put.keep_deadline = true;
  put.return_previous = true;
  const std::vector<std::pair<Operation, std::string>> made = {
      {put, "own"},
      {Operation::Append(key_, "own"), "own"},
      {Operation::Combine(key_, Combination::kAdd, 5), "5"},
      {Operation::Gather(key_, &gathering, "own"), gathered}};
  for (const auto& [op, value] : made) {
    SCOPED_TRACE(static_cast<int>(op.kind));
    const Result result = Apply(op);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_FALSE(result.found);
    EXPECT_FALSE(result.has_entry);
    const Entry entry = Get();
    EXPECT_EQ(entry.value, value);
    EXPECT_EQ(entry.parts, op.kind == OpKind::kGather);
    EXPECT_EQ(entry.put_us, kStartUs);
    EXPECT_EQ(entry.deadline_us, kStartUs + 30 * kSecond);
    EXPECT_TRUE(Apply(Operation::Remove(key_)).found);
  }
}

TEST_F(SameTagTest, WhatIsNotThereIsNotFound) {
  for (Operation op : {Operation::Get(key_), Operation::Contains(key_),
                       Operation::Touch(key_), Operation::Remove(key_)}) {
    op.touch = op.kind == OpKind::kGet;
    op.return_previous = op.kind == OpKind::kRemove;
    const Result result = Apply(op);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_FALSE(result.found);
    EXPECT_FALSE(result.has_entry);
    EXPECT_EQ(result.version, 0u);
  }
}

}  // namespace
}  // namespace timecache::server
