// The worlds that the engine is held against its model in.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_WORLDS_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_WORLDS_H_

#include <vector>

#include "tests/support/engine/model_world.h"

namespace timecache::server {

std::vector<WorldOptions> ModelWorlds();

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_WORLDS_H_
