// The engine beside the reference model, under random operations and clock
// steps.
//
// TIMECACHED_MODEL_SEED=n takes another run than the default one.
// TIMECACHED_MODEL_STEPS=n takes n steps over all worlds together.

#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/effort.h"
#include "tests/support/engine/model_run.h"
#include "tests/support/engine/model_world.h"
#include "tests/support/engine/model_worlds.h"

namespace timecache::server {
namespace {

class ModelTest : public testing::TestWithParam<WorldOptions> {};

TEST_P(ModelTest, EngineAndModelAgree) {
  constexpr uint64_t kDefaultSteps = test::Rounds(uint64_t{4'000'000});
  // Steps between two comparisons of everything.
  constexpr uint64_t kRestEvery = 5'000;
  const WorldOptions& options = GetParam();
  const uint64_t seed = ModelSeed();
  const uint64_t steps = ModelSteps(options, ModelWorlds(), kDefaultSteps);
  std::cout << options.name << ": seed " << seed << ", " << steps << " steps\n";
  ASSERT_TRUE(Validate(options.map).ok()) << Validate(options.map);
  ModelWorld world(options, Dice(seed));
  for (uint64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE(absl::StrCat(options.name, ", seed ", seed, ", step ", step));
    world.Step();
    if (step % kRestEvery == 0 || step == steps) world.CheckAtRest();
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, ModelTest, testing::ValuesIn(ModelWorlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace timecache::server
