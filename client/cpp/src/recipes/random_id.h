// Random unique numbers. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RECIPES_RANDOM_ID_H_
#define TIMECACHED_CLIENT_CPP_SRC_RECIPES_RANDOM_ID_H_

#include <cstdint>
#include <random>

namespace timecache {

// Never 0. Two are equal with a probability of 2^-64, of processes, too.
inline uint64_t RandomId() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(),
                       device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  while (true) {
    if (const uint64_t id = generator(); id != 0) return id;
  }
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RECIPES_RANDOM_ID_H_
