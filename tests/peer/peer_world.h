// Two nodes in one process, one of which has the other answer.

#ifndef TIMECACHED_TESTS_PEER_PEER_WORLD_H_
#define TIMECACHED_TESTS_PEER_PEER_WORLD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/clock.h"
#include "server/base/error.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/main/config/config.h"
#include "server/peer/peer_stores.h"
#include "server/rpc/server.h"
#include "tests/support/test_server.h"

namespace timecache::test {

// The result of a call, once it is there.
template <typename T, typename Call>
absl::StatusOr<T> ResultOf(Call call) {
  absl::Notification done;
  absl::StatusOr<T> result = absl::UnknownError("not done");
  call([&](absl::StatusOr<T> value) {
    result = std::move(value);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}
template <typename Call>
absl::Status StatusOf(Call call) {
  absl::Notification done;
  absl::Status result;
  call([&](absl::Status status) {
    result = std::move(status);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

inline server::Result Execute(server::Store* store,
                              const server::Operation& operation,
                              const std::string& name = "default") {
  server::Result result;
  const absl::Status status = StatusOf([&](server::Store::Done done) {
    store->Execute(name, {&operation, 1}, {&result, 1}, std::move(done));
  });
  if (!status.ok()) result.status = status;
  return result;
}

inline absl::Status OwnedBy(const std::string& address) {
  return server::ErrorWithReason(absl::StatusCode::kUnavailable,
                                 server::Reason::kNotOwner, "not this one",
                                 {{"owner_address", address}});
}

// A node: its maps, and a server that answers other nodes from them, until it ends.
class PeerNode {
 public:
  struct Options {
    server::Access* access = nullptr;
    std::string principal;
    // What its server asks; null: its maps.
    std::function<std::unique_ptr<server::Store>(server::Store*)> wrap_store;
    // See ClusterSource; null: it owns.
    std::function<absl::Status()> check_service;
    // Changes what else its server is made with.
    std::function<void(server::ServerOptions*)> change;
  };
  explicit PeerNode(server::ManualClock* clock) : PeerNode(clock, Options()) {}
  PeerNode(server::ManualClock* clock, const Options& options)
      : reaper_(clock),
        registry_(clock, &reaper_,
                  server::RegistryLimits{.max_namespaces = 1'000}),
        local_(&registry_, clock),
        wrapped_(options.wrap_store ? options.wrap_store(&local_) : nullptr),
        clock_(clock),
        options_(options) {
    StartServer("127.0.0.1:0");
    EXPECT_TRUE(registry_.Create("default", {}).ok());
  }

  // Ends its server, and starts another one at its address.
  void EndServer() { server_.reset(); }
  void RestartServer() { StartServer(address_); }

  const std::string& address() const { return address_; }
  server::LocalStore& local() { return local_; }
  server::Registry& registry() { return registry_; }
  server::Reaper& reaper() { return reaper_; }
  server::Server& server() { return *server_; }

 private:
  void StartServer(const std::string& address) {
    server::ServerOptions options;
    options.addresses = {address};
    options.limits = server::DefaultConfig().limits();
    options.virtual_clock = clock_;
    options.flush = [this] { reaper_.Flush(); };
    options.access = options_.access;
    options.cluster.check_service = options_.check_service;
    options.peer_store = wrapped_ != nullptr ? wrapped_.get() : &local_;
    options.peer_principal = options_.principal;
    if (options_.change) options_.change(&options);
    server_ = std::make_unique<server::Server>(options.peer_store, clock_,
                                               std::move(options));
    const absl::Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
    address_ = server_->addresses().at(0);
  }

  server::Reaper reaper_;
  server::Registry registry_;
  server::LocalStore local_;
  const std::unique_ptr<server::Store> wrapped_;
  server::ManualClock* const clock_;
  const Options options_;
  std::unique_ptr<server::Server> server_;
  std::string address_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_PEER_PEER_WORLD_H_
