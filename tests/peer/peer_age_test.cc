// Streams between nodes end with their connections, and calls do not notice.

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "tests/peer/peer_world.h"
#include "tests/support/await.h"
#include "tests/support/end_observer.h"

namespace timecache::test {
namespace {

using server::Operation;
using server::Result;

class PeerAgeTest : public ::testing::Test {
 protected:
  PeerAgeTest() {
    PeerNode::Options options;
    options.change = [this](server::ServerOptions* to) {
      server::SetDuration(server::kMicrosPerSecond * 2 / 5,
                          to->limits.mutable_max_connection_age());
      to->connection_limits.age_grace = absl::Seconds(1);
      to->call_observers = {&observer_};
    };
    owner_ = std::make_unique<PeerNode>(&clock_, options);
    store_ = peers_.At(owner_->address());
  }

  // What the owner says, once the call has reached it. On a busy machine the next
  // connection may take longer than a call waits: then it was not made.
  Result Sent(const Operation& operation, const std::string& name = "default") {
    Result result;
    EXPECT_TRUE(Await([&] {
      result = Execute(store_, operation, name);
      return server::ReasonOf(result.status) != server::Reason::kNotOwner;
    }));
    return result;
  }

  // Where streams came from that this node has ended.
  size_t connections() {
    absl::MutexLock lock(&mu_);
    return connections_.size();
  }
  bool AwaitConnections(size_t count) {
    return Await([&] { return connections() >= count || HasFailure(); });
  }

 private:
  absl::Mutex mu_;
  std::set<std::string> connections_ ABSL_GUARDED_BY(mu_);
  EndObserver observer_{[this](const server::CallRecord& record) {
    if (record.code != grpc::StatusCode::UNAVAILABLE) return;
    absl::MutexLock lock(&mu_);
    connections_.insert(record.details.Peer());
  }};
  server::ManualClock clock_{kStartUs};

 protected:
  std::unique_ptr<PeerNode> owner_;
  server::PeerStores peers_{{}};
  server::Store* store_ = nullptr;
};

TEST_F(PeerAgeTest, NoCallIsLost) {
  server::NamespaceOptions options;
  options.max_value_bytes = server::kMaxValueBytesLimit;
  ASSERT_TRUE(owner_->registry().Create("large", options).ok());
  // Sent in parts: some are when the stream is to end.
  const std::string large(3 * server::kMaxPeerMessageBytes, 'x');
  std::atomic<int64_t> added = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, key = absl::StrCat("k", i)] {
      while (!done && !HasFailure()) {
        const Result sum =
            Sent(Operation::Combine("n", server::Combination::kAdd, 1));
        EXPECT_TRUE(sum.status.ok()) << sum.status;
        ++added;
        const Result put = Sent(Operation::Put(key, large), "large");
        EXPECT_TRUE(put.status.ok()) << put.status;
      }
    });
  }
  AwaitConnections(3);
  done = true;
  for (std::thread& caller : callers) caller.join();
  const Result sum =
      Sent(Operation::Combine("n", server::Combination::kAdd, 0));
  EXPECT_EQ(sum.number, added);
}

TEST_F(PeerAgeTest, AStreamWithoutCallsEndsAsWell) {
  EXPECT_TRUE(Sent(Operation::Put("k", "v")).status.ok());
  AwaitConnections(1);
  EXPECT_EQ(Sent(Operation::Get("k")).entry.value, "v");
}

}  // namespace
}  // namespace timecache::test
