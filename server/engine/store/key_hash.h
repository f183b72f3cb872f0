// The hash of a key, which determines its shard and its place in that shard's
// index.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_KEY_HASH_H_
#define TIMECACHED_SERVER_ENGINE_STORE_KEY_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace timecache::server {

// Hashes keys, each map by a seed of its own: a client that knows the seed could
// choose keys of one shard and one tag. The same in every process: a map that is
// rebuilt from its changes has each key in the same shard. The low bits of a hash
// choose the shard, its top bits are the index's tag.
//
// Folded products of 64 bits, as in wyhash (Wang Yi): two loads and two
// multiplications for a key of up to 16 bytes, one more for each 16 bytes.
class KeyHash {
 public:
  explicit KeyHash(uint64_t seed)
      : state_(Fold(seed ^ kFirst, kSecond)),
        secret_(Fold(seed ^ kSecond, kThird)) {}

  uint64_t operator()(absl::string_view key) const {
    const char* at = key.data();
    size_t left = key.size();
    uint64_t state = state_;
    for (; left > kStep; at += kStep, left -= kStep) {
      state = Fold(Load(at) ^ secret_, Load(at + 8) ^ state);
    }
    // The rest: its first and its last bytes, which overlap.
    uint64_t first = 0;
    uint64_t last = 0;
    if (left >= 8) {
      first = Load(at);
      last = Load(at + left - 8);
    } else if (left >= 4) {
      first = LoadHalf(at);
      last = LoadHalf(at + left - 4);
    } else if (left > 0) {
      first = static_cast<uint8_t>(at[0]);
      last = (uint64_t{static_cast<uint8_t>(at[left / 2])} << 8) |
             static_cast<uint8_t>(at[left - 1]);
    }
    return Fold(Fold(first ^ secret_, last ^ state) ^ kThird,
                key.size() ^ kFirst);
  }

 private:
  static constexpr size_t kStep = 16;
  // Fractions of pi, odd.
  static constexpr uint64_t kFirst = 0x243f6a8885a308d3;
  static constexpr uint64_t kSecond = 0x13198a2e03707345;
  static constexpr uint64_t kThird = 0xa4093822299f31d1;

  static uint64_t Fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
  }
  // Little-endian, as all that the engine writes.
  static uint64_t Load(const char* from) {
    uint64_t value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  static uint64_t LoadHalf(const char* from) {
    uint32_t value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }

  uint64_t state_;
  // Both factors of each product depend on the seed: a factor of 0, which
  // forgets the other one, cannot be chosen.
  uint64_t secret_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_KEY_HASH_H_
