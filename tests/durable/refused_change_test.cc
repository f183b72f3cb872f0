// Changes of namespaces and groups that a full or stuck disk refuses: nothing
// has changed then.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

class RefusedChangeTest : public DurableStoreTest {
 protected:
  // Calls `call` with a callback, and returns why it was refused.
  template <typename T, typename Call>
  absl::Status StatusOf(const Call& call) {
    absl::Status status;
    absl::Notification done;
    call([&](absl::StatusOr<T> result) {
      status = result.status();
      done.Notify();
    });
    done.WaitForNotification();
    return status;
  }
  absl::Status Update(int64_t ttl_us) {
    return StatusOf<NamespaceInfo>([&](auto done) {
      store_.store().UpdateNamespace(
          "a",
          [ttl_us](NamespaceOptions* options) {
            options->ttl_us = ttl_us;
            return absl::OkStatus();
          },
          std::move(done));
    });
  }
  absl::Status CreateGroup(const std::string& name) {
    return StatusOf<GroupInfo>([&](auto done) {
      store_.store().CreateGroup(
          {"a", name}, {.options = {}, .created_by = "me"}, std::move(done));
    });
  }
  absl::Status UpdateGroup(int max_attempts) {
    return StatusOf<GroupInfo>([&](auto done) {
      store_.store().UpdateGroup(
          {"a", "g"},
          [max_attempts](GroupOptions* options) {
            options->max_attempts = max_attempts;
            return absl::OkStatus();
          },
          std::move(done));
    });
  }
  absl::Status Rotate() {
    return StatusOf<int64_t>([&](auto done) {
      store_.store().RotateNamespace("a", std::move(done));
    });
  }
  absl::Status Join(const std::string& group) {
    const std::string name = "a";
    return StatusOf<Store::Readers>([&](auto done) {
      store_.store().JoinGroups(
          {&name, 1}, {.group = group, .max_in_flight = 1, .created_by = "me"},
          [] {}, std::move(done));
    });
  }
  void FillDisk() {
    store_.files().SetRoom(store_.files().used_bytes() + 100);
    ASSERT_EQ(ReasonOf(store_.Put("a", "big", std::string(1'000, 'v')).status),
              Reason::kDiskFull);
  }
};

TEST_F(RefusedChangeTest, AFullDiskLeavesNamespacesAndGroupsAsTheyAre) {
  ASSERT_TRUE(CreateGroup("g").ok());
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  const NamespaceOptions options = store_.map("a")->options();
  const auto group = store_.map("a")->groups().Find("g");
  ASSERT_TRUE(group.ok());
  const int attempts = static_cast<int>((*group)->options().max_attempts);
  FillDisk();

  EXPECT_EQ(ReasonOf(Update(options.ttl_us / 2)), Reason::kDiskFull);
  EXPECT_EQ(store_.map("a")->options().ttl_us, options.ttl_us);
  EXPECT_EQ(ReasonOf(store_.Create("b")), Reason::kDiskFull);
  EXPECT_FALSE(store_.registry().Find("b").ok());
  EXPECT_EQ(ReasonOf(CreateGroup("other")), Reason::kDiskFull);
  EXPECT_FALSE(store_.map("a")->groups().Find("other").ok());
  EXPECT_EQ(ReasonOf(UpdateGroup(attempts + 1)), Reason::kDiskFull);
  EXPECT_EQ(static_cast<int>((*group)->options().max_attempts), attempts);
  EXPECT_EQ(ReasonOf(Rotate()), Reason::kDiskFull);
  EXPECT_EQ(store_.Get("a", "key"), "value");
  // A member may join a group that is there.
  EXPECT_EQ(ReasonOf(Join("other")), Reason::kDiskFull);
  EXPECT_FALSE(store_.map("a")->groups().Find("other").ok());
  EXPECT_TRUE(Join("g").ok());

  store_.files().SetRoom(UINT64_MAX);
  EXPECT_TRUE(Await([&] { return Update(options.ttl_us / 2).ok(); }));
  EXPECT_EQ(store_.map("a")->options().ttl_us, options.ttl_us / 2);
  EXPECT_TRUE(store_.Create("b").ok());
  EXPECT_TRUE(Join("other").ok());
}

// What waits for the disk is bounded, whatever it is.
TEST_F(RefusedChangeTest, DescriptionsThatWaitForTheDiskCount) {
  absl::Notification free;
  std::atomic<bool> stuck = true;
  store_.files().SetFault([&](const std::string&, uint64_t, bool) {
    if (stuck) free.WaitForNotification();
    return absl::OkStatus();
  });
  std::atomic<int> answered = 0;
  int asked = 0;
  // A closing generation may have the first ones.
  while (store_.logs().open_bytes() < 100'000) {
    ASSERT_LT(asked, 10'000) << "they do not count";
    ++asked;
    store_.store().UpdateNamespace(
        "a",
        [asked](NamespaceOptions* options) {
          options->retention_us = asked * kSecond;
          return absl::OkStatus();
        },
        [&](const absl::StatusOr<NamespaceInfo>& info) {
          EXPECT_TRUE(info.ok()) << info.status();
          ++answered;
        });
  }
  stuck = false;
  free.Notify();
  EXPECT_TRUE(Await([&] { return store_.logs().open_bytes() == 0; }));
  store_.Close();
  EXPECT_EQ(answered, asked);
  store_.files().SetFault(nullptr);
}

}  // namespace
}  // namespace timecache::server
