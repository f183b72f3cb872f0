// A client that goes to the owners of keys, against stand-ins for the nodes.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/key_partition.h"
#include "tests/client/fake_service.h"
#include "tests/support/await.h"
#include "timecache/async_client.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/operation.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Longer than anything takes that a test waits for, on any machine.
constexpr absl::Duration kRoutingPatience = absl::Seconds(60);
const grpc::Status kSocketClosed(grpc::StatusCode::UNAVAILABLE,
                                 "Socket closed");

grpc::Status NotOwner() {
  return MakeError(grpc::StatusCode::UNAVAILABLE, "not the owner",
                   v1::NOT_OWNER);
}

// A key in this partition of two.
std::string KeyIn(int partition, int number = 0) {
  for (int i = 0;; ++i) {
    std::string key = absl::StrCat("key-", number, "-", i);
    if (server::PartitionOfKey(key, 2) == partition) return key;
  }
}

std::vector<std::string> KeysOf(const v1::ExecuteRequest& request) {
  std::vector<std::string> keys;
  for (const v1::Operation& operation : request.operations()) {
    keys.push_back(operation.has_put() ? operation.put().key()
                                       : operation.get().key());
  }
  return keys;
}

// The node that the client has the address of, and the owners of two partitions.
class OwnerRoutingTest : public ::testing::TestWithParam<bool> {
 protected:
  OwnerRoutingTest() { SayOwners({a_->address(), b_->address()}); }

  void SayOwners(const std::vector<std::string>& addresses) {
    v1::GetOwnersResponse owners;
    for (const auto& address : addresses) owners.add_addresses(address);
    home_.Answer(owners);
  }
  Client MakeClient() const {
    return home_.MakeClient({.timeout = kRoutingPatience,
                             .batching = GetParam(),
                             .owner_routing = true});
  }
  size_t Questions() const {
    return home_.Requests<v1::GetOwnersRequest>().size();
  }
  static size_t Gets(const FakeService& node) {
    return node.Requests<v1::GetRequest>().size();
  }
  // Until calls on the partition go to the node.
  static void AwaitRoute(const Client& client, int partition,
                         const FakeService& node) {
    const size_t before = Gets(node);
    test::Await([&] {
      EXPECT_TRUE(client.Get(KeyIn(partition)).ok());
      return Gets(node) > before;
    });
  }
  Client MakeRoutedClient() const {
    Client client = MakeClient();
    AwaitRoute(client, 0, *a_);
    AwaitRoute(client, 1, *b_);
    return client;
  }

  FakeService home_;
  std::unique_ptr<FakeService> a_ = std::make_unique<FakeService>();
  std::unique_ptr<FakeService> b_ = std::make_unique<FakeService>();
};

INSTANTIATE_TEST_SUITE_P(Unary, OwnerRoutingTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Shared, OwnerRoutingTest, ::testing::Values(true));

TEST_P(OwnerRoutingTest, WithoutItNothingIsAsked) {
  const Client client = home_.MakeClient({.batching = GetParam()});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.Get(KeyIn(i % 2)).ok());
  Batch batch;
  batch.Add(Operation::Get(KeyIn(0)));
  ASSERT_TRUE(client.Execute(batch).ok());
  EXPECT_EQ(Questions(), 0u);
  EXPECT_EQ(Gets(*a_) + Gets(*b_), 0u);
}

TEST_P(OwnerRoutingTest, FirstCallGoesToTheDefaultNode) {
  ASSERT_TRUE(MakeClient().Put("key", "v").ok());
  EXPECT_EQ(home_.Last<v1::PutRequest>().key(), "key");
}

