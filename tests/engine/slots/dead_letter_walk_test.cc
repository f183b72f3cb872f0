#include "server/engine/parts/dead_letter_walk.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/dead_letter_route.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/slots_store.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeadLetterWalkTest : public testing::Test {
 protected:
  static NamespaceOptions To(const std::string& dead_letters,
                             int64_t ttl_us = kMinDeadLetterTtlUs) {
    NamespaceOptions options;
    options.ttl_us = ttl_us;
    options.dead_letter_namespace = dead_letters;
    return options;
  }
  void Create(const std::string& name, const NamespaceOptions& options) {
    const absl::Status created =
        store_.RegistryOf(name).Create(name, options).status();
    ASSERT_TRUE(created.ok()) << created;
  }
  absl::Status Check(const std::string& name, const std::string& to) {
    std::optional<absl::Status> status;
    CheckDeadLetterRoute(&store_, name, To(to),
                         [&](absl::Status done) { status = std::move(done); });
    return status.value();
  }
  std::vector<std::string> Warnings(const std::string& name,
                                    const NamespaceOptions& options) {
    std::optional<std::vector<std::string>> all;
    FindDeadLetterWarnings(
        &store_, name, options,
        [&](std::vector<std::string> warnings) { all = std::move(warnings); });
    return all.value();
  }

  ManualClock clock_{kStartUs};
  SlotsStore store_{5, &clock_};
};

TEST_F(DeadLetterWalkTest, FindsACycleOverSeveralNodes) {
  Create("b", To("c"));
  Create("c", To("d"));
  EXPECT_TRUE(Check("a", "").ok());
  EXPECT_TRUE(Check("a", "b").ok());
  const absl::Status cycle = Check("d", "b");
  EXPECT_EQ(FieldOf(cycle), "dead_letter_namespace");
  EXPECT_THAT(std::string(cycle.message()), HasSubstr("d -> b -> c -> d"));
}

TEST_F(DeadLetterWalkTest, EndsInACycleThatIsThereAndOnALongWay) {
  Create("b", To("c"));
  Create("c", To("b"));
  EXPECT_TRUE(Check("a", "b").ok());
  for (int i = 0; i < kMaxDeadLetterSteps + 10; ++i) {
    Create(absl::StrCat("n", i), To(absl::StrCat("n", i + 1)));
  }
  const size_t before = store_.calls();
  EXPECT_TRUE(Check("a", "n0").ok());
  EXPECT_EQ(store_.calls() - before, size_t{kMaxDeadLetterSteps});
}

TEST_F(DeadLetterWalkTest, DoesNotGuessWhatCouldNotBeAsked) {
  store_.Fail(absl::UnavailableError("no owner"));
  EXPECT_TRUE(absl::IsUnavailable(Check("a", "b")));
  EXPECT_TRUE(Check("a", "").ok());
  EXPECT_THAT(Warnings("a", To("b")), IsEmpty());
}

TEST_F(DeadLetterWalkTest, WarnsAsARegistryThatHasAll) {
  EXPECT_THAT(Warnings("a", To("b")),
              ElementsAre(HasSubstr("b does not exist")));
  Create("b", To("", kSecond));
  EXPECT_THAT(Warnings("a", To("b")), ElementsAre(HasSubstr("expire soon")));
  EXPECT_THAT(Warnings("b", To("", kSecond)), IsEmpty());
  Create("a", To("b"));
  EXPECT_THAT(Warnings("b", To("", kSecond)),
              ElementsAre(HasSubstr("of 1 namespace")));
  EXPECT_THAT(Warnings("b", To("")), IsEmpty());
}

}  // namespace
}  // namespace timecache::server
