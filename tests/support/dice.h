// Chance in tests: the same seed, the same run.

#ifndef TIMECACHED_TESTS_SUPPORT_DICE_H_
#define TIMECACHED_TESTS_SUPPORT_DICE_H_

#include <cstdint>
#include <random>

namespace timecache {

// Not thread-safe.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  // Each number from `least` to `most` with the same chance.
  int64_t Draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  size_t Index(size_t size) {
    return static_cast<size_t>(Draw(0, static_cast<int64_t>(size) - 1));
  }
  bool Chance(int per_mille) { return Draw(0, 999) < per_mille; }

 private:
  std::mt19937_64 random_;
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_SUPPORT_DICE_H_
