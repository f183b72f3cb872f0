#include "server/engine/local_readers.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/base/error.h"
#include "server/engine/expiry/expiring_cursor.h"

namespace timecache::server {
namespace {

absl::Status NamespaceDeleted(const TimeCacheMap& map) {
  return ErrorWithReason(
      absl::StatusCode::kNotFound, Reason::kNamespaceNotFound,
      absl::StrCat("namespace ", map.namespace_name(), " was deleted"));
}

absl::Status SingleActive(const ConsumerGroup& group, const TimeCacheMap& map) {
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, Reason::kSingleActive,
      absl::StrCat("group ", group.name(), " of namespace ",
                   map.namespace_name(),
                   " is single_active: one stream gets all its events, and "
                   "none can be fetched"));
}

// Whether the changes of a map up to the first question are stored.
class Keeping {
 public:
  // If not, `wake` is called once that may have changed.
  bool IsKept(ChangeLog* log, const std::function<void()>& wake) {
    State unknown = kUnknown;
    if (state_->compare_exchange_strong(unknown, kAsking)) {
      log->WhenAllKept([state = state_, wake](const absl::Status& status) {
        // A full disk: the next heartbeat retries.
        const State before = state->exchange(status.ok() ? kKept : kUnknown);
        if (status.ok() && before == kWaiting) wake();
      });
      State asking = kAsking;
      state_->compare_exchange_strong(asking, kWaiting);
    }
    return *state_ == kKept;
  }

 private:
  enum State { kUnknown, kAsking, kWaiting, kKept };
  std::shared_ptr<std::atomic<State>> state_ =
      std::make_shared<std::atomic<State>>(kUnknown);
};

// A reader of a map, which it keeps. Its cursor or member is destroyed before
// the map, which owns what they read.
class LocalReader : public EventReader {
 public:
  LocalReader(std::shared_ptr<TimeCacheMap> map, std::function<void()> wake)
      : map_(std::move(map)), wake_(std::move(wake)) {}

  EventChunk Read(int64_t now_us, int max_events, int64_t max_bytes,
                  bool at_least_one) final {
    ChangeLog* const log = map_->change_log();
    if (!held_.has_value()) {
      EventChunk chunk = ReadNow(now_us, max_events, max_bytes, at_least_one);
      if (!chunk.undoable || log == nullptr) return Passed(std::move(chunk));
      held_ = std::move(chunk);
      keeping_ = Keeping();
    }
    const bool kept = keeping_.IsKept(log, wake_);
    if (!kept || (!at_least_one && !Fits(*held_, max_events, max_bytes))) {
      EventChunk nothing;
      nothing.watermark_us = watermark_us_;
      nothing.point = point_;
      nothing.delivered_us = delivered_us_;
      nothing.storing = !kept;
      nothing.more = kept;
      // A disk that stays full does not keep a member.
      nothing.closed = IsClosed();
      return nothing;
    }
    EventChunk chunk = *std::move(held_);
    held_.reset();
    return Passed(std::move(chunk));
  }
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override {
    map_->RefreshWatermark(now_us, max_age_us);
  }
  absl::Status WhyClosed() const override { return NamespaceDeleted(*map_); }

 protected:
  virtual EventChunk ReadNow(int64_t now_us, int max_events, int64_t max_bytes,
                             bool at_least_one) = 0;
  virtual bool IsClosed() const { return false; }

  TimeCacheMap& map() const { return *map_; }
  const std::shared_ptr<TimeCacheMap>& shared_map() const { return map_; }
  bool holds() const { return held_.has_value(); }
  // Of a log: where it stands before it has passed anything on.
  void BeginAt(const LogPoint& point) {
    point_ = point;
    watermark_us_ = point.watermark_us;
  }
  void DropHeld() { held_.reset(); }