TEST_P(OwnerRoutingTest, CallsGoToTheOwnerOfTheirHashTag) {
  const Client client = MakeRoutedClient();
  for (int i = 0; i < 20; ++i) {
    const int partition = i % 2;
    const std::string key =
        absl::StrCat("any", i, "{", KeyIn(partition, i), "}");
    ASSERT_TRUE(client.Put(key, "v").ok());
    const FakeService& owner = partition == 0 ? *a_ : *b_;
    EXPECT_EQ(owner.Last<v1::PutRequest>().key(), key);
    EXPECT_TRUE(*client.Contains(key));
    ASSERT_TRUE(client.Append(key, "w").ok());
    ASSERT_TRUE(client.Touch(key).ok());
    EXPECT_EQ((*client.Get(key))->value, "vw");
    ASSERT_TRUE(client.Remove(key).ok());
    ASSERT_TRUE(client.Combine(key, Combination::kAdd, 1).ok());
    ASSERT_TRUE(client.Remove(key).ok());
    EXPECT_TRUE(client.Gather(key, "p", "v", {.expected_parts = 1})->parts);
  }
  EXPECT_THAT(home_.Requests<v1::PutRequest>(), IsEmpty());
  EXPECT_EQ(Questions(), 1u);
}

TEST_P(OwnerRoutingTest, AsynchronousCallsGoToTheOwner) {
  const Client client = MakeRoutedClient();
  const AsyncClient async(client);
  absl::Notification done;
  async.Put(KeyIn(1), "v", [&](const absl::StatusOr<PutResult>& put) {
    EXPECT_TRUE(put.ok());
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(b_->Last<v1::PutRequest>().key(), KeyIn(1));
}

TEST_P(OwnerRoutingTest, OtherCallsGoToTheDefaultNode) {
  const Client client = MakeRoutedClient();
  EXPECT_TRUE(client.Size().ok());
  EXPECT_THAT(home_.Requests<v1::SizeRequest>(), SizeIs(1));
  EXPECT_EQ(client.address(), home_.address());
}

TEST_P(OwnerRoutingTest, DefaultNodeThatOwnsIsCalledByItsOwnChannel) {
  SayOwners({home_.address(), b_->address()});
  const Client client = MakeClient();
  AwaitRoute(client, 1, *b_);
  const size_t before = Gets(home_);
  ASSERT_TRUE(client.Get(KeyIn(0)).ok());
  EXPECT_EQ(Gets(home_), before + 1);
}

TEST_P(OwnerRoutingTest, NodeThatIsGoneIsReplacedByTheDefaultOneAndComesBack) {
  const Client client = MakeRoutedClient();
  const std::string address = a_->address();
  // It has no connection any more, so that no call of ours can break with it.
  a_.reset();
  for (int i = 0; i < 100; ++i) {
    const auto got = client.Get(KeyIn(0));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(client.Get(KeyIn(1)).ok());
  }
  EXPECT_GE(Gets(home_), 100u);
  EXPECT_GE(Gets(*b_), 100u);
  a_ = std::make_unique<FakeService>(address);
  AwaitRoute(client, 0, *a_);
}

TEST_P(OwnerRoutingTest, NodeThatIsNotThereCostsNoError) {
  const std::string gone = a_->address();
  a_.reset();
  const Client client = MakeClient();
  AwaitRoute(client, 1, *b_);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.Put(KeyIn(0), "v").ok());
  EXPECT_THAT(home_.Requests<v1::PutRequest>(), SizeIs(100));
}

TEST_P(OwnerRoutingTest, NodeThatDoesNotOwnIsReplacedInTheSameAttempt) {
  const Client client = MakeRoutedClient();
  a_->FailWith(NotOwner());
  SayOwners({b_->address(), b_->address()});
  // It may not be repeated.
  ASSERT_TRUE(client.Put(KeyIn(0), "v").ok());
  EXPECT_EQ(home_.Last<v1::PutRequest>().key(), KeyIn(0));
  // That is in doubt now, and asked for again.
  AwaitRoute(client, 0, *b_);
}

TEST_P(OwnerRoutingTest, AsynchronousCallIsReplacedInTheSameAttempt) {
  const Client client = MakeRoutedClient();
  const AsyncClient async(client);
  a_->FailWith(NotOwner());
  absl::Notification done;
  async.Put(KeyIn(0), "v", [&](const absl::StatusOr<PutResult>& put) {
    EXPECT_TRUE(put.ok()) << put.status();
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(home_.Last<v1::PutRequest>().key(), KeyIn(0));
}

TEST_P(OwnerRoutingTest, BrokenCallIsRepeatedAtTheDefaultNodeIfThatIsSafe) {
  const Client client = MakeRoutedClient();
  a_->FailWith(kSocketClosed);
  const absl::Status put = client.Put(KeyIn(0), "v").status();
  EXPECT_TRUE(absl::IsUnavailable(put)) << put;
  EXPECT_TRUE(MaybeApplied(put));
  // It is left out now.
  const size_t before = Gets(home_);
  ASSERT_TRUE(client.Get(KeyIn(0)).ok());
  EXPECT_EQ(Gets(home_), before + 1);
  b_->FailWith(kSocketClosed);
  ASSERT_TRUE(client.Get(KeyIn(1)).ok());
  EXPECT_EQ(Gets(home_), before + 2);
}

TEST_P(OwnerRoutingTest, ErrorsOfTheOwnerAreTheCallsOwn) {
  const Client client = MakeRoutedClient();
  ASSERT_TRUE(client.Put(KeyIn(0), "v").ok());
  EXPECT_TRUE(HasReason(
      client.Put(KeyIn(0), "v", {.condition = PutCondition::kIfAbsent})
          .status(),
      ErrorReason::kKeyExists));
  a_->Hang(true);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client.Put(KeyIn(0), "v", {}, {.timeout = absl::Milliseconds(50)})
          .status()));
  a_->Hang(false);
  EXPECT_THAT(home_.Requests<v1::PutRequest>(), IsEmpty());
}

TEST_P(OwnerRoutingTest, ServerThatSharesNothingIsAskedOnce) {
  FakeService alone;
  const Client client = alone.MakeClient({.timeout = kRoutingPatience,
                                          .batching = GetParam(),
                                          .owner_routing = true});
  test::Await([&] {
    EXPECT_TRUE(client.Get("key").ok());
    return !alone.Requests<v1::GetOwnersRequest>().empty();
  });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.Get("key").ok());
  EXPECT_THAT(alone.Requests<v1::GetOwnersRequest>(), SizeIs(1));
}

