// One consumer group of a map: each event of the map's log is given to one
// member, until it is settled.

#ifndef TIMECACHED_SERVER_ENGINE_CONSUMER_GROUP_H_
#define TIMECACHED_SERVER_ENGINE_CONSUMER_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/expiry_log.h"
#include "server/engine/group_types.h"

namespace timecache {

// The life of an event here:
//
//   backlog --Take--> in flight --ACK, PUT_BACK--> settled
//      ^                  |
//      +--NACK, time-out, member leaves            (at max_attempts, with a
//         (after NACK's delay)                      dead-letter namespace:
//                                                   doomed --> settled)
//
// At least once: an event leaves by being settled, as a dead letter, or counted in
// `lost`. Events come in the log's order at their first attempt; those of one key
// one after the other: a later one waits until the earlier is settled.
//
// Thread-safe. Reads no clock and owns no thread: every call says what time it is,
// and somebody calls Advance. OnAppend is O(1); giving out and settling an event
// cost O(log of what is unsettled). Memory: what the log shares with it, bounded by
// max_backlog_bytes beside what members hold, and about 200 B for each event that
// has been given out and is unsettled.
class ConsumerGroup final : public ExpiryLog::Follower {
 public:
  ConsumerGroup(std::string name, const GroupOptions& options,
                const ExpiryLog* log);
  ~ConsumerGroup() override;

  const std::string& name() const { return name_; }

  // What a member is given at once.
  struct Chunk {
    std::vector<Delivery> deliveries;
    // Everything that died at or before this has been settled or lost. Never goes
    // back.
    int64_t watermark_us = 0;
    // Events that the group lost and has told no member yet.
    uint64_t lost = 0;
    // Whether there is more for this member now.
    bool more = false;
    // The group or its map is gone: nothing comes after this.
    bool closed = false;
  };

  // A stream that takes part. Used by one thread at a time; may outlive the
  // group's deletion, not the group. Its destruction gives back what it holds: to
  // the others, at once. Not to be destroyed from its own `wake`.
  class Member {
   public:
    ~Member();
    // At most `max_events` and about `max_bytes` as they are encoded, at least one
    // if there is one and the member is below its max_in_flight. What waits is
    // shared out fairly among the members that could take it.
    Chunk Take(int64_t now_us, int max_events, int64_t max_bytes);
  };

  // `wake` is called when there is something for this member to Take: once until
  // it has taken all it may again, from any thread and under the group's lock: it
  // must be quick, must not block and not call the group.
  std::unique_ptr<Member> Join(int max_in_flight, std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all members: the group is being deleted.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_CONSUMER_GROUP_H_
