// A consumer group's share of a namespace as a watch reads it.

#ifndef TIMECACHED_SERVER_SERVICE_WATCH_GROUP_SOURCE_H_
#define TIMECACHED_SERVER_SERVICE_WATCH_GROUP_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/groups/consumer_group.h"
#include "server/engine/map/time_cache_map.h"
#include "server/service/watch/watch_request.h"
#include "server/service/watch/watch_source.h"

namespace timecache {

// A member of a group: what it reads is its own to settle, until the stream
// ends. The events of a message are copied, each with its number and attempt.
class GroupSource final : public WatchSource {
 public:
  // Joins the group that `request` names, which must outlive the source; makes
  // it for `principal` if it is not there. RESOURCE_EXHAUSTED (MAX_GROUPS) if
  // it cannot.
  static absl::StatusOr<std::unique_ptr<WatchSource>> Open(
      std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
      const std::string& principal, int64_t now_us, std::function<void()> wake);

  Reading Read(int64_t now_us, WatchMessage* message) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;
  void OnDrain() override { draining_ = true; }
  void OnEnd() override { member_.reset(); }

 private:
  GroupSource(std::shared_ptr<TimeCacheMap> map,
              std::shared_ptr<ConsumerGroup> group,
              std::unique_ptr<ConsumerGroup::Member> member, bool keys_only);

  absl::Status WhyClosed() const;

  // Each is destroyed before the one above it, which it needs.
  const std::shared_ptr<TimeCacheMap> map_;
  const std::shared_ptr<ConsumerGroup> group_;
  // Null once the stream has ended.
  std::unique_ptr<ConsumerGroup::Member> member_;
  const bool keys_only_;
  bool draining_ = false;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_WATCH_GROUP_SOURCE_H_
