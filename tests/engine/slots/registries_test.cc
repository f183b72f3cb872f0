#include "server/engine/registries.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct World {
  explicit World(int64_t now_us) : clock(now_us) {}

  RegistryMember member() const { return {&registry, &reaper, &clock}; }

  ManualClock clock;
  Reaper reaper{&clock};
  Registry registry{&clock, &reaper, RegistryLimits()};
};

std::vector<std::string> NamesOf(const Registries& registries) {
  std::vector<std::string> names;
  registries.ForEachMap([&](const auto& map, int64_t now_us) {
    names.push_back(map->name() + "@" + std::to_string(now_us));
  });
  return names;
}

TEST(RegistriesTest, HaveTheMapsOfAllByNameWithTheTimeOfEach) {
  World one(1'000);
  World two(2'000);
  for (const char* name : {"a", "d"}) {
    ASSERT_TRUE(one.registry.Create(name, NamespaceOptions()).ok());
  }
  for (const char* name : {"b", "c"}) {
    ASSERT_TRUE(two.registry.Create(name, NamespaceOptions()).ok());
  }
  Registries registries;
  EXPECT_THAT(NamesOf(registries), IsEmpty());
  registries.Add(one.member());
  EXPECT_THAT(NamesOf(registries), ElementsAre("a@1000", "d@1000"));
  registries.Add(two.member());
  EXPECT_THAT(NamesOf(registries),
              ElementsAre("a@1000", "b@2000", "c@2000", "d@1000"));
  registries.Remove(&one.registry);
  EXPECT_THAT(NamesOf(registries), ElementsAre("b@2000", "c@2000"));
}

TEST(RegistriesTest, SweepsOfAReaperThatHasGoneStillCount) {
  World world(kStartUs);
  Registries registries(world.member());
  const auto map = *world.registry.Create("a", WithBuckets(10 * kSecond, 11));
  map->Apply(Operation::Put("k", "v"), world.clock.NowUs());
  world.clock.AdvanceBy(20 * kSecond);
  world.reaper.Flush();
  const uint64_t sweeps = registries.sweeps().total();
  EXPECT_GT(sweeps, 0u);
  registries.Remove(&world.registry);
  EXPECT_EQ(registries.sweeps().total(), sweeps);
}

}  // namespace
}  // namespace timecache::server
