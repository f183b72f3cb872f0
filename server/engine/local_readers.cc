#include "server/engine/local_readers.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/clock.h"
#include "server/engine/error.h"
#include "server/engine/expiry/expiring_cursor.h"

namespace timecache::server {
namespace {

absl::Status NamespaceDeleted(const TimeCacheMap& map) {
  return ErrorWithReason(
      absl::StatusCode::kNotFound, Reason::kNamespaceNotFound,
      absl::StrCat("namespace ", map.name(), " was deleted"));
}

// In each class the cursor is declared after `map_`, which owns its data: it is
// destroyed first.

class LocalLogReader final : public LogReader {
 public:
  LocalLogReader(std::shared_ptr<TimeCacheMap> map,
                 std::unique_ptr<ExpiryLog::Cursor> cursor)
      : map_(std::move(map)), cursor_(std::move(cursor)) {}

  LogChunk Read(int64_t max_bytes) override { return cursor_->Read(max_bytes); }
  void CountDelivery(int64_t lateness_us, uint64_t events) override {
    map_->CountDelivery(lateness_us, events);
  }
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override {
    map_->RefreshWatermark(now_us, max_age_us);
  }
  absl::Status WhyClosed() const override { return NamespaceDeleted(*map_); }

 private:
  const std::shared_ptr<TimeCacheMap> map_;
  const std::unique_ptr<ExpiryLog::Cursor> cursor_;
};

class LocalGroupReader final : public GroupReader {
 public:
  LocalGroupReader(std::shared_ptr<TimeCacheMap> map,
                   std::shared_ptr<ConsumerGroup> group,
                   std::unique_ptr<GroupMember> member)
      : map_(std::move(map)),
        group_(std::move(group)),
        event_offset_(map_->event_offset()),
        member_(std::move(member)) {}

  GroupChunk Take(int64_t now_us, int max_events, int64_t max_bytes) override {
    KeepChanges();
    GroupChunk chunk = member_->Take(now_us, max_events, max_bytes);
    for (Delivery& delivery : chunk.deliveries) {
      delivery.event_id += event_offset_;
    }
    return chunk;
  }
  void Leave() override { member_.reset(); }
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override {
    map_->RefreshWatermark(now_us, max_age_us);
  }
  // A group that is deleted is no longer found; a map that is deleted keeps its
  // own.
  absl::Status WhyClosed() const override {
    const auto found = map_->groups().Find(group_->name());
    if (found.ok() && *found == group_) return NamespaceDeleted(*map_);
    return ErrorWithReason(
        absl::StatusCode::kNotFound, Reason::kGroupNotFound,
        absl::StrCat("group ", group_->name(), " of namespace ", map_->name(),
                     " was deleted"));
  }

 private:
  // So that the group may publish its watermark, at once if all its changes are
  // stored.
  void KeepChanges() {
    ChangeLog* const log = map_->change_log();
    if (log == nullptr || !group_->BeginKeeping()) return;
    // The group calls its map.
    log->WhenAllKept([map = map_, group = group_](const absl::Status& status) {
      group->EndKeeping(status.ok());
    });
  }

  const std::shared_ptr<TimeCacheMap> map_;
  const std::shared_ptr<ConsumerGroup> group_;
  const uint64_t event_offset_;
  // Null once it has left.
  std::unique_ptr<GroupMember> member_;
};

class LocalExpiringReader final : public ExpiringReader {
 public:
  LocalExpiringReader(std::shared_ptr<TimeCacheMap> map,
                      std::unique_ptr<ExpiringCursor> cursor,
                      std::function<void()> wake)
      : map_(std::move(map)),
        cursor_(std::move(cursor)),
        wake_(std::move(wake)) {}

