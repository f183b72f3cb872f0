// What a client knows of the owners of namespaces. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_MAP_H_
#define TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_MAP_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/owners/owners.h"
#include "client/cpp/src/rpc/steady_time.h"

namespace timecache {

// Namespace -> partitions -> node, and when a namespace's owners are to be asked
// for, which the caller does. Reads no clock. Thread-safe; Find takes a reader's
// lock, and allocates nothing.
class OwnerMap {
 public:
  // Most namespaces: that whose owners were asked for longest ago, which is the
  // one not used for longest, but for kRefusedPause, is forgotten for another.
  static constexpr size_t kNamespacesMax = 1000;
  // How old an answer may be when it is used; what is in doubt; an answer by a
  // server that has none to give; any other error.
  static constexpr absl::Duration kAnswerMaxAge = absl::Seconds(5);
  static constexpr absl::Duration kDoubtPause = absl::Milliseconds(100);
  static constexpr absl::Duration kRefusedPause = absl::Seconds(60);
  static constexpr absl::Duration kFailedPause = absl::Seconds(1);

  struct Found {
    std::shared_ptr<const Owners> owners;  // Null: not known.
    bool is_due = false;                   // They are to be asked for.
  };
  Found Find(absl::string_view ns, SteadyTime now) const;

  // Whether the owners are to be asked for: then Learn or Fail follows, and until
  // then nothing is due.
  bool Begin(absl::string_view ns, SteadyTime now);
  // Null: the namespace has no owners.
  void Learn(absl::string_view ns, std::shared_ptr<const Owners> owners,
             SteadyTime now);
  void Fail(absl::string_view ns, const absl::Status& why, SteadyTime now);
  // An owner was not what it is said to be, or was not reached: they are due, but
  // not within kDoubtPause of the last time.
  void Doubt(absl::string_view ns);

 private:
  struct Namespace {
    std::shared_ptr<const Owners> owners;
    SteadyTime asked_at = SteadyTime::min();
    SteadyTime due_at = SteadyTime::min();
    bool is_asked = false;
    bool is_doubted = false;  // Since it was asked.
  };

  void Ended(Namespace& of, absl::Duration pause, SteadyTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, Namespace> namespaces_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_MAP_H_
