// The worlds that delivery is held against its reference in.

#ifndef TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WORLDS_H_
#define TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WORLDS_H_

#include <vector>

#include "tests/support/delivery/delivery_world.h"

namespace timecache::server {

std::vector<DeliveryWorldOptions> DeliveryWorlds();

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WORLDS_H_
