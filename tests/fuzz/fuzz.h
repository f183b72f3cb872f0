// What the fuzz targets have in common. Each is a program of libFuzzer's: it is
// given bytes, and whatever they are it must neither crash, hang, leak nor fail
// a Require.

#ifndef TIMECACHED_TESTS_FUZZ_FUZZ_H_
#define TIMECACHED_TESTS_FUZZ_FUZZ_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace timecache::fuzz {

// Ends the process, which the fuzzer takes for a finding.
inline void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: broken promise: %s\n", what.c_str());
  std::abort();
}

inline std::string Bytes(const uint8_t* data, size_t size) {
  return std::string(reinterpret_cast<const char*>(data), size);
}

}  // namespace timecache::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#endif  // TIMECACHED_TESTS_FUZZ_FUZZ_H_
