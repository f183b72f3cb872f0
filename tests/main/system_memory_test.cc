// The default of limits.max_memory_bytes.
#include "server/main/system_memory.h"

#include <string>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

class SystemMemoryTest : public ::testing::Test {
 protected:
  SystemMemoryTest() { machine_.total_bytes = 10 * kGiB; }

  void Expect(int64_t bytes, int percent, const std::string& source) const {
    const MemoryPlan plan = PlanMemory(config::v1::ServerLimits(), machine_);
    EXPECT_EQ(plan.source, source);
    EXPECT_EQ(plan.engine_bytes, bytes / 100 * percent);
  }

  Machine machine_;
};

TEST_F(SystemMemoryTest, IsAShareOfTheLeastThatIsKnown) {
  Expect(10 * kGiB, kMemoryPercent, "MemTotal");
  machine_.control_group_bytes = 5 * kGiB;
  Expect(5 * kGiB, kMemoryPercent, "cgroup");
  machine_.address_space_bytes = kGiB / 2;
  Expect(kGiB / 2, kAddressSpacePercent, "RLIMIT_AS");
  machine_ = Machine();
  Expect(0, 0, "none");
}

TEST_F(SystemMemoryTest, IsWhatTheConfigurationSays) {
  config::v1::ServerLimits limits;
  limits.set_max_memory_bytes(uint64_t{64} << 30);
  MemoryPlan plan = PlanMemory(limits, machine_);
  EXPECT_EQ(plan.source, "limits.max_memory_bytes");
  EXPECT_EQ(plan.engine_bytes, 64 * kGiB);
  EXPECT_EQ(plan.grpc_bytes, 8 * kGiB);
  EXPECT_EQ(plan.response_bytes, 8 * kGiB);
  limits.set_max_memory_bytes(16 << 20);
  plan = PlanMemory(limits, machine_);
  // Four of the largest requests.
  EXPECT_EQ(plan.grpc_bytes, (64 << 20) + (256 << 10));
  EXPECT_EQ(plan.response_bytes, 32 << 20);
  limits.set_max_memory_bytes(0);
  plan = PlanMemory(limits, machine_);
  EXPECT_EQ(plan.engine_bytes, 0);
  EXPECT_EQ(plan.grpc_bytes, 0);
  EXPECT_EQ(plan.response_bytes, 256 << 20);
  limits.set_max_response_bytes(1 << 20);
  EXPECT_EQ(PlanMemory(limits, machine_).response_bytes, 1 << 20);
}

// What a server may come to hold fits into its container.
TEST_F(SystemMemoryTest, AllSharesFitInto512MiB) {
  machine_.control_group_bytes = kGiB / 2;
  const MemoryPlan plan = PlanMemory(config::v1::ServerLimits(), machine_);
  // The process itself, before a namespace has an entry.
  constexpr int64_t kProcessBytes = 24 << 20;
  EXPECT_LE(kProcessBytes + plan.engine_bytes + plan.engine_bytes / 16 +
                plan.grpc_bytes + plan.response_bytes,
            kGiB / 2);
}

}  // namespace
}  // namespace timecache::server
