// What a run of a model test is told by its environment.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_RUN_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_RUN_H_

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"

namespace timecache::server {

inline uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t number = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &number)) {
    ADD_FAILURE() << name << " must be a number, not " << text;
  }
  return number;
}

// TIMECACHED_MODEL_SEED=n takes another run than the default one.
inline uint64_t ModelSeed() {
  return NumberFromEnvironment("TIMECACHED_MODEL_SEED", 20111204);
}

// The share of `world`, by its weight, in the steps over all worlds together:
// TIMECACHED_MODEL_STEPS, or `default_steps`.
template <typename World>
uint64_t ModelSteps(const World& world, const std::vector<World>& all_worlds,
                    uint64_t default_steps) {
  double weights = 0;
  for (const World& each : all_worlds) weights += each.weight;
  const auto steps = static_cast<double>(
      NumberFromEnvironment("TIMECACHED_MODEL_STEPS", default_steps));
  return static_cast<uint64_t>(steps * world.weight / weights) + 1;
}

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_RUN_H_
