#include "server/edge/connection/resident_memory.h"

#include <string>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

TEST(ResidentMemoryTest, GrowsWithWhatIsUsed) {
  const ResidentMemory memory;
  const int64_t before = memory.Bytes();
  EXPECT_GT(before, 0);
  constexpr size_t kBytes = size_t{64} << 20;
  const std::string used(kBytes, 'x');
  EXPECT_GT(memory.Bytes() - before, static_cast<int64_t>(kBytes / 2))
      << used.back();
}

}  // namespace
}  // namespace timecache::server
