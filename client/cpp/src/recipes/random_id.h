// Numbers that tell one thing from all others. Internal to the client.
#pragma once

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
