// Requests with an idempotency id: what the reference model does not know.

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/shard/shard.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

NamespaceOptions WithWindow(int64_t window_us) {
  NamespaceOptions options = Tens();
  options.idempotency_window_us = window_us;
  return options;
}

class IdempotencyTest : public ::testing::Test {
 protected:
  static Operation Add(absl::string_view key, absl::string_view id) {
    Operation op = Operation::Combine(key, Combination::kAdd, 1);
    op.SetId(id);
    return op;
  }

  MapHarness harness_{WithWindow(5 * kSecond)};
};

TEST_F(IdempotencyTest, TheWindowBeginsWithTheFirstAnswer) {
  harness_.Apply(Add("n", "1"));
  harness_.Pass(3 * kSecond);
  EXPECT_EQ(harness_.Apply(Add("n", "1")).number, 1);
  harness_.Pass(2 * kSecond - 1);
  EXPECT_EQ(harness_.Apply(Add("n", "1")).number, 1);
  harness_.Pass(1);
  EXPECT_EQ(harness_.Apply(Add("n", "1")).number, 2);
}

TEST_F(IdempotencyTest, AnIdIsOfOneKey) {
  EXPECT_EQ(harness_.Apply(Add("n", "1")).number, 1);
  EXPECT_EQ(harness_.Apply(Add("m", "1")).number, 1);
  EXPECT_EQ(harness_.Entries(), 2);
}

TEST_F(IdempotencyTest, AnErrorIsNotRemembered) {
  harness_.Put("n", "no number");
  EXPECT_EQ(ReasonOf(harness_.Apply(Add("n", "1")).status),
            Reason::kNotANumber);
  harness_.Put("n", "7");
  EXPECT_EQ(harness_.Apply(Add("n", "1")).number, 8);
}

TEST_F(IdempotencyTest, AnAnswerOutlivesItsEntry) {
  harness_.Apply(Add("n", "1").WithTtl(kSecond));
  harness_.Pass(4 * kSecond);
  harness_.Sweep();
  EXPECT_EQ(harness_.Entries(), 0);
  EXPECT_EQ(harness_.Apply(Add("n", "1")).number, 1);
  EXPECT_EQ(harness_.Entries(), 0);
}

TEST_F(IdempotencyTest, WithoutAWindowNoRequestMayHaveAnId) {
  harness_.Update(WithWindow(0));
  EXPECT_EQ(FieldOf(harness_.Apply(Add("n", "1")).status), "idempotency_id");
  harness_.Update(WithWindow(kSecond));
  EXPECT_TRUE(harness_.Apply(Add("n", "1")).status.ok());
}

TEST_F(IdempotencyTest, ARangeOfIdsAndNoPreviousEntry) {
  EXPECT_TRUE(harness_.Apply(Add("n", std::string(64, 'x'))).status.ok());
  for (const size_t size : {65, 255, 256, 1000}) {
    const std::string id(size, 'x');
    EXPECT_EQ(FieldOf(harness_.Apply(Add("n", id)).status), "idempotency_id");
  }
  Operation put = Operation::Put("n", "1");
  put.SetId("1");
  put.return_previous = true;
  EXPECT_EQ(FieldOf(harness_.Apply(put).status), "return_previous");
}

TEST_F(IdempotencyTest, TheOldestAnswersAreForgottenBeyondTheirNumber) {
  NamespaceOptions options = WithWindow(kHour);
  options.idempotency_max_ids = kMinIdempotencyIds;
  harness_.Update(options);
  const int64_t ids = 4 * kMinIdempotencyIds;
  for (int64_t i = 0; i < ids; ++i) {
    harness_.Apply(Add("n", absl::StrCat(i)));
  }
  EXPECT_EQ(harness_.Apply(Add("n", absl::StrCat(ids - 1))).number, ids);
  EXPECT_EQ(harness_.Apply(Add("n", "0")).number, ids + 1);
}

// Gathers' parts, of one shard.
TEST_F(IdempotencyTest, PartsThatAreRememberedHaveALimit) {
  NamespaceOptions options = WithWindow(kHour);
  options.num_shards = 1;
  options.max_value_bytes = 16 << 20;
  MapHarness harness(options);
  const std::string value(8 << 20, 'v');
  const auto gather = [&](int key) {
    Gathering gathering;
    EXPECT_TRUE(gathering.Set("a", 1, {}).ok());
    const std::string name = absl::StrCat(key);
    Operation op = Operation::Gather(name, &gathering, value);
    op.SetId("1");
    const Result result = harness.Apply(op);
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.entry.value.size();
  };
  for (int i = 0; i < 20; ++i) EXPECT_GT(gather(i), value.size());
  const int64_t memory_bytes = harness.Statistics().memory_bytes;
  EXPECT_LE(memory_bytes, Shard::kMaxAnswerBytes + (1 << 20));
  EXPECT_GE(memory_bytes, Shard::kMaxAnswerBytes / 2);
  harness.Pass(kHour);
  harness.Sweep();
  EXPECT_LT(harness.Statistics().memory_bytes, 1 << 20);
}

}  // namespace
}  // namespace timecache::server
