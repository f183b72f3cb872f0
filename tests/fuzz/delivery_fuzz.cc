// Watchers and consumer groups beside the reference of what they must see: the
// bytes choose a world, and who does what when.

#include <fuzzer/FuzzedDataProvider.h>

#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/model_fuzz.h"
#include "tests/support/delivery/delivery_world.h"
#include "tests/support/delivery/delivery_worlds.h"

namespace timecache::server {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<DeliveryWorldOptions>& worlds =
      *new std::vector<DeliveryWorldOptions>(DeliveryWorlds());
  fuzz::FailuresAreFindings();
  FuzzedDataProvider input(data, size);
  const DeliveryWorldOptions& options =
      worlds[input.ConsumeIntegralInRange<size_t>(0, worlds.size() - 1)];
  DeliveryWorld world(options, fuzz::DiceOf(&input));
  for (int step = 0; step < fuzz::kMaxSteps && input.remaining_bytes() > 0;
       ++step) {
    world.Step();
  }
  world.CheckAtRest();
  world.End();
  return 0;
}

}  // namespace timecache::server
