// The consumer groups of one map, by name.

#ifndef TIMECACHED_SERVER_ENGINE_CONSUMER_GROUPS_H_
#define TIMECACHED_SERVER_ENGINE_CONSUMER_GROUPS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/engine/consumer_group.h"

namespace timecache {

class TimeCacheMap;

// Makes, finds, changes and deletes groups, settles their events, and lets their
// time-outs happen. Thread-safe.
class ConsumerGroups {
 public:
  static constexpr size_t kMaxGroups = 64;
  // Dead letters that one Advance tries to put.
  static constexpr int kMaxDeadLetters = 1'024;

  // Puts a dead letter where the map's options say; the engine's Registry does
  // it, as it knows the other maps. `value` is the event as its format writes it by
  // itself.
  using DeadLetterSink = std::function<absl::Status(
      absl::string_view to_map, std::string key, std::string value)>;

  // `map` owns this and outlives it.
  explicit ConsumerGroups(TimeCacheMap* map);

  // ALREADY_EXISTS (GROUP_EXISTS), RESOURCE_EXHAUSTED (MAX_GROUPS), or
  // INVALID_ARGUMENT about `group` (the name) or an option.
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Create(
      absl::string_view name, const GroupOptions& options,
      ExpiryLog::Start start, int64_t now_us);
  // Creates it, with default options, if it is not there.
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> FindOrCreate(
      absl::string_view name, ExpiryLog::Start start, int64_t now_us);
  // NOT_FOUND (GROUP_NOT_FOUND).
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Find(
      absl::string_view name) const;
  // Ordered by name.
  std::vector<std::shared_ptr<ConsumerGroup>> List() const;
  // Changes the options by `change`, which gets those in force.
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Update(
      absl::string_view name,
      const std::function<absl::Status(GroupOptions*)>& change);
  absl::Status Delete(absl::string_view name);

  // Settles events of one group, each by itself, in order: `results` has as many.
  // GROUP_NOT_FOUND if none can be tried. Callable from any thread.
  absl::Status Settle(absl::string_view group,
                      absl::Span<const Settlement> settlements, int64_t now_us,
                      absl::Span<SettleResult> results);

  // --- For the map.

  // When Advance next has something to do; kNeverUs if never.
  int64_t NextDueUs() const;
  // Lets what has timed out be given out again, and puts dead letters. Returns
  // whether there is more to do now.
  bool Advance(int64_t now_us);
  // Ends all members' streams: the map is being deleted.
  void Close();
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_CONSUMER_GROUPS_H_
