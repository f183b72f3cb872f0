// Watchers and consumer groups beside the reference of what they must see,
// under random deaths, stalls, resumes, settlements and trims.
//
// TIMECACHED_MODEL_SEED=n takes another run than the default one.
// TIMECACHED_MODEL_STEPS=n takes n steps over all worlds together.

#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/delivery/delivery_world.h"
#include "tests/support/delivery/delivery_worlds.h"
#include "tests/support/effort.h"
#include "tests/support/engine/model_run.h"

namespace timecache::server {
namespace {

class DeliveryModelTest : public testing::TestWithParam<DeliveryWorldOptions> {
};

TEST_P(DeliveryModelTest, EngineAndReferenceAgree) {
  constexpr uint64_t kDefaultSteps = test::Rounds(uint64_t{2'000'000});
  // Steps between two comparisons of everything.
  constexpr uint64_t kRestEvery = 1'000;
  const DeliveryWorldOptions& options = GetParam();
  const uint64_t seed = ModelSeed();
  const uint64_t steps = ModelSteps(options, DeliveryWorlds(), kDefaultSteps);
  std::cout << options.name << ": seed " << seed << ", " << steps << " steps\n";
  ASSERT_TRUE(Validate(options.map).ok()) << Validate(options.map);
  ASSERT_TRUE(Validate(options.group.group).ok());
  DeliveryWorld world(options, Dice(seed));
  for (uint64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE(absl::StrCat(options.name, ", seed ", seed, ", step ", step));
    world.Step();
    if (step % kRestEvery == 0) world.CheckAtRest();
    ASSERT_FALSE(HasFailure());
  }
  SCOPED_TRACE(absl::StrCat(options.name, ", seed ", seed, ", at the end"));
  world.End();
  std::cout << world.Story() << "\n";
}

INSTANTIATE_TEST_SUITE_P(Worlds, DeliveryModelTest,
                         testing::ValuesIn(DeliveryWorlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace timecache::server
