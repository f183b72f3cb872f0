// Tracks whether all work derived from a message was done in time: Storm's
// acker.
//
//   timecache::Acker acker(client, "acks");
//   const uint64_t first = timecache::Acker::NewId();
//   acker.Track("message-7", {first});     // The spout, when it emits.
//   ...
//   const uint64_t a = timecache::Acker::NewId();
//   acker.Ack("message-7", first, {a});    // A bolt that emitted `a` for it.
//   ...
//   acker.Ack("message-7", a);             // The last one: true, it is done.
//
// What is not done in time fails: see FailedRoot.

#ifndef TIMECACHE_RECIPES_ACKER_H_
#define TIMECACHE_RECIPES_ACKER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/operation.h"
#include "timecache/watch_types.h"

namespace timecache {

struct AckerOptions {
  // How long a tree may take: 1 ms to the namespace's max_ttl. Unset: the
  // namespace's ttl.
  std::optional<absl::Duration> ttl = {};
};

// Tracks trees of tuples, each by its root's name: one number for a tree, the
// xor of the ids of all tuples that were emitted or acknowledged, which is 0
// when each has been both. Tuples may be acknowledged in any order, also before
// Track.
//
// Guarantee: a tracked tree ends in one of three ways. It is *done*: true is
// returned to exactly one call. It has *failed by time-out*: its entry expires,
// exactly once, at most a bucket width after its ttl. Or Fail has removed it.
// A lost or late acknowledgement fails its own tree, never another; an
// acknowledgement after the end creates an entry without a tree, which
// FailedRoot ignores. Ids are random: the probability that a tree counts as
// done by chance is 2^-63.
//
// Unanswered calls:
// - Track may have happened: emit under a new root. The old one, if it is
//   there, fails.
// - Ack may have happened: do not repeat it, since twice is not at all. The
//   tree is done, though no caller received that, or fails. A root that was
//   tracked, and whose failure has not been delivered when the watch's
//   watermark is beyond its time, is done.
//
// Cost: one round trip and O(1) for a call, about 40 B for a tree beside its
// name; in a Pipeline by the Operations, about a microsecond.
//
// Thread-safe. Cheap to copy.
class TIMECACHED_EXPORT Acker {
 public:
  // Trees are in entries NAME/ROOT of the client's namespace.
  Acker(const Client& client, std::string_view name, AckerOptions options = {});

  // The id of a tuple: random, not 0, and even, because the lowest bit says
  // whether a tree is tracked.
  static uint64_t NewId();

  // Begins a tree with the tuples that its source emits. True: all of them are
  // acknowledged already. Call it once for each root: do not reuse the name of
  // a root for at least twice the ttl.
  absl::StatusOr<bool> Track(std::string_view root,
                             const std::vector<uint64_t>& emitted) const;

  // A tuple was processed; `emitted` are the tuples derived from it. True: the
  // tree is now done.
  absl::StatusOr<bool> Ack(std::string_view root, uint64_t tuple,
                           const std::vector<uint64_t>& emitted = {}) const;

  // Gives up a tree. True: it existed, and no event follows. False: it is done,
  // or has failed.
  absl::StatusOr<bool> Fail(std::string_view root) const;

  // The same for a Batch or Pipeline; OperationResult::removed is what the
  // calls return.
  Operation TrackOperation(std::string_view root,
                           const std::vector<uint64_t>& emitted) const;
  Operation AckOperation(std::string_view root, uint64_t tuple,
                         const std::vector<uint64_t>& emitted = {}) const;

  // The root of the tree whose failure this event of a watch or group reports.
  // None for other keys, and for entries of late calls. An eviction or rotation
  // fails a tree, too.
  std::optional<std::string> FailedRoot(const ExpiredEvent& event) const;

  const std::string& key_prefix() const { return key_prefix_; }

 private:
  Client client_;
  std::string key_prefix_;
  CombineOptions options_;
};

}  // namespace timecache

#endif  // TIMECACHE_RECIPES_ACKER_H_
