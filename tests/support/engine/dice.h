// Chance in tests: the same seed, the same run.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_DICE_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_DICE_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>

namespace timecache {

// Not thread-safe.
class Dice {
 public:
  // Gives a number from the first to the second.
  using Source = std::function<int64_t(int64_t, int64_t)>;

  explicit Dice(uint64_t seed)
      : source_([random = std::mt19937_64(seed)](int64_t least,
                                                 int64_t most) mutable {
          return std::uniform_int_distribution<int64_t>(least, most)(random);
        }) {}
  // For who chooses: a fuzzer.
  explicit Dice(Source source) : source_(std::move(source)) {}

  // Each number from `least` to `most` with the same chance.
  int64_t Draw(int64_t least, int64_t most) { return source_(least, most); }
  size_t Index(size_t size) {
    return static_cast<size_t>(Draw(0, static_cast<int64_t>(size) - 1));
  }
  bool Chance(int per_mille) { return Draw(0, 999) < per_mille; }

 private:
  Source source_;
};

// Bytes to cut values from: no two places look alike.
inline const std::string& Noise() {
  static constexpr size_t kNoiseBytes = size_t{2} << 20;
  static const std::string& noise = *[] {
    auto* bytes = new std::string(kNoiseBytes, '\0');
    std::mt19937_64 random(20111204);
    for (char& c : *bytes) c = static_cast<char>(random());
    return bytes;
  }();
  return noise;
}

}  // namespace timecache

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_DICE_H_
