// Maps that are called by what their callers believe of the namespace.

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/stale_names.h"
#include "tests/engine/parts/parts_harness.h"

namespace timecache::server {
namespace {

class AddressedMaps : public ::testing::Test {
 protected:
  absl::Status Create(const std::string& name, int partitions) {
    NamespaceOptions options;
    options.num_partitions = partitions;
    return Inline<NamespaceInfo>([&](auto done) {
             store_.CreateNamespace(name, options, std::move(done));
           })
        .status();
  }
  absl::StatusOr<NamespaceInfo> Get(const std::string& name) {
    return Inline<NamespaceInfo>(
        [&](auto done) { store_.GetNamespace(name, false, std::move(done)); });
  }
  absl::Status Put(const std::string& name) {
    const Operation put = Operation::Put("k", "v");
    Result result;
    absl::Status status = InlineStatus([&](Store::Done done) {
      store_.Execute(name, {&put, 1}, {&result, 1}, std::move(done));
    });
    return status.ok() ? result.status : status;
  }
  absl::Status Delete(const std::string& name) {
    return InlineStatus([&](Store::Done done) {
      store_.DeleteNamespace(name, std::move(done));
    });
  }

  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  LocalStore store_{&registry_, &clock_, LocalStore::Names::kAddresses};
};

TEST_F(AddressedMaps, AreFoundOnlyWithTheRightNumberOfPartitions) {
  ASSERT_TRUE(Create(PartitionAddress("n", 3, 4), 4).ok());
  ASSERT_TRUE(Create(PartitionAddress("n", 0, 4), 4).ok());
  EXPECT_TRUE(registry_.Find("n").ok());
  EXPECT_TRUE(registry_.Find("n#3").ok());
  EXPECT_TRUE(Put("n#0/4").ok());
  EXPECT_TRUE(Put("n#3/4").ok());
  for (const std::string name : {"n", "n#0/8", "n#3/8", "n#1/4", "n#3/2"}) {
    const absl::Status status = Put(name);
    EXPECT_EQ(ReasonOf(status), Reason::kNamespaceNotFound) << name << status;
    EXPECT_TRUE(IsStale(status)) << name;
    EXPECT_TRUE(IsStale(Delete(name))) << name;
  }
}

TEST_F(AddressedMaps, ANamespaceIsDescribedByItsName) {
  ASSERT_TRUE(Create("one", 1).ok());
  ASSERT_TRUE(Create(PartitionAddress("n", 0, 4), 4).ok());
  const auto info = Get("n");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->name, "n");
  EXPECT_EQ(info->options.num_partitions, 4);
  EXPECT_EQ(Get("n#0/4")->name, "n");
  EXPECT_TRUE(IsStale(Get("n#0/8").status()));
  EXPECT_EQ(Get("one")->options.num_partitions, 1);
  EXPECT_TRUE(Put("one").ok());
  EXPECT_TRUE(IsStale(Put("one#0/4")));
  // Nobody is told of maps that are not there.
  EXPECT_FALSE(IsStale(Get("none").status()));
}

TEST_F(AddressedMaps, AreMadeAndDeletedByTheirAddresses) {
  EXPECT_TRUE(absl::IsInvalidArgument(Create("n", 4)));
  EXPECT_TRUE(absl::IsInvalidArgument(Create("n#1/4", 8)));
  EXPECT_EQ(FieldOf(Create("n", kMaxPartitions + 1)), "num_partitions");
  ASSERT_TRUE(Create("n#1/4", 4).ok());
  EXPECT_TRUE(Delete("n#1/4").ok());
  EXPECT_FALSE(registry_.Find("n#1").ok());
}

TEST(MapNameOf, IsAPartOfTheAddress) {
  EXPECT_EQ(MapNameOf("n"), "n");
  EXPECT_EQ(MapNameOf("n#3"), "n#3");
  for (const int i : {0, 1, 10, 15}) {
    EXPECT_EQ(MapNameOf(PartitionAddress("n", i, 16)), PartitionName("n", i));
  }
}

}  // namespace
}  // namespace timecache::server