 private:
  static bool Fits(const EventChunk& chunk, int max_events, int64_t max_bytes) {
    size_t events = chunk.deliveries.size();
    size_t bytes = 0;
    for (const auto& batch : chunk.batches) {
      events += static_cast<size_t>(batch->size());
      bytes += batch->encoded().size();
    }
    for (const Delivery& delivery : chunk.deliveries) {
      bytes += delivery.batch->encoded(delivery.index).size();
    }
    return events <= static_cast<size_t>(std::max(max_events, 0)) &&
           static_cast<int64_t>(bytes) <= max_bytes;
  }
  EventChunk Passed(EventChunk chunk) {
    watermark_us_ = chunk.watermark_us;
    point_ = chunk.point;
    delivered_us_ = chunk.delivered_us;
    return chunk;
  }

  const std::shared_ptr<TimeCacheMap> map_;
  const std::function<void()> wake_;
  // Of the last chunk that was passed on.
  int64_t watermark_us_ = 0;
  LogPoint point_;
  int64_t delivered_us_ = 0;
  // What was read, and a crash could still undo.
  std::optional<EventChunk> held_;
  Keeping keeping_;
};

class LocalLogReader final : public LocalReader {
 public:
  LocalLogReader(std::shared_ptr<TimeCacheMap> map,
                 std::unique_ptr<ExpiryLog::Cursor> cursor)
      : LocalReader(std::move(map), nullptr), cursor_(std::move(cursor)) {}

  void CountDelivery(int64_t lateness_us, uint64_t events) override {
    map().CountDelivery(lateness_us, events);
  }

 private:
  EventChunk ReadNow(int64_t /*now_us*/, int max_events, int64_t max_bytes,
                     bool at_least_one) override {
    return cursor_->Read(max_bytes, max_events, at_least_one);
  }

  const std::unique_ptr<ExpiryLog::Cursor> cursor_;
};

class LocalGroupReader final : public LocalReader {
 public:
  LocalGroupReader(std::shared_ptr<TimeCacheMap> map,
                   std::shared_ptr<ConsumerGroup> group,
                   std::unique_ptr<GroupMember> member,
                   std::function<void()> wake)
      : LocalReader(std::move(map), std::move(wake)),
        group_(std::move(group)),
        member_(std::move(member)) {}

  void StopReading() override { member_->StopTaking(); }
  void Leave(int64_t now_us, StreamEnd end) override {
    DropHeld();
    if (member_ != nullptr) member_->Leave(now_us, end);
    member_.reset();
  }
  // A group that is deleted is no longer found; a map that is deleted keeps its
  // own.
  absl::Status WhyClosed() const override {
    const auto found = map().groups().Find(group_->name());
    if (found.ok() && *found == group_) {
      return group_->closed() ? NamespaceDeleted(map())
                              : SingleActive(*group_, map());
    }
    return ErrorWithReason(
        absl::StatusCode::kNotFound, Reason::kGroupNotFound,
        absl::StrCat("group ", group_->name(), " of namespace ",
                     map().namespace_name(), " was deleted"));
  }

 private:
  EventChunk ReadNow(int64_t now_us, int max_events, int64_t max_bytes,
                     bool at_least_one) override {
    KeepChanges();
    return member_->Take(now_us, max_events, max_bytes, at_least_one);
  }
  bool IsClosed() const override { return group_->closed(); }
  // So that the group may publish its watermark, at once if all its changes are
  // stored.
  void KeepChanges() {
    ChangeLog* const log = map().change_log();
    if (log == nullptr || !group_->BeginKeeping()) return;
    // The group calls its map.
    log->WhenAllKept(
        [map = shared_map(), group = group_](const absl::Status& status) {
          group->EndKeeping(status.ok());
        });
  }

  const std::shared_ptr<ConsumerGroup> group_;
  // Null once it has left.
  std::unique_ptr<GroupMember> member_;
};

class LocalExpiringReader final : public LocalReader {
 public:
  LocalExpiringReader(std::shared_ptr<TimeCacheMap> map,
                      std::unique_ptr<ExpiringCursor> cursor,
                      std::function<void()> wake)
      : LocalReader(std::move(map), std::move(wake)),
        cursor_(std::move(cursor)) {}

  int64_t NextDueUs() const override {
    return holds() ? kNeverUs : cursor_->NextDueUs();
  }
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override {
    cursor_->Refresh(now_us, max_age_us);
  }

