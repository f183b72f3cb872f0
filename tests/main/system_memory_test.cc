// The default of limits.max_memory_bytes, from files as Linux has them.
#include "server/main/system_memory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr uint64_t kNoLimit = UINT64_MAX;

class SystemMemoryTest : public ::testing::Test {
 protected:
  SystemMemoryTest() {
    sources_.root = directory_.path();
    sources_.address_space_bytes = kNoLimit;
    Write("/proc/meminfo",
          "MemTotal:       10485760 kB\nMemFree:         1048576 kB\n");
  }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path to = sources_.root + path;
    std::filesystem::create_directories(to.parent_path());
    std::ofstream(to) << text;
  }
  // The engine's share of so much, which is less than all else.
  void ExpectOf(int64_t bytes, const std::string& source) {
    Expect(bytes / 100 * kMemoryPercent, source);
  }
  void Expect(int64_t bytes, const std::string& source) {
    const MemoryPlan plan = PlanMemory(config::v1::ServerLimits(), sources_);
    EXPECT_EQ(plan.source, source);
    // A percent is taken of whole hundreds.
    EXPECT_NEAR(static_cast<double>(plan.engine_bytes),
                static_cast<double>(bytes), 100);
  }

  const TemporaryDirectory directory_;
  MemorySources sources_;
};

TEST_F(SystemMemoryTest, IsTheMachinesWhereNothingElseIsLess) {
  ExpectOf(10 * kGiB, "MemTotal");
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  ExpectOf(10 * kGiB, "MemTotal");
}

TEST_F(SystemMemoryTest, IsTheLeastOfTheControlGroupAndThoseAboveIt) {
  Write("/proc/self/cgroup", "0::/system.slice/timecached.service\n");
  Write("/sys/fs/cgroup/system.slice/timecached.service/memory.max", "max\n");
  Write("/sys/fs/cgroup/system.slice/memory.max", "5368709120\n");
  ExpectOf(5 * kGiB, "cgroup");
  Write("/sys/fs/cgroup/system.slice/timecached.service/memory.max",
        "2684354560\n");
  ExpectOf(5 * kGiB / 2, "cgroup");
}

TEST_F(SystemMemoryTest, FindsAContainersLimitAtTheRoot) {
  Write("/proc/self/cgroup", "0::/../../pod7/abc\n");
  Write("/sys/fs/cgroup/memory.max", "1342177280\n");
  ExpectOf(5 * kGiB / 4, "cgroup");
}

TEST_F(SystemMemoryTest, KnowsControlGroupsOfVersion1) {
  Write("/proc/self/cgroup",
        "5:cpu,cpuacct:/a\n4:hugetlb,memory:/docker/abc\n1:name=systemd:/a\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  ExpectOf(10 * kGiB, "MemTotal");
  Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes",
        "1342177280\n");
  ExpectOf(5 * kGiB / 4, "cgroup");
}

TEST_F(SystemMemoryTest, IsAShareOfTheAddressesWhereThatIsLeast) {
  sources_.address_space_bytes = uint64_t{512} << 20;
  Expect(kGiB / 2 * kAddressSpacePercent / 100, "RLIMIT_AS");
}

TEST_F(SystemMemoryTest, IsNoneWhereNothingIsKnown) {
  sources_.root += "/nowhere";
  Expect(0, "none");
}

TEST_F(SystemMemoryTest, IsWhatTheConfigurationSays) {
  config::v1::ServerLimits limits;
  limits.set_max_memory_bytes(uint64_t{64} << 30);
  MemoryPlan plan = PlanMemory(limits, sources_);
  EXPECT_EQ(plan.source, "limits.max_memory_bytes");
  EXPECT_EQ(plan.engine_bytes, 64 * kGiB);
  EXPECT_EQ(plan.grpc_bytes, 8 * kGiB);
  EXPECT_EQ(plan.response_bytes, 8 * kGiB);
  limits.set_max_memory_bytes(16 << 20);
  plan = PlanMemory(limits, sources_);
  // Four of the largest requests.
  EXPECT_EQ(plan.grpc_bytes, (64 << 20) + (256 << 10));
  EXPECT_EQ(plan.response_bytes, 32 << 20);
  limits.set_max_memory_bytes(0);
  plan = PlanMemory(limits, sources_);
  EXPECT_EQ(plan.engine_bytes, 0);
  EXPECT_EQ(plan.grpc_bytes, 0);
  EXPECT_EQ(plan.response_bytes, 256 << 20);
  limits.set_max_response_bytes(1 << 20);
  EXPECT_EQ(PlanMemory(limits, sources_).response_bytes, 1 << 20);
}

// What a server may come to hold fits into its container.
TEST_F(SystemMemoryTest, AllSharesFitInto512MiB) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "536870912\n");
  const MemoryPlan plan = PlanMemory(config::v1::ServerLimits(), sources_);
  // The process itself, before a namespace has an entry.
  constexpr int64_t kProcessBytes = 24 << 20;
  EXPECT_LE(kProcessBytes + plan.engine_bytes + plan.engine_bytes / 16 +
                plan.grpc_bytes + plan.response_bytes,
            kGiB / 2);
}

}  // namespace
}  // namespace timecache::server
