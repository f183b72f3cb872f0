#include "server/engine/registry.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/memory_budget.h"
#include "server/engine/store/dead_letter_route.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RegistryTest : public testing::Test {
 protected:
  static NamespaceOptions Options() { return WithBuckets(10 * kSecond, 11); }

  std::vector<std::string> Names(const Registry& registry) {
    std::vector<std::string> names;
    for (const auto& map : registry.List()) names.push_back(map->name());
    return names;
  }

  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
};

TEST_F(RegistryTest, FindsWhatWasCreated) {
  const auto created = registry_.Create("sessions", Options());
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ((*created)->name(), "sessions");
  EXPECT_EQ((*created)->options().num_buckets, 11);
  const auto found = registry_.Find("sessions");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->get(), created->get());
}

TEST_F(RegistryTest, NamesTheNamespaceThatIsNotThere) {
  for (const absl::Status& status :
       {registry_.Find("missing").status(), registry_.Delete("missing"),
        registry_
            .Update("missing",
                    [](NamespaceOptions*) { return absl::OkStatus(); })
            .status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_EQ(ReasonOf(status), Reason::kNamespaceNotFound);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("missing"));
  }
}

TEST_F(RegistryTest, RefusesNamesThatNoNamespaceCanHave) {
  EXPECT_EQ(FieldOf(registry_.Create("Bad_Name", Options()).status()),
            "namespace");
  EXPECT_EQ(registry_.Find("").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(registry_.Delete("-").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Names(registry_), IsEmpty());
}

TEST_F(RegistryTest, RefusesOptionsOutOfTheirRange) {
  NamespaceOptions options = Options();
  options.num_buckets = 1;
  EXPECT_EQ(FieldOf(registry_.Create("a", options).status()), "num_buckets");
  EXPECT_THAT(Names(registry_), IsEmpty());
}

TEST_F(RegistryTest, ANameIsTakenOnce) {
  ASSERT_TRUE(registry_.Create("a", Options()).ok());
  const absl::Status status = registry_.Create("a", Options()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(status), Reason::kNamespaceExists);
}

TEST_F(RegistryTest, HoldsNoMoreNamespacesThanItsLimit) {
  RegistryLimits limits;
  limits.max_namespaces = 2;
  Registry registry(&clock_, &reaper_, limits);
  ASSERT_TRUE(registry.Create("a", Options()).ok());
  ASSERT_TRUE(registry.Create("b", Options()).ok());
  const absl::Status status = registry.Create("c", Options()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kMaxNamespaces);
  EXPECT_EQ(registry.Create("a", Options()).status().code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(registry.Delete("a").ok());
  EXPECT_TRUE(registry.Create("c", Options()).ok());
}

// A server that restored as much as it may hold starts all the same.
TEST_F(RegistryTest, NoLimitRefusesAConfiguredNamespace) {
  RegistryLimits limits;
  limits.max_namespaces = 1;
  Registry registry(&clock_, &reaper_, limits);
  ASSERT_TRUE(registry.Create("a", Options()).ok());
  MemoryBudget::Process().SetLimit(1);
  EXPECT_EQ(ReasonOf(registry.Create("b", Options()).status()),
            Reason::kMaxMemory);
  EXPECT_TRUE(registry.CreateConfigured("b", Options()).ok());
  EXPECT_EQ(ReasonOf(registry.CreateConfigured("b", Options()).status()),
            Reason::kNamespaceExists);
  MemoryBudget::Process().SetLimit(0);
}

TEST_F(RegistryTest, UpdateChangesWhatItIsToldTo) {
  const auto map = registry_.Create("a", Options());
  const auto updated = registry_.Update("a", [](NamespaceOptions* options) {
    EXPECT_EQ(options->ttl_us, 10 * kSecond) << "those in force";
    options->ttl_us = 20 * kSecond;
    return absl::OkStatus();
  });
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ((*map)->options().ttl_us, 20 * kSecond);
  EXPECT_EQ((*map)->options().num_buckets, 11);
}

TEST_F(RegistryTest, AnUpdateThatIsWrongChangesNothing) {
  const auto map = registry_.Create("a", Options());
  const auto invalid = registry_.Update("a", [](NamespaceOptions* options) {
    options->ttl_us = 20 * kSecond;
    options->num_buckets = 1;
    return absl::OkStatus();
  });
  EXPECT_EQ(FieldOf(invalid.status()), "num_buckets");
  const auto refused = registry_.Update("a", [](NamespaceOptions* options) {
    options->ttl_us = 20 * kSecond;
    return absl::InvalidArgumentError("no");
  });
  EXPECT_EQ(refused.status().message(), "no");
  EXPECT_EQ((*map)->options().ttl_us, 10 * kSecond);
}

TEST_F(RegistryTest, UpdatesAreAtomicAmongThemselves) {
  constexpr int kThreads = 4;
  constexpr int kUpdates = 200;
  const auto map = registry_.Create("a", Options());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int j = 0; j < kUpdates; ++j) {
        EXPECT_TRUE(registry_
                        .Update("a",
                                [](NamespaceOptions* options) {
                                  ++options->max_entries;
                                  return absl::OkStatus();
                                })
                        .ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*map)->options().max_entries, kThreads * kUpdates);
}

TEST_F(RegistryTest, DeletedNamespacesAreGoneAndTheirWatchersAreTold) {
  const auto map = registry_.Create("a", Options());
  bool woken = false;
  const auto cursor = (*map)->Subscribe(ExpiryLog::Start::kNow, clock_.NowUs(),
                                        [&woken] { woken = true; });
  (*map)->Apply(Operation::Put("key", "v"), clock_.NowUs());
  EXPECT_TRUE(registry_.Delete("a").ok());
  EXPECT_TRUE(woken);
  const Reading reading = ReadAll(cursor.get());
  EXPECT_TRUE(reading.closed);
  EXPECT_THAT(reading.events, IsEmpty()) << "a deletion makes no events";
  EXPECT_EQ(registry_.Find("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Names(registry_), IsEmpty());
}

TEST_F(RegistryTest, AMapMayBeUsedAfterItsDeletion) {
  const auto map = registry_.Create("a", Options());
  EXPECT_TRUE(registry_.Delete("a").ok());
  EXPECT_TRUE(
      (*map)->Apply(Operation::Put("key", "v"), clock_.NowUs()).status.ok());
  EXPECT_TRUE((*map)->Apply(Operation::Get("key"), clock_.NowUs()).found);
}

TEST_F(RegistryTest, ANameThatWasDeletedMayBeTakenAgainEmpty) {
  uint64_t old_version = 0;
  {
    const auto map = registry_.Create("a", Options());
    old_version =
        (*map)->Apply(Operation::Put("key", "v"), clock_.NowUs()).version;
  }
  EXPECT_TRUE(registry_.Delete("a").ok());
  clock_.AdvanceBy(kSecond);
  const auto map = registry_.Create("a", Options());
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_FALSE((*map)->Apply(Operation::Get("key"), clock_.NowUs()).found);
  EXPECT_GT((*map)->Apply(Operation::Put("key", "v"), clock_.NowUs()).version,
            old_version);
}

TEST_F(RegistryTest, ServerLimitsHoldForAllNamespacesTogether) {
  RegistryLimits limits;
  limits.max_entries = 10;
  limits.max_bytes = 1'000;
  Registry registry(&clock_, &reaper_, limits);
  auto one = *registry.Create("one", Options());
  auto two = *registry.Create("two", Options());
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(one->Apply(Operation::Put(absl::StrCat(i), "v"), clock_.NowUs())
                    .status.ok());
  }
  const absl::Status entries =
      two->Apply(Operation::Put("key", "v"), clock_.NowUs()).status;
  EXPECT_EQ(entries.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(entries), Reason::kServerMaxEntries);
  const std::string large(1'000, 'v');
  EXPECT_EQ(
      ReasonOf(one->Apply(Operation::Put("1", large), clock_.NowUs()).status),
      Reason::kServerMaxBytes);
  // What has died has no share of them, nor has what is deleted.
  EXPECT_EQ(one->GetSize(clock_.NowUs() + 10 * kSecond).entries, 0);
  EXPECT_TRUE(two->Apply(Operation::Put("key", "v").WithTtl(kSecond),
                         clock_.NowUs() + 10 * kSecond)
                  .status.ok());
  one.reset();
  EXPECT_TRUE(registry.Delete("one").ok());
  EXPECT_TRUE(
      two->Apply(Operation::Put("key", "v"), clock_.NowUs()).status.ok());
}

TEST_F(RegistryTest, LimitsMayChangeWhileItIsUsed) {
  RegistryLimits limits;
  limits.max_namespaces = 1;
  limits.max_entries = 1;
  Registry registry(&clock_, &reaper_, limits);
  const auto map = *registry.Create("a", Options());
  const auto put = [&](const std::string& key) {
    return ReasonOf(
        map->Apply(Operation::Put(key, "v"), clock_.NowUs()).status);
  };
  EXPECT_EQ(put("1"), std::nullopt);
  EXPECT_EQ(put("2"), Reason::kServerMaxEntries);
  limits.max_namespaces = 2;
  limits.max_entries = 2;
  EXPECT_TRUE(registry.account()->SetLimits(limits).ok());
  EXPECT_EQ(registry.limits().max_entries, 2);
  EXPECT_EQ(put("2"), std::nullopt);
  EXPECT_EQ(put("3"), Reason::kServerMaxEntries);
  EXPECT_TRUE(registry.Create("b", Options()).ok());
  EXPECT_EQ(ReasonOf(registry.Create("c", Options()).status()),
            Reason::kMaxNamespaces);
  // Below what is in, nothing goes, and no limit is fine.
  limits.max_entries = 1;
  EXPECT_TRUE(registry.account()->SetLimits(limits).ok());
  EXPECT_EQ(put("1"), std::nullopt);
  limits.max_entries = 0;
  EXPECT_TRUE(registry.account()->SetLimits(limits).ok());
  EXPECT_EQ(put("3"), std::nullopt);
}

TEST_F(RegistryTest, AFirstLimitOfEntriesNeedsARestart) {
  RegistryLimits limits;
  limits.max_namespaces = 5;
  EXPECT_TRUE(registry_.account()->SetLimits(limits).ok());
  limits.max_entries = 1;
  EXPECT_EQ(registry_.account()->SetLimits(limits).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(registry_.limits().max_entries, 0);
}

TEST_F(RegistryTest, ItsNamespacesAreDrivenByTheReaper) {
  const auto map = registry_.Create("a", Options());
  const auto cursor =
      (*map)->Subscribe(ExpiryLog::Start::kNow, clock_.NowUs(), [] {});
  (*map)->Apply(Operation::Put("key", "v"), clock_.NowUs());
  clock_.AdvanceBy(10 * kSecond);
  reaper_.Flush();
  EXPECT_THAT(ReadAll(cursor.get()).Texts(), ElementsAre("key=v"));
}

TEST_F(RegistryTest, ListsAllOrPartsInOrderOfNames) {
  for (const char* name : {"c", "a", "e", "b"}) {
    ASSERT_TRUE(registry_.Create(name, Options()).ok());
  }
  const auto after = [&](const char* name, size_t most) {
    std::vector<std::string> names;
    for (const auto& map : registry_.ListAfter(name, most)) {
      names.push_back(map->name());
    }
    return names;
  };
  EXPECT_THAT(after("", 2), ElementsAre("a", "b"));
  EXPECT_THAT(after("b", 2), ElementsAre("c", "e"));
  EXPECT_THAT(Names(registry_), ElementsAre("a", "b", "c", "e"));
  // Where a name was deleted, the others go on.
  ASSERT_TRUE(registry_.Delete("c").ok());
  EXPECT_THAT(after("b", 2), ElementsAre("e"));
  EXPECT_THAT(after("c", 2), ElementsAre("e"));
  EXPECT_THAT(after("e", 2), IsEmpty());
  EXPECT_THAT(Names(registry_), ElementsAre("a", "b", "e"));
}

// --- Dead letters.

NamespaceOptions ToDeadLetters(const std::string& name) {
  NamespaceOptions options;
  options.ttl_us = 2 * kMinDeadLetterTtlUs;
  options.max_ttl_us = options.ttl_us;
  options.dead_letter_namespace = name;
  return options;
}

absl::Status SetDeadLetters(Registry* registry, const std::string& name,
                            const std::string& to) {
  return registry
      ->Update(name,
               [&to](NamespaceOptions* options) {
                 options->dead_letter_namespace = to;
                 return absl::OkStatus();
               })
      .status();
}

TEST_F(RegistryTest, RefusesDeadLettersThatWouldComeBack) {
  ASSERT_TRUE(registry_.Create("a", ToDeadLetters("b")).ok());
  ASSERT_TRUE(registry_.Create("b", ToDeadLetters("c")).ok());
  const absl::Status created =
      registry_.Create("c", ToDeadLetters("a")).status();
  EXPECT_EQ(FieldOf(created), "dead_letter_namespace");
  EXPECT_THAT(std::string(created.message()),
              testing::HasSubstr("c -> a -> b -> c"));
  ASSERT_TRUE(registry_.Create("c", ToDeadLetters("")).ok());
  const absl::Status updated = SetDeadLetters(&registry_, "c", "b");
  EXPECT_EQ(FieldOf(updated), "dead_letter_namespace");
  EXPECT_THAT(std::string(updated.message()),
              testing::HasSubstr("c -> b -> c"));
  EXPECT_EQ((*registry_.Find("c"))->options().dead_letter_namespace, "");
  ASSERT_TRUE(SetDeadLetters(&registry_, "b", "").ok());
  EXPECT_TRUE(SetDeadLetters(&registry_, "c", "a").ok());
}

// What an older server let be may have other changes.
TEST_F(RegistryTest, ACycleThatIsThereKeepsNoOtherChangeFrom) {
  for (const auto& [name, to] : {std::pair("a", "b"), std::pair("b", "a")}) {
    ASSERT_TRUE(
        registry_.Add(registry_.Make(name, ToDeadLetters(to), {})).ok());
  }
  EXPECT_TRUE(SetDeadLetters(&registry_, "a", "b").ok());
  // One that leads into it makes none.
  EXPECT_TRUE(registry_.Create("c", ToDeadLetters("a")).ok());
  EXPECT_TRUE(SetDeadLetters(&registry_, "a", "").ok());
  EXPECT_FALSE(SetDeadLetters(&registry_, "a", "b").ok());
}

TEST_F(RegistryTest, TwoChangesAtATimeMakeNoCycleOfDeadLetters) {
  for (int i = 0; i < 50; ++i) {
    Registry registry(&clock_, &reaper_, RegistryLimits());
    ASSERT_TRUE(registry.Create("a", ToDeadLetters("")).ok());
    std::atomic<int> ok = 0;
    std::thread update(
        [&] { ok += SetDeadLetters(&registry, "a", "b").ok() ? 1 : 0; });
    ok += registry.Create("b", ToDeadLetters("a")).ok() ? 1 : 0;
    update.join();
    EXPECT_EQ(ok, 1);
  }
}

TEST_F(RegistryTest, WarnsOfDeadLettersThatExpireSoonOrHaveNoPlace) {
  ASSERT_TRUE(registry_.Create("a", ToDeadLetters("dead")).ok());
  EXPECT_THAT(registry_.Warnings("a"),
              ElementsAre(testing::HasSubstr("dead does not exist")));
  ASSERT_TRUE(registry_.Create("dead", Options()).ok());
  EXPECT_THAT(registry_.Warnings("a"),
              ElementsAre(testing::HasSubstr("by the ttl of dead, 10s")));
  EXPECT_THAT(registry_.Warnings("dead"),
              ElementsAre(testing::HasSubstr("of 1 namespace,")));
  ASSERT_TRUE(registry_
                  .Update("dead",
                          [](NamespaceOptions* options) {
                            *options = ToDeadLetters("");
                            return absl::OkStatus();
                          })
                  .ok());
  EXPECT_THAT(registry_.Warnings("a"), IsEmpty());
  EXPECT_THAT(registry_.Warnings("dead"), IsEmpty());
}

}  // namespace
}  // namespace timecache::server