  ExpiringChunk Read(int64_t now_us, int64_t max_bytes) override {
    if (held_ == nullptr) {
      ExpiringChunk chunk = cursor_->Read(now_us, max_bytes);
      if (chunk.batches.empty() || !IsSync()) return Passed(std::move(chunk));
      held_ = std::make_shared<Held>();
      held_->chunk = std::move(chunk);
    }
    if (!Keep()) {
      ExpiringChunk nothing;
      nothing.watermark_us = watermark_us_;
      return nothing;
    }
    return Passed(std::move(std::exchange(held_, nullptr)->chunk));
  }
  int64_t NextDueUs() const override {
    return held_ == nullptr ? cursor_->NextDueUs() : kNeverUs;
  }
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override {
    cursor_->Refresh(now_us, max_age_us);
  }
  absl::Status WhyClosed() const override { return NamespaceDeleted(*map_); }

 private:
  // Live entries that were read and that a crash could still undo.
  struct Held {
    enum State { kUnknown, kAsking, kWaiting, kKept };
    ExpiringChunk chunk;
    std::atomic<State> state = kUnknown;
  };

  bool IsSync() const {
    return map_->change_log() != nullptr &&
           map_->options().durability == NamespaceDurability::kSync;
  }
  // Whether the held changes are stored; if not, wakes once that may have
  // changed.
  bool Keep() {
    Held::State unknown = Held::kUnknown;
    if (held_->state.compare_exchange_strong(unknown, Held::kAsking)) {
      map_->change_log()->WhenAllKept([held = held_, wake = wake_](
                                          const absl::Status& status) {
        // A full disk: the next heartbeat retries.
        const auto before =
            held->state.exchange(status.ok() ? Held::kKept : Held::kUnknown);
        if (status.ok() && before == Held::kWaiting) wake();
      });
      Held::State asking = Held::kAsking;
      held_->state.compare_exchange_strong(asking, Held::kWaiting);
    }
    return held_->state == Held::kKept;
  }
  ExpiringChunk Passed(ExpiringChunk chunk) {
    watermark_us_ = chunk.watermark_us;
    return chunk;
  }

  const std::shared_ptr<TimeCacheMap> map_;
  const std::unique_ptr<ExpiringCursor> cursor_;
  const std::function<void()> wake_;
  // Of the last chunk that was passed on.
  int64_t watermark_us_ = 0;
  std::shared_ptr<Held> held_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LogReader>> OpenLogReader(
    std::shared_ptr<TimeCacheMap> map, LogStart start, const LogPoints& points,
    int64_t now_us, std::function<void()> wake) {
  std::unique_ptr<ExpiryLog::Cursor> cursor;
  const auto point = points.find(map->name());
  if (point == points.end()) {
    cursor = map->Subscribe(start, now_us, std::move(wake));
  } else {
    auto resumed = map->Resume(point->second, now_us, std::move(wake));
    if (!resumed.ok()) {
      return WithMetadata(resumed.status(), "namespace", map->name());
    }
    cursor = *std::move(resumed);
  }
  return std::make_unique<LocalLogReader>(std::move(map), std::move(cursor));
}

absl::StatusOr<std::unique_ptr<GroupReader>> JoinGroupReader(
    std::shared_ptr<TimeCacheMap> map, const Membership& membership,
    int64_t now_us, std::function<void()> wake) {
  auto group = map->groups().FindOrCreate(membership.group, membership.start,
                                          now_us, membership.created_by);
  if (!group.ok()) {
    return WithMetadata(group.status(), "namespace", map->name());
  }
  auto member = (*group)->Join(membership.max_in_flight, std::move(wake));
  return std::make_unique<LocalGroupReader>(std::move(map), *std::move(group),
                                            std::move(member));
}

absl::StatusOr<std::unique_ptr<ExpiringReader>> OpenExpiringReader(
    std::shared_ptr<TimeCacheMap> map, const ExpiringOptions& options,
    std::function<void()> wake) {
  auto cursor = map->expiring().Subscribe(options, wake);
  if (!cursor.ok()) return cursor.status();
  return std::make_unique<LocalExpiringReader>(
      std::move(map), *std::move(cursor), std::move(wake));
}

}  // namespace timecache::server
