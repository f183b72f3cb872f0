// Finds the owners of keys. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_FINDER_H_
#define TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_FINDER_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/owners/owner_map.h"
#include "client/cpp/src/owners/owner_node.h"
#include "client/cpp/src/owners/owner_nodes.h"
#include "client/cpp/src/owners/owners.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "client/cpp/src/shared/call_driver.h"
#include "grpcpp/client_context.h"
#include "timecache/v1/namespaces.pb.h"

namespace timecache {

// Has a thread, from the first call on, that asks the default node for owners and
// connects to them, one after the other, when calls are in want of it: no call
// waits. Thread-safe.
class OwnerFinder {
 public:
  // Most questions that wait; a namespace beyond them is asked for later.
  static constexpr size_t kQuestionsMax = 64;
  static constexpr absl::Duration kQuestionTimeout = absl::Seconds(1);

  // Both outlive it. `home`: the default node.
  OwnerFinder(Endpoints& home, LazyCallDriver& driver)
      : home_(home), nodes_(home.make_channel(), driver) {}
  // Ends a question that is under way. No call may be.
  ~OwnerFinder();

  OwnerFinder(const OwnerFinder&) = delete;
  OwnerFinder& operator=(const OwnerFinder&) = delete;

  // Whether there can be channels to owners.
  bool CanRoute() const { return home_.make_channel() != nullptr; }
  // What is known of the namespace's owners; null: nothing.
  std::shared_ptr<const Owners> Find(const std::string& ns, SteadyTime now);
  // Whether a call on the namespace is to go to this owner now, rather than to the
  // default node: it is known, another one, not left out and connected. Null: no.
  bool IsReady(const std::shared_ptr<OwnerNode>& node, const std::string& ns,
               SteadyTime now);
  // As OwnerMap::Doubt.
  void Doubt(const std::string& ns);

 private:
  // To be done by the thread.
  struct Errand {
    std::string ns;
    // To connect to; null: the namespace's owners are to be asked for.
    std::shared_ptr<OwnerNode> node;
  };

  void Ask(const std::string& ns, SteadyTime now);
  void Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();
  bool HasErrand() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return is_ending_ || !questions_.empty() || !connects_.empty();
  }
  void Do(const Errand& errand);
  absl::StatusOr<v1::GetOwnersResponse> GetOwners(const std::string& ns);

  Endpoints& home_;
  OwnerMap map_;
  OwnerNodes nodes_;  // The thread's.

  absl::Mutex mu_;
  std::deque<Errand> questions_ ABSL_GUARDED_BY(mu_);  // Before the others.
  std::deque<Errand> connects_ ABSL_GUARDED_BY(mu_);   // One for each node.
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  // Of the question that is under way.
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_FINDER_H_