 private:
  EventChunk ReadNow(int64_t now_us, int /*max_events*/, int64_t max_bytes,
                     bool /*at_least_one*/) override {
    EventChunk chunk = cursor_->Read(now_us, max_bytes);
    chunk.undoable = !chunk.batches.empty() && map().change_log() != nullptr &&
                     IsSync(map().options().durability);
    return chunk;
  }

  const std::unique_ptr<ExpiringCursor> cursor_;
};

class LocalChangeReader final : public LocalReader {
 public:
  LocalChangeReader(std::shared_ptr<TimeCacheMap> map,
                    std::unique_ptr<ChangeFeed::Cursor> cursor,
                    std::function<void()> wake)
      : LocalReader(std::move(map), std::move(wake)),
        cursor_(std::move(cursor)) {
    BeginAt(cursor_->point());
  }

  // A namespace that is deleted keeps its feed.
  absl::Status WhyClosed() const override {
    absl::Status status = map().CheckKeepsChanges(cursor_.get());
    return status.ok() ? NamespaceDeleted(map()) : status;
  }

 private:
  EventChunk ReadNow(int64_t /*now_us*/, int max_events, int64_t max_bytes,
                     bool at_least_one) override {
    EventChunk chunk = cursor_->Read(max_bytes, max_events, at_least_one);
    chunk.undoable =
        !chunk.batches.empty() && IsSync(map().options().durability);
    return chunk;
  }

  const std::unique_ptr<ChangeFeed::Cursor> cursor_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EventReader>> OpenLogReader(
    std::shared_ptr<TimeCacheMap> map, LogStart start, const LogPoints& points,
    int64_t now_us, std::function<void()> wake) {
  std::unique_ptr<ExpiryLog::Cursor> cursor;
  const auto point = points.find(map->name());
  if (point == points.end()) {
    cursor = map->Subscribe(start, now_us, std::move(wake));
  } else {
    auto resumed = map->Resume(point->second, now_us, std::move(wake));
    if (!resumed.ok()) {
      return WithMetadata(resumed.status(), "namespace", map->namespace_name());
    }
    cursor = *std::move(resumed);
  }
  return std::make_unique<LocalLogReader>(std::move(map), std::move(cursor));
}

absl::StatusOr<std::unique_ptr<EventReader>> OpenChangeReader(
    std::shared_ptr<TimeCacheMap> map, LogStart start, const LogPoints& points,
    int64_t now_us, std::function<void()> wake) {
  const auto point = points.find(map->name());
  auto cursor = map->WatchChanges(
      start, point == points.end() ? nullptr : &point->second, now_us, wake);
  if (!cursor.ok()) {
    return WithMetadata(cursor.status(), "namespace", map->namespace_name());
  }
  return std::make_unique<LocalChangeReader>(std::move(map), *std::move(cursor),
                                             std::move(wake));
}

absl::StatusOr<std::unique_ptr<EventReader>> JoinGroupReader(
    std::shared_ptr<TimeCacheMap> map, const Membership& membership,
    int64_t now_us, std::function<void()> wake) {
  auto group = map->groups().FindOrCreate(membership.group, membership.start,
                                          now_us, membership.created_by);
  if (!group.ok()) {
    return WithMetadata(group.status(), "namespace", map->namespace_name());
  }
  if (membership.fetches && (*group)->options().single_active) {
    return SingleActive(**group, *map);
  }
  auto member = (*group)->Join(
      membership.max_in_flight, wake,
      {.origin = {membership.created_by, membership.peer, now_us},
       .fetches = membership.fetches,
       .wants_all_delivered = !membership.fetches,
       .in_flight = membership.in_flight,
       .id = membership.member_id});
  return std::make_unique<LocalGroupReader>(std::move(map), *std::move(group),
                                            std::move(member), std::move(wake));
}

absl::StatusOr<std::unique_ptr<EventReader>> OpenExpiringReader(
    std::shared_ptr<TimeCacheMap> map, const ExpiringOptions& options,
    std::function<void()> wake) {
  auto cursor = map->expiring().Subscribe(options, wake);
  if (!cursor.ok()) return cursor.status();
  return std::make_unique<LocalExpiringReader>(
      std::move(map), *std::move(cursor), std::move(wake));
}

}  // namespace timecache::server
