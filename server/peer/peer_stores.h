// The other nodes, by address.

#ifndef TIMECACHED_SERVER_PEER_PEER_STORES_H_
#define TIMECACHED_SERVER_PEER_PEER_STORES_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "server/base/housekeeping.h"
#include "server/peer/peer_link.h"
#include "server/peer/peer_store.h"

namespace timecache::server {

// Connects to a node when it is first called, and keeps the connection. Thread-safe.
// Costs a thread once there is a connection, or something to be done later.
class PeerStores {
 public:
  // How soon what is late or due is noticed.
  static constexpr std::chrono::milliseconds kTick{20};

  struct Options {
    std::shared_ptr<grpc::ChannelCredentials> credentials =
        grpc::InsecureChannelCredentials();
    // See PeerLink.
    std::function<std::string()> authorization;
    PeerLink::Duration call_timeout = std::chrono::minutes(1);
  };
  explicit PeerStores(Options options) : options_(std::move(options)) {}
  // Ends all calls.
  ~PeerStores() { Stop(); }
  PeerStores(const PeerStores&) = delete;
  PeerStores& operator=(const PeerStores&) = delete;

  // The node at "host:port". Valid as long as this is.
  Store* At(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);
  // The same for calls about whole namespaces: see kWholeNamespace.
  Store* WholeAt(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls it that much later, or at once after Stop.
  void After(std::chrono::milliseconds delay, absl::AnyInvocable<void()> work)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all calls, and those that are made from now on.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  const PeerCounts& counts() const { return counts_; }

 private:
  struct Peer {
    std::shared_ptr<PeerLink> link;
    std::unique_ptr<PeerStore> store;
    std::unique_ptr<PeerStore> whole;
  };
  struct Later {
    PeerLink::Time due;
    absl::AnyInvocable<void()> work;
  };

  Peer& PeerAt(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BeginTicks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  PeerCounts counts_;
  Housekeeping housekeeping_;

  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mu_);
  std::vector<Later> later_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Housekeeping::Task> ticks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_PEER_STORES_H_
