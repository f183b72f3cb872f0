// What the consumer groups of a map need of it.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_HOST_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_HOST_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/store/operation.h"

namespace timecache::server {

// Thread-safe. Called with no lock of a group held, except for Announce.
class GroupHost {
 public:
  virtual const std::string& namespace_name() const = 0;
  // Which of the namespace's partitions it is.
  virtual int partition() const = 0;
  virtual ExpiryLog* log() = 0;
  // As ExpiryLog::FollowAt, for deaths after `now_us`. Calls `begin` with the
  // place before the follower receives later ones.
  virtual absl::Status Follow(
      ExpiryLog::Follower* follower, const LogPosition& position,
      int64_t now_us, absl::FunctionRef<void(const LogPlace& place)> begin) = 0;
  // As ExpiryLog::MoveTo.
  virtual absl::Status MoveTo(absl::string_view key_prefix,
                              const LogPosition& position, int64_t now_us,
                              ExpiryLog::Move move) = 0;
  // The groups have something to do at `due_us`.
  virtual void Announce(int64_t due_us) = 0;
  // OK, or why a put could not be stored now.
  virtual absl::Status CheckRoom() const = 0;
  // See TimeCacheMap::Apply.
  virtual void Apply(const Operation& op, int64_t now_us, Result* result) = 0;

 protected:
  ~GroupHost() = default;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_HOST_H_
