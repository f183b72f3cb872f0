// A whole server in a test: engine, services and a real port, on a clock that
// stands still.

#ifndef TIMECACHED_TESTS_SUPPORT_TEST_SERVER_H_
#define TIMECACHED_TESTS_SUPPORT_TEST_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "server/base/clock.h"
#include "server/engine/local_store.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/rpc/server.h"
#include "tests/support/rpc.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"
#include "timecache/v1/data.grpc.pb.h"
#include "timecache/v1/groups.grpc.pb.h"
#include "timecache/v1/namespaces.grpc.pb.h"
#include "timecache/v1/server.grpc.pb.h"

namespace timecache::test {

// No round moment: no deadline of a put at the start falls on a bucket's end.
inline constexpr int64_t kStartUs = 1'000 * server::kMicrosPerSecond + 1;

// The options of the namespace "default" of a TestServer, which are the
// defaults: 30 s in 101 buckets.
inline constexpr int64_t kTtlUs = 30 * server::kMicrosPerSecond;
inline constexpr int64_t kWidthUs = 300'000;

struct TestServerOptions {
  int64_t start_us = kStartUs;
  server::RegistryLimits limits = {};
  int64_t max_watchers = 10'000;
  // Held to; not owned. The functions below that call the server then fail:
  // they show no credentials.
  server::Access* access = nullptr;
  // What the server calls instead of its store, which it is made of.
  std::function<std::unique_ptr<server::Store>(server::Store*)> wrap_store =
      nullptr;
  // Changes what else the server is made with; more addresses go behind the
  // first, which speaks plain text.
  std::function<void(server::ServerOptions*)> change = nullptr;
};

// Serves on a free loopback port, with VirtualClockService and a namespace
// "default". Not thread-safe but for its stubs.
class TestServer {
 public:
  explicit TestServer(const TestServerOptions& options = {});
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  v1::TimeCacheService::Stub* data() { return data_.get(); }
  v1::NamespaceService::Stub* namespaces() { return namespaces_.get(); }
  v1::GroupService::Stub* groups() { return groups_.get(); }
  v1::ServerService::Stub* about() { return about_.get(); }
  testing::v1::VirtualClockService::Stub* clock() { return clock_stub_.get(); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // A connection of its own.
  std::shared_ptr<grpc::Channel> NewChannel(
      grpc::ChannelArguments arguments = {}) const;

  server::Server& server() { return server_; }
  // Behind the API's back, and after the server's end.
  server::Registry& registry() { return registry_; }
  int64_t now_us() const { return manual_clock_.NowUs(); }
  // What namespace_created and the like were told, in order.
  std::vector<std::string> observed() const;

  // Makes a namespace; `options` is a NamespaceOptions as text.
  void Create(const std::string& name, const std::string& options = "");
  // With its statistics.
  v1::Namespace Describe(const std::string& name = "default");
  // Puts, and returns the version. `own_ttl_us` 0: the namespace's ttl.
  uint64_t Put(const std::string& key, const std::string& value,
               int64_t own_ttl_us = 0, const std::string& name = "default");
  // Puts `count` entries PREFIX0, PREFIX1, .. behind the API's back: a call
  // each would take long.
  void Fill(int count, const std::string& prefix, const std::string& value,
            const std::string& name = "default");
  v1::GetResponse Get(const std::string& key,
                      const std::string& name = "default");
  uint64_t Rotate(const std::string& name = "default");
  // Moves the clock by VirtualClockService.
  void AdvanceTo(int64_t time_us);
  void AdvanceBy(int64_t step_us) { AdvanceTo(now_us() + step_us); }
  // Asks until `name` has `count` watchers: the server hears of a cancellation
  // a little after the client. Fails the test if that takes too long.
  void AwaitWatchers(uint64_t count, const std::string& name = "default");

 private:
  mutable absl::Mutex mu_;
  std::vector<std::string> observed_ ABSL_GUARDED_BY(mu_);
  server::ManualClock manual_clock_;
  server::Reaper reaper_;
  server::Registry registry_;
  server::LocalStore maps_;
  server::PartitionedStore store_;
  // Null where the server calls store_.
  const std::unique_ptr<server::Store> wrapped_store_;
  server::Server server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::TimeCacheService::Stub> data_;
  std::unique_ptr<v1::NamespaceService::Stub> namespaces_;
  std::unique_ptr<v1::GroupService::Stub> groups_;
  std::unique_ptr<v1::ServerService::Stub> about_;
  std::unique_ptr<testing::v1::VirtualClockService::Stub> clock_stub_;
};

// When an entry of "default" that is put at `put_us` dies.
inline int64_t DeathUs(int64_t put_us, int64_t ttl_us = kTtlUs) {
  return server::DeathTimeUs(put_us + ttl_us, kWidthUs);
}

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_TEST_SERVER_H_
