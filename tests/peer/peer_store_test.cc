#include "server/peer/peer_store.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/edge/access_file.h"
#include "tests/integration/security/access_fixture.h"
#include "tests/peer/peer_world.h"
#include "tests/support/await.h"
#include "tests/support/delayed_store.h"
#include "tests/support/rpc.h"
#include "timecache/v1/server.grpc.pb.h"

namespace timecache::test {
namespace {

using server::Operation;
using server::Reason;
using server::ReasonOf;
using server::Result;
using server::Store;
using ::testing::HasSubstr;

// A call that is under way.
struct Running {
  explicit Running(Store* store, const Operation& op) : operation(op) {
    store->Execute("default", {&operation, 1}, {&result, 1},
                   [this](absl::Status ended) {
                     status = std::move(ended);
                     done.Notify();
                   });
  }
  absl::Status End() {
    done.WaitForNotification();
    return status.ok() ? result.status : status;
  }

  const Operation operation;
  Result result;
  absl::Status status;
  absl::Notification done;
};

// Closes the connections that a node has, but for the one that asks.
void CutConnections(const PeerNode& node) {
  const auto channel =
      grpc::CreateChannel(node.address(), grpc::InsecureChannelCredentials());
  const auto about = v1::ServerService::NewStub(channel);
  const auto connections =
      Must(Call(about.get(), &v1::ServerService::Stub::ListConnections,
                v1::ListConnectionsRequest()))
          .connections();
  ASSERT_GE(connections.size(), 2);
  for (int i = 0; i + 1 < connections.size(); ++i) {
    v1::CloseConnectionRequest request;
    request.set_id(connections[i].id());
    Must(Call(about.get(), &v1::ServerService::Stub::CloseConnection, request));
  }
}

class PeerStoreTest : public ::testing::Test {
 protected:
  PeerStoreTest() {
    PeerNode::Options options;
    options.wrap_store = [this](Store* store) {
      auto delayed = std::make_unique<DelayedStore>(store);
      delayed_ = delayed.get();
      return delayed;
    };
    owner_ = std::make_unique<PeerNode>(&clock_, options);
    store_ = peers_.At(owner_->address());
  }
  ~PeerStoreTest() override { delayed_->Release(); }