TEST_P(OwnerRoutingTest, EachNamespaceHasItsOwners) {
  const Client client = MakeRoutedClient();
  client.In("other").Get("key").IgnoreError();
  test::Await([&] { return Questions() > 1; });
  EXPECT_EQ(home_.Last<v1::GetOwnersRequest>().name(), "other");
}

TEST_P(OwnerRoutingTest, BatchIsDividedAndItsResultsAreInItsOrder) {
  const Client client = MakeRoutedClient();
  Batch puts, gets;
  std::vector<std::vector<std::string>> keys(2);
  for (int i = 0; i < 20; ++i) {
    // In turns, but not evenly.
    const int partition = i % 3 == 0 ? 0 : 1;
    const std::string key = KeyIn(partition, i);
    keys[partition].push_back(key);
    puts.Add(Operation::Put(key, absl::StrCat(i)));
    gets.Add(Operation::Get(key));
  }
  ASSERT_TRUE(client.Execute(puts).ok());
  EXPECT_EQ(KeysOf(a_->Last<v1::ExecuteRequest>()), keys[0]);
  EXPECT_EQ(KeysOf(b_->Last<v1::ExecuteRequest>()), keys[1]);
  EXPECT_THAT(home_.Requests<v1::ExecuteRequest>(), IsEmpty());

  const auto check = [&](const auto& got) {
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_THAT(*got, SizeIs(20));
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE((*got)[i].entry) << i;
      EXPECT_EQ((*got)[i].entry->value, absl::StrCat(i));
      EXPECT_EQ((*got)[i].entry->key, gets.proto().operations(i).get().key());
    }
  };
  check(client.Execute(gets));
  const AsyncClient async(client);
  absl::Notification done;
  async.Execute(gets, [&](const auto& results) {
    check(results);
    done.Notify();
  });
  done.WaitForNotification();
}

