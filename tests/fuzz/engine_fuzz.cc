// The engine beside its model: the bytes choose a world, its operations and the
// steps of its clock.

#include <fuzzer/FuzzedDataProvider.h>

#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/model_fuzz.h"
#include "tests/support/engine/model_world.h"
#include "tests/support/engine/model_worlds.h"

namespace timecache::server {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<WorldOptions>& worlds =
      *new std::vector<WorldOptions>(ModelWorlds());
  fuzz::FailuresAreFindings();
  FuzzedDataProvider input(data, size);
  const WorldOptions& options =
      worlds[input.ConsumeIntegralInRange<size_t>(0, worlds.size() - 1)];
  ModelWorld world(options, fuzz::DiceOf(&input));
  for (int step = 0; step < fuzz::kMaxSteps && input.remaining_bytes() > 0;
       ++step) {
    world.Step();
  }
  world.CheckAtRest();
  return 0;
}

}  // namespace timecache::server