  server::ManualClock clock_{kStartUs};
  DelayedStore* delayed_ = nullptr;
  std::unique_ptr<PeerNode> owner_;
  server::PeerStores peers_{{}};
  Store* store_ = nullptr;
};

TEST_F(PeerStoreTest, ResultsAndErrorsAreThoseOfTheOtherNode) {
  const Result put = Execute(store_, Operation::Put("k", "v"));
  EXPECT_TRUE(put.status.ok()) << put.status;
  EXPECT_NE(put.version, 0u);
  const Result get = Execute(store_, Operation::Get("k"));
  EXPECT_EQ(get.entry.value, "v");
  EXPECT_EQ(get.entry.version, put.version);
  EXPECT_EQ(get.entry.put_us, kStartUs);

  Operation absent = Operation::Put("k", "w");
  absent.condition = server::Condition::kIfAbsent;
  const Result direct = Execute(&owner_->local(), absent);
  const Result forwarded = Execute(store_, absent);
  EXPECT_FALSE(forwarded.status.ok());
  EXPECT_EQ(forwarded.status, direct.status);
  EXPECT_EQ(Execute(store_, Operation::Get("k"), "nothing").status,
            Execute(&owner_->local(), Operation::Get("k"), "nothing").status);
}

TEST_F(PeerStoreTest, AValueOfTheLargestSizeComesThrough) {
  server::NamespaceOptions options;
  options.max_value_bytes = server::kMaxValueBytesLimit;
  const auto created = ResultOf<server::NamespaceInfo>(
      [&](auto done) { store_->CreateNamespace("big", options, done); });
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->options.max_value_bytes, server::kMaxValueBytesLimit);
  const std::string value(server::kMaxValueBytesLimit, 'x');
  EXPECT_TRUE(Execute(store_, Operation::Put("k", value), "big").status.ok());
  EXPECT_EQ(Execute(store_, Operation::Get("k"), "big").entry.value, value);
}

TEST_F(PeerStoreTest, AScanVisitsWhatIsThere) {
  for (int i = 0; i < 100; ++i) {
    Execute(store_, Operation::Put(absl::StrCat("k", i), "v"));
  }
  std::vector<std::string> keys;
  server::ScanPosition position;
  bool more = true;
  while (more) {
    const absl::Status status = StatusOf([&](Store::Done done) {
      store_->Scan(
          "default", "k", 7, 1 << 20, &position, &more,
          [&](const server::ScannedEntry& entry) {
            EXPECT_EQ(entry.value, "v");
            keys.emplace_back(entry.key);
          },
          std::move(done));
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys.size(), 100u);
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST_F(PeerStoreTest, AnUpdateIsMadeOnTheNewestOptions) {
  int calls = 0;
  const auto updated = ResultOf<server::NamespaceInfo>([&](auto done) {
    store_->UpdateNamespace(
        "default",
        [&](server::NamespaceOptions* options) {
          if (++calls == 1) {
            // Comes between, once.
            EXPECT_TRUE(owner_->registry()
                            .Update("default",
                                    [](server::NamespaceOptions* other) {
                                      other->max_bytes = 12'345;
                                      return absl::OkStatus();
                                    })
                            .ok());
          }
          options->max_entries = 777;
          return absl::OkStatus();
        },
        done);
  });
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(updated->options.max_entries, 777);
  EXPECT_EQ(updated->options.max_bytes, 12'345);
  const auto refused = ResultOf<server::NamespaceInfo>([&](auto done) {
    store_->UpdateNamespace(
        "default",
        [](server::NamespaceOptions*) { return absl::DataLossError("no"); },
        done);
  });
  EXPECT_EQ(refused.status(), absl::DataLossError("no"));
}

TEST_F(PeerStoreTest, AListLeavesOutWhatMayNotBeSeen) {
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(owner_->registry().Create(absl::StrCat("n", i), {}).ok());
  }
  server::ListQuery query;
  query.visible = [](absl::string_view name) { return name.back() == '7'; };
  const auto page = ResultOf<server::Page<server::NamespaceInfo>>(
      [&](auto done) { store_->ListNamespaces(query, done); });
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->items.size(), 60u);
  EXPECT_FALSE(page->more);
}

TEST_F(PeerStoreTest, WhenTheConnectionBreaksReadsAreRepeatedAndWritesAreNot) {
  ASSERT_TRUE(Execute(store_, Operation::Put("k", "v")).status.ok());
  delayed_->Hold();
  Running write(store_, Operation::Append("k", "w"));
  delayed_->AwaitCall();
  Running read(store_, Operation::Get("k"));
  CutConnections(*owner_);
  const absl::Status status = write.End();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ReasonOf(status), Reason::kOwnershipLost);
  delayed_->Release();
  EXPECT_TRUE(read.End().ok()) << read.status;
  // Once: it had arrived.
  EXPECT_EQ(read.result.entry.value, "vw");
  EXPECT_GE(peers_.counts().repeated_calls, 1u);
}

TEST_F(PeerStoreTest, ANodeThatStopsAnswersWhatItHasReadAndTheRestWasNotSent) {
  ASSERT_TRUE(Execute(store_, Operation::Put("k", "v")).status.ok());
  owner_->EndServer();
  const absl::Status status = Execute(store_, Operation::Put("k", "w")).status;
  EXPECT_EQ(ReasonOf(status), Reason::kNotOwner) << status;
  owner_->RestartServer();
  EXPECT_TRUE(Await(
      [&] { return Execute(store_, Operation::Get("k")).entry.value == "v"; }));
}

TEST_F(PeerStoreTest, WhatWaitsForANodeThatIsNotReachedIsBounded) {
  owner_->EndServer();
  const std::string value(server::kMaxPeerQueuedBytes / 2, 'x');
  // Within the time that the first of them waits, unless the machine is too busy.
  EXPECT_TRUE(Await([&] {
    std::vector<std::unique_ptr<Running>> calls;
    for (int i = 0; i < 2; ++i) {
      calls.push_back(
          std::make_unique<Running>(store_, Operation::Put("k", value)));
    }
    const absl::Status refused =
        Execute(store_, Operation::Put("k", "v")).status;
    for (const auto& call : calls) {
      EXPECT_EQ(ReasonOf(call->End()), Reason::kNotOwner);
    }
    return ReasonOf(refused) == Reason::kMaxMemory;
  }));
}

TEST_F(PeerStoreTest, AWatcherThatDoesNotReadDelaysNobodyAndBuffersLittle) {
  server::NamespaceOptions options;
  options.retention_bytes = 64 << 20;
  ASSERT_TRUE(owner_->registry().Create("events", options).ok());
  auto readers = ResultOf<Store::Readers>([&](auto done) {
    static const std::vector<std::string> names = {"events"};
    static const server::LogPoints none;
    store_->OpenLogs(
        names, server::LogStart::kNow, none, [] {}, done);
  });
  ASSERT_TRUE(readers.ok()) << readers.status();
  const std::string value(256 << 10, 'x');
  for (int i = 0; i < 64; ++i) {
    Execute(&owner_->local(), Operation::Put(absl::StrCat("k", i), value),
            "events");
  }
  clock_.AdvanceTo(kStartUs + 2 * kTtlUs);
  owner_->reaper().Flush();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(Execute(store_, Operation::Put("k", "v")).status.ok());
  }
  EXPECT_LE(peers_.counts().bytes_received, 4u << 20);
  // All of it, once it reads.
  int events = 0;
  EXPECT_TRUE(Await([&] {
    const server::EventChunk chunk =
        readers->front()->Read(clock_.NowUs(), 8192, 1 << 20);
    for (const auto& batch : chunk.batches) events += batch->size();
    EXPECT_EQ(chunk.lost, 0u);
    return events == 64;
  }));
}

TEST_F(PeerStoreTest,
       AMemberWhoseNodeIsGoneLeavesAndItsEventsAreDeliveredAgain) {
  const std::vector<std::string> names = {"default"};
  const server::Membership membership = {.group = "workers",
                                         .created_by = "me"};
  auto other_peers =
      std::make_unique<server::PeerStores>(server::PeerStores::Options());
  Store* const other = other_peers->At(owner_->address());
  auto first = ResultOf<Store::Readers>([&](auto done) {
    other->JoinGroups(
        names, membership, [] {}, done);
  });
  ASSERT_TRUE(first.ok()) << first.status();
  Execute(store_, Operation::Put("k", "v"));
  clock_.AdvanceTo(kStartUs + 2 * kTtlUs);
  owner_->reaper().Flush();
  EXPECT_TRUE(Await([&] {
    return !first->front()
                ->Read(clock_.NowUs(), 10, 1 << 20)
                .deliveries.empty();
  }));
  auto second = ResultOf<Store::Readers>([&](auto done) {
    store_->JoinGroups(
        names, membership, [] {}, done);
  });
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(
      second->front()->Read(clock_.NowUs(), 10, 1 << 20).deliveries.empty());
  other_peers->Stop();
  std::vector<server::Delivery> deliveries;
  EXPECT_TRUE(Await([&] {
    deliveries = second->front()->Read(clock_.NowUs(), 10, 1 << 20).deliveries;
    return !deliveries.empty();
  }));
  EXPECT_EQ(deliveries.at(0).event().key, "k");
  // It was not the event's doing.
  EXPECT_EQ(deliveries.at(0).attempt, 1);
  EXPECT_EQ(deliveries.at(0).returns, 1);
  const server::EventChunk end =
      first->front()->Read(clock_.NowUs(), 10, 1 << 20);
  EXPECT_TRUE(end.closed);
  EXPECT_EQ(ReasonOf(first->front()->WhyClosed()), Reason::kNotOwner);
}

// --- Who may call.

TEST(PeerAccessTest, OnlyTheClustersPrincipalMayCall) {
  TemporaryDirectory directory;
  directory.Write("access.yaml",
                  absl::StrCat("principals:\n", PrincipalLine("node"),
                               PrincipalLine("admin"),
                               "rules:\n- {principals: [admin], namespaces: "
                               "[\"*\"], verbs: [read, write, watch, settle, "
                               "admin]}\n"));
  server::FileWatch watch;
  auto access = server::AccessFile::Open(directory.Path("access.yaml"), &watch);
  ASSERT_TRUE(access.ok()) << access.status();
  server::ManualClock clock(kStartUs);
  PeerNode::Options options;
  options.access = access->get();
  options.principal = "node";
  PeerNode owner(&clock, options);
  const auto status_as = [&](const std::string& name) {
    server::PeerStores::Options as;
    if (!name.empty()) {
      as.authorization = [name] { return "Bearer " + TokenOf(name); };
    }
    server::PeerStores peers(as);
    return Execute(peers.At(owner.address()), Operation::Get("k")).status;
  };
  EXPECT_TRUE(status_as("node").ok()) << status_as("node");
  EXPECT_EQ(ReasonOf(status_as("admin")), Reason::kNotOwner);
  EXPECT_THAT(std::string(status_as("admin").message()),
              HasSubstr("cluster.peer_principal"));
  EXPECT_EQ(ReasonOf(status_as("")), Reason::kNotOwner);
}

}  // namespace
}  // namespace timecache::test
