// The cursors on a map's logs: of its deaths and of its changes, and groups that
// follow.

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {

// Returns the feed that has ended, if one has.
std::shared_ptr<ChangeFeed> TimeCacheMap::SetChanges(
    const NamespaceOptions& options, int64_t now_us) {
  const bool keeps = options.change_retention_us != 0;
  if (keeps == (changes_ != nullptr)) {
    if (keeps) changes_->SetRetention(options, now_us);
    return nullptr;
  }
  std::shared_ptr<ChangeFeed> last = std::move(changes_);
  changes_ =
      keeps ? std::make_shared<ChangeFeed>(namespace_name_, options) : nullptr;
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i]->SetChangeWatch(keeps ? changes_->buffer(i) : nullptr, now_us);
  }
  if (last != nullptr) {
    last->Publish(now_us);
    last->Close();
  }
  return last;
}

absl::Status TimeCacheMap::NoChanges() const {
  return PreconditionFailed(
      Reason::kNoChanges,
      absl::StrCat("namespace ", namespace_name_,
                   " keeps no changes: set its change_retention"));
}

absl::StatusOr<std::unique_ptr<ChangeFeed::Cursor>> TimeCacheMap::WatchChanges(
    ExpiryLog::Start start, const ExpiryLog::Point* point, int64_t now_us,
    std::function<void()> wake) {
  absl::MutexLock lock(&advance_mu_);
  if (changes_ == nullptr) return NoChanges();
  auto cursor = changes_->NewCursor();
  AdvanceLocked(now_us);
  if (point == nullptr) {
    changes_->Subscribe(start, now_us, std::move(wake), cursor.get());
  } else {
    absl::Status status =
        changes_->Resume(*point, std::move(wake), cursor.get());
    if (!status.ok()) return status;
  }
  return cursor;
}

absl::Status TimeCacheMap::CheckKeepsChanges(
    const ChangeFeed::Cursor* cursor) const {
  absl::MutexLock lock(&advance_mu_);
  return cursor->IsOf(changes_.get()) ? absl::OkStatus() : NoChanges();
}

std::unique_ptr<ExpiryLog::Cursor> TimeCacheMap::Subscribe(
    ExpiryLog::Start start, int64_t now_us, std::function<void()> wake) {
  absl::MutexLock lock(&advance_mu_);
  AdvanceLocked(now_us);
  sweeper_.PublishWatermark();
  return sweeper_.Subscribe(start, now_us, std::move(wake));
}

absl::StatusOr<std::unique_ptr<ExpiryLog::Cursor>> TimeCacheMap::Resume(
    const ExpiryLog::Point& point, int64_t now_us, std::function<void()> wake) {
  absl::MutexLock lock(&advance_mu_);
  AdvanceLocked(now_us);
  sweeper_.PublishWatermark();
  return sweeper_.Resume(point, std::move(wake));
}

absl::Status TimeCacheMap::Follow(
    ExpiryLog::Follower* follower, const LogPosition& position, int64_t now_us,
    absl::FunctionRef<void(const LogPlace& place)> begin) {
  const bool retained = position.kind != LogPosition::Kind::kStart ||
                        position.start == LogStart::kEarliest;
  const Selections made = retained ? log_.SelectRetained(follower->key_prefix())
                                   : Selections(follower->key_prefix());
  // Held throughout: no tick comes between the retained batches and `begin`.
  absl::MutexLock lock(&advance_mu_);
  AdvanceLocked(now_us);
  sweeper_.PublishWatermark();
  const absl::StatusOr<LogPlace> place =
      sweeper_.FollowAt(follower, position, made);
  if (place.ok()) begin(*place);
  return place.status();
}

absl::Status TimeCacheMap::MoveTo(absl::string_view key_prefix,
                                  const LogPosition& position, int64_t now_us,
                                  ExpiryLog::Move move) {
  const Selections made = log_.SelectRetained(key_prefix);
  absl::MutexLock lock(&advance_mu_);
  AdvanceLocked(now_us);
  sweeper_.PublishWatermark();
  return sweeper_.MoveTo(position, made, move).status();
}

}  // namespace timecache::server
