#include "server/main/startup_checks.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/config/config.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto Warning(const std::string& event, const std::string& about) {
  return AllOf(Field(&StartupWarning::event, event),
               Field(&StartupWarning::about, HasSubstr(about)));
}

class StartupChecksTest : public ::testing::Test {
 protected:
  StartupChecksTest() {
    machine_.total_bytes = int64_t{4} << 30;
    machine_.open_files = 100'000;
    machine_.now_us = kEarliestTimeUs + 1;
  }
  Machine machine_;
  config::v1::ServerConfig config_ = DefaultConfig();
};

TEST_F(StartupChecksTest, AGoodMachineGetsNoWarning) {
  EXPECT_THAT(CheckStartup(machine_, config_), IsEmpty());
  // What is unknown is no reason to warn.
  Machine unknown;
  unknown.now_us = kLatestTimeUs;
  EXPECT_THAT(CheckStartup(unknown, config_), IsEmpty());
}

TEST_F(StartupChecksTest, TooFewOpenFilesAreToldWithBothFigures) {
  config_.mutable_limits()->set_max_connections(1000);
  machine_.open_files = 1000 + kReservedFiles;
  EXPECT_THAT(CheckStartup(machine_, config_), IsEmpty());
  --machine_.open_files;
  EXPECT_THAT(CheckStartup(machine_, config_),
              ElementsAre(Warning("open_files_low",
                                  "of 1000 needs 1256 open files, and 1255")));
}

TEST_F(StartupChecksTest, AClockThatCannotBeRightIsTold) {
  machine_.now_us = 0;
  EXPECT_THAT(CheckStartup(machine_, config_),
              ElementsAre(Warning("clock_wrong", "1970-01-01")));
  machine_.now_us = kLatestTimeUs + 1;
  EXPECT_THAT(CheckStartup(machine_, config_),
              ElementsAre(Warning("clock_wrong", "the wall clock says 20")));
}

TEST_F(StartupChecksTest, MoreMemoryThanThereIsIsTold) {
  config_.mutable_limits()->set_max_memory_bytes(uint64_t{5} << 30);
  EXPECT_THAT(CheckStartup(machine_, config_),
              ElementsAre(Warning("memory_low", "gets 4294967296 bytes")));
}

TEST_F(StartupChecksTest, MoreEventsThanMemoryAreTold) {
  config_.mutable_limits()->set_max_memory_bytes(0);
  for (int i = 0; i < 3; ++i) {
    config_.add_namespaces()->mutable_options()->set_event_retention_bytes(
        uint64_t{2} << 30);
  }
  EXPECT_THAT(CheckStartup(machine_, config_),
              ElementsAre(Warning("event_retention_high", "6442450944")));
}

TEST_F(StartupChecksTest, DeadLettersThatLastLessThanTheirEventsAreTold) {
  config::v1::NamespaceConfig* const orders = config_.add_namespaces();
  orders->set_name("orders");
  orders->mutable_options()->set_durability(v1::DURABILITY_SYNC);
  orders->mutable_options()->set_dead_letter_namespace("letters");
  config::v1::NamespaceConfig* const letters = config_.add_namespaces();
  letters->set_name("letters");
  EXPECT_THAT(CheckStartup(machine_, config_),
              ElementsAre(Warning("dead_letters_not_durable", "orders")));
  letters->mutable_options()->set_durability(v1::DURABILITY_SYNC);
  EXPECT_THAT(CheckStartup(machine_, config_), IsEmpty());
}

// A machine made of files.
class MachineTest : public ::testing::Test {
 protected:
  MachineTest() {
    Write("/proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\n");
  }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const TemporaryDirectory directory_;
  const std::string root_ = directory_.path();
};

TEST_F(MachineTest, WithoutAControlGroupIsTheWholeMachine) {
  const Machine machine = ReadMachine(root_);
  EXPECT_EQ(machine.memory_bytes(), int64_t{16'000'000} * 1024);
  EXPECT_EQ(machine.cpu_quota_cores, 0);
  EXPECT_EQ(machine.transparent_huge_pages, "");
  EXPECT_GT(machine.cores, 0);
}

TEST_F(MachineTest, TheLeastOfAllGroupsAboveHolds) {
  Write("/proc/self/cgroup", "0::/system.slice/timecached.service\n");
  Write("/sys/fs/cgroup/system.slice/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/system.slice/timecached.service/memory.max", "max\n");
  Write("/sys/fs/cgroup/system.slice/timecached.service/cpu.max",
        "150000 100000\n");
  Write("/sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n");
  const Machine machine = ReadMachine(root_);
  EXPECT_EQ(machine.memory_bytes(), 1'000'000);
  EXPECT_EQ(machine.cpu_quota_cores, 1.5);
  EXPECT_EQ(machine.transparent_huge_pages, "madvise");
}

TEST_F(MachineTest, FindsAContainersLimitAtTheRoot) {
  Write("/proc/self/cgroup", "0::/../../pod7/abc\n");
  Write("/sys/fs/cgroup/memory.max", "3000000\n");
  EXPECT_EQ(ReadMachine(root_).memory_bytes(), 3'000'000);
}

TEST_F(MachineTest, IsUnknownWhereNothingIs) {
  EXPECT_EQ(ReadMachine(root_ + "/nowhere").total_bytes, 0);
  EXPECT_EQ(ReadMachine(root_ + "/nowhere").control_group_bytes, 0);
}

TEST_F(MachineTest, VersionOneOfControlGroups) {
  Write("/proc/self/cgroup",
        "5:hugetlb,memory:/docker/abc\n4:cpu,cpuacct:/\n0::/\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(ReadMachine(root_).memory_bytes(), int64_t{16'000'000} * 1024);
  Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2000000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const Machine machine = ReadMachine(root_);
  EXPECT_EQ(machine.memory_bytes(), 2'000'000);
  EXPECT_EQ(machine.cpu_quota_cores, 0.5);
}

TEST_F(MachineTest, TheLimitOfOpenFilesGoesUpToTheHardOne) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(ReadMachine().open_files, 64);
  RaiseOpenFiles();
  const Machine machine = ReadMachine();
  EXPECT_EQ(machine.open_files, machine.open_files_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace timecache::server