TEST_P(OwnerRoutingTest, BatchOfOneOwnerIsNotDivided) {
  const Client client = MakeRoutedClient();
  Batch batch;
  for (int i = 0; i < 5; ++i) batch.Add(Operation::Put(KeyIn(1, i), "v"));
  ASSERT_TRUE(client.Execute(batch).ok());
  EXPECT_EQ(b_->Last<v1::ExecuteRequest>().operations_size(), 5);
  EXPECT_THAT(a_->Requests<v1::ExecuteRequest>(), IsEmpty());
}

TEST_P(OwnerRoutingTest, AtomicBatchIsNeverDivided) {
  const Client client = MakeRoutedClient();
  Batch batch;
  batch.set_atomic(true);
  batch.Add(Operation::Put(KeyIn(0, 1), "v"));
  batch.Add(Operation::Put(KeyIn(0, 2), "v"));
  ASSERT_TRUE(client.Execute(batch).ok());
  EXPECT_TRUE(a_->Last<v1::ExecuteRequest>().atomic());
  batch.Add(Operation::Put(KeyIn(1), "v"));
  ASSERT_TRUE(client.Execute(batch).ok());
  EXPECT_EQ(home_.Last<v1::ExecuteRequest>().operations_size(), 3);
}

TEST_P(OwnerRoutingTest, PartThatIsRefusedGoesToTheDefaultNode) {
  const Client client = MakeRoutedClient();
  a_->OnCall([](const grpc::ServerContext&) { return NotOwner(); });
  Batch batch;
  batch.Add(Operation::Put(KeyIn(1), "v"));
  batch.Add(Operation::Put(KeyIn(0), "v"));
  const auto results = client.Execute(batch);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE((*results)[0].status.ok());
  EXPECT_TRUE((*results)[1].status.ok());
  EXPECT_THAT(KeysOf(home_.Last<v1::ExecuteRequest>()), ElementsAre(KeyIn(0)));
}

TEST_P(OwnerRoutingTest, PartThatBreaksIsRepeatedIfThatIsSafe) {
  const Client client = MakeRoutedClient();
  std::atomic<int> broken = 0;
  a_->OnCall([&broken](const grpc::ServerContext&) {
    ++broken;
    return kSocketClosed;
  });
  Batch gets;
  for (const int partition : {1, 0}) {
    gets.Add(Operation::Get(KeyIn(partition)));
  }
  const auto got = client.Execute(gets);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE((*got)[1].status.ok()) << (*got)[1].status;
  EXPECT_EQ(broken, 1);
  EXPECT_THAT(b_->Requests<v1::ExecuteRequest>(), SizeIs(1));
}

TEST_P(OwnerRoutingTest, OperationsOfAPartThatFailsHaveItsStatus) {
  const Client client = MakeRoutedClient();
  Batch batch;
  for (const int partition : {1, 0, 1}) {
    batch.Add(Operation::Put(KeyIn(partition, batch.size()), "v"));
  }
  b_->OnCall([](const grpc::ServerContext&) { return kSocketClosed; });
  const auto some = client.Execute(batch);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_TRUE(absl::IsUnavailable((*some)[0].status));
  EXPECT_TRUE(MaybeApplied((*some)[0].status));
  EXPECT_TRUE((*some)[1].status.ok());
  EXPECT_TRUE(absl::IsUnavailable((*some)[2].status));
}

TEST_P(OwnerRoutingTest, BatchOfWhichAllPartsFailFails) {
  const Client client = MakeRoutedClient();
  Batch batch;
  batch.Add(Operation::Put(KeyIn(0), "v"));
  batch.Add(Operation::Put(KeyIn(1), "v"));
  a_->OnCall([](const grpc::ServerContext&) { return kSocketClosed; });
  b_->OnCall([](const grpc::ServerContext&) { return kSocketClosed; });
  const absl::Status status = client.Execute(batch).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(MaybeApplied(status));
}

}  // namespace
}  // namespace timecache
