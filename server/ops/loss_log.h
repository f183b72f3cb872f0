// Log lines about events outside of calls: events that consumer groups lose or
// move to dead letters, refused connections.

#ifndef TIMECACHED_SERVER_OPS_LOSS_LOG_H_
#define TIMECACHED_SERVER_OPS_LOSS_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/base/clock.h"
#include "server/engine/groups/consumer_group.h"
#include "server/engine/registries.h"
#include "server/ops/folded_lines.h"
#include "server/ops/log.h"

namespace timecache::server {

// Looks at counters, and writes
//
//   group_events_lost    that a group dropped unsettled: it is too far behind
//   dead_letters         that were put into a dead letter namespace
//   dead_letters_failed  failed attempts to put one there
//   dead_letters_denied  of these, because the group's creator may not write
//                        there
//   suspect_events       returns of an event whose members' streams have ended
//                        again and again: the one returned most often, with its
//                        `key` and `returns`, which may be what ends them
//   group_expired        a group was deleted, without a member for its
//                        unused_ttl; `count` events were lost with it
//
// and what `counters` say, such as connections_refused,
//
// with namespace, group and `count`, the number since the line before; each
// kind at most once in FoldedLines::kIntervalUs. What a group counted between
// the last look and its deletion, or the move of its slot to another node, is not
// said.
//
// Not thread-safe: for one thread. A look costs a lock and a copy of a few
// numbers for each group, and a lock for each namespace.
class LossLog {
 public:
  using Write = std::function<void(LogLevel, std::string_view, LogFields)>;

  // How often something has happened, by the name of its line, and the address
  // that it happened to last, if there is one.
  struct Counter {
    const char* event;
    std::function<uint64_t()> value;
    std::function<std::string()> last_address = nullptr;
    uint64_t before = 0;
  };

  // `registries` and `clock`, by which lines wait, are not owned.
  LossLog(const Registries* registries, const Clock* clock,
          std::vector<Counter> counters, Write write = Log);

  // Compares with the look before, and writes what is due.
  void Look();
  // Writes all that waits: the last look.
  void Finish();

 private:
  // What has been counted of a group.
  struct Counted {
    std::weak_ptr<ConsumerGroup> group;
    uint64_t lost = 0;
    uint64_t dead_lettered = 0;
    uint64_t dead_letter_failures = 0;
    uint64_t dead_letters_denied = 0;
    uint64_t suspected = 0;
  };
  // Of a map: groups that have expired.
  struct CountedMap {
    std::weak_ptr<TimeCacheMap> map;
    uint64_t expired = 0;
  };

  void Count();
  void CountExpired(const std::shared_ptr<TimeCacheMap>& map);
  void CountGroup(const std::string& name,
                  const std::shared_ptr<ConsumerGroup>& group, int64_t now_us);
  void CountSuspects(const std::string& name,
                     const std::shared_ptr<ConsumerGroup>& group,
                     uint64_t* before, int64_t now_us);
  void Add(const char* event, const std::string& name, const std::string& group,
           uint64_t now, uint64_t* before, int64_t now_us);
  void WriteLine(const FoldedLines::Kind& kind, uint64_t count);

  const Registries* const registries_;
  const Clock* const clock_;
  std::vector<Counter> counters_;
  const Write write_;
  FoldedLines folded_;
  absl::flat_hash_map<const ConsumerGroup*, Counted> groups_;
  absl::flat_hash_map<const TimeCacheMap*, CountedMap> maps_;
  // Of the next line about a namespace's group.
  absl::flat_hash_map<std::pair<std::string, std::string>, Suspect> suspects_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_LOSS_LOG_H_
