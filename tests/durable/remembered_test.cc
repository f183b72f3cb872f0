// What a map remembers besides its entries lasts: keys that Gathers have
// completed, and answers to idempotency ids.

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

class RememberedTest : public DurableStoreTest {
 protected:
  Result Do(const Operation& op) { return store_.Execute("a", op); }
  Result GatherPart(const std::string& key, const std::string& part,
                    const std::string& id) {
    Gathering gathering;
    EXPECT_TRUE(gathering.Set(part, 2, {}).ok());
    gathering.remember_us = 100 * kSecond;
    Operation op = Operation::Gather(key, &gathering, part);
    op.SetId(id);
    return Do(op);
  }
  Result Add(const std::string& id) {
    Operation op = Operation::Combine("n", Combination::kAdd, 5);
    op.SetId(id);
    return Do(op);
  }
  void Trim() {
    store_.checkpointer_options() = {.min_journal_bytes = 1, .factor = 0};
    Reopen();
    ASSERT_TRUE(Await([&] {
      store_.checkpointer().Look();
      return store_.checkpointer().GetStatistics().rounds > 0;
    }));
  }
};

TEST_F(RememberedTest, AnswersAndCompleteKeysOutliveCrashesAndACheckpoint) {
  Update("a", [](NamespaceOptions* options) {
    options->idempotency_window_us = 100 * kSecond;
    return absl::OkStatus();
  });
  EXPECT_EQ(Add("1").number, 5);
  GatherPart("g", "left", "2");
  const Result whole = GatherPart("g", "right", "3");
  ASSERT_TRUE(whole.removed);
  // Nothing changes.
  Operation remove = Operation::Remove("absent");
  remove.SetId("4");
  EXPECT_FALSE(Do(remove).found);
  Do(Operation::Put("absent", "v").WithTtl(600 * kSecond));
  for (const bool trims : {false, true}) {
    if (trims) Trim();
    LosePower();
    Reopen();
    EXPECT_EQ(Add("1").number, 5);
    const Result again = GatherPart("g", "right", "3");
    EXPECT_TRUE(again.removed);
    EXPECT_EQ(again.entry.value, whole.entry.value);
    EXPECT_EQ(ReasonOf(GatherPart("g", "late", "5").status),
              Reason::kGatherComplete);
    EXPECT_FALSE(Do(remove).found);
    EXPECT_TRUE(Do(Operation::Get("absent")).found);
  }
  store_.AdvanceBy(100 * kSecond);
  EXPECT_FALSE(Do(Operation::Get("n")).found);
  Add("1");
  EXPECT_TRUE(Do(Operation::Get("n")).found);
  EXPECT_EQ(GatherPart("g", "late", "5").number, 1);
}

}  // namespace
}  // namespace timecache::server
