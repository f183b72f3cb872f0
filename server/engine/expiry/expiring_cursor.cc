#include "server/engine/expiry/expiring_cursor.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/types/span.h"

namespace timecache::server {

// Writes what one Read takes from live buckets, a batch for each death, beside
// what it takes from the feed.
class ExpiringCursor::Writer {
 public:
  Writer(const ExpiringCursor* cursor, int64_t now_us, int64_t max_bytes)
      : cursor_(cursor), now_us_(now_us), bytes_left(max_bytes) {}

  // False if it has no room left for this.
  bool Add(int64_t death_us, ExpiredEvent event) {
    if (!absl::StartsWith(event.key, cursor_->options_.key_prefix)) return true;
    if (cursor_->options_.keys_only) event.value = {};
    const auto bytes =
        static_cast<int64_t>(event.key.size() + event.value.size());
    const bool first = events_left == kMaxEventBatchEvents;
    full = events_left <= 0 || (!first && bytes > bytes_left);
    if (full) return false;
    if (batch_ == nullptr || batch_->death_us() != death_us) {
      Flush();
      const Death death = {death_us, now_us_, Cause::kExpiring};
      batch_ = std::make_shared<EventBatch>(cursor_->feed_->name_, death);
    }
    batch_->Add(event);
    bytes_left -= bytes;
    --events_left;
    return true;
  }

  bool empty() const { return batch_ == nullptr && batches_.empty(); }

  void TakeTo(Chunk* chunk) {
    Flush();
    for (auto& batch : batches_) chunk->batches.push_back(std::move(batch));
  }

 private:
  void Flush() {
    if (batch_ == nullptr) return;
    batch_->ShrinkToFit();
    batches_.push_back(std::exchange(batch_, nullptr));
  }

  const ExpiringCursor* const cursor_;
  const int64_t now_us_;
  std::shared_ptr<EventBatch> batch_;
  std::vector<std::shared_ptr<const EventBatch>> batches_;

 public:
  int64_t bytes_left;
  int events_left = kMaxEventBatchEvents;
  bool full = false;
};

ExpiringCursor::~ExpiringCursor() { feed_->Remove(this); }

ExpiringCursor::Chunk ExpiringCursor::Read(int64_t now_us, int64_t max_bytes) {
  Chunk chunk;
  chunk.closed = feed_->closed();
  if (!chunk.closed) {
    if (state_ == State::kIdle && next_round_us_ <= now_us) BeginRound(now_us);
    Writer writer(
        this, now_us,
        std::min(max_bytes, static_cast<int64_t>(kMaxEventBatchBytes)));
    for (int steps = 0;
         steps < kMaxReadSteps && state_ != State::kIdle && !writer.full;
         ++steps) {
      switch (state_) {
        case State::kIdle:
          break;
        case State::kLook:
          if (feed_->FinishLook(look_, now_us)) state_ = State::kTake;
          break;
        case State::kTake:
          TakeStep(now_us, &writer, &chunk);
          break;
        case State::kList:
          ListStep(now_us);
          break;
        case State::kRead:
          ReadStep(now_us, &writer);
          break;
      }
    }
    writer.TakeTo(&chunk);
    chunk.more = state_ != State::kIdle;
  }
  chunk.watermark_us = watermark_us_;
  return chunk;
}

void ExpiringCursor::BeginRound(int64_t now_us) {
  round_us_ = now_us;
  round_until_us_ = now_us + options_.lead_us;
  next_round_us_ =
      now_us + std::min(feed_->shards_->front()->width_us(), kMaxSoonUs);
  feed_->Track(this, std::max(round_until_us_, front_us_));
  look_ = feed_->NextLook();
  state_ = State::kLook;
}

void ExpiringCursor::TakeStep(int64_t now_us, Writer* writer, Chunk* chunk) {
  // Events of the feed come before those that the cursor reads by itself.
  if (!writer->empty()) {
    writer->full = true;
    return;
  }
  int64_t until_us;
  const ExpiringFeed::Taking taking =
      feed_->Take(this, front_us_, now_us, &writer->events_left,
                  &writer->bytes_left, &chunk->batches, &until_us);
  chunk->shared = chunk->batches.size();
  part_begin_us_ = front_us_;
  switch (taking) {
    case ExpiringFeed::Taking::kSome:
      writer->full = true;
      return;
    case ExpiringFeed::Taking::kAll:
      since_us_ = until_us;
      break;
    case ExpiringFeed::Taking::kMissed:
      again_until_us_ = front_us_;
      again_since_us_ = until_us;
      if (front_us_ == INT64_MIN) since_us_ = until_us;
      part_begin_us_ = now_us;
      break;
  }
  list_shard_ = 0;
  state_ = State::kList;
}

// Lists the generations of one shard that come next.
void ExpiringCursor::ListStep(int64_t now_us) {
  const ExpiringFeed::Shards& shards = *feed_->shards_;
  std::array<int64_t, Shard::kMaxLiveDeaths> deaths;
  const size_t most =
      std::clamp(kMaxWork / shards.size(), kMinWork, deaths.size());
  if (list_shard_ == 0) part_end_us_ = round_until_us_;
  const size_t count =
      shards[list_shard_]->ListLive(part_begin_us_, round_until_us_, now_us,
                                    absl::MakeSpan(deaths.data(), most));
  for (const int64_t death_us : absl::MakeSpan(deaths.data(), count)) {
    if (death_us > round_until_us_) {
      next_round_us_ = std::min(next_round_us_, death_us - options_.lead_us);
    } else {
      work_.emplace_back(death_us, list_shard_);
    }
  }
  if (count == most) part_end_us_ = std::min(part_end_us_, deaths[count - 1]);
  if (++list_shard_ < shards.size()) return;
  // Beyond, some shards have more than they could list.
  std::sort(work_.begin(), work_.end());
  while (!work_.empty() && work_.back().first > part_end_us_) work_.pop_back();
  charge_.Set(static_cast<int64_t>(work_.capacity() * sizeof(Work)));
  work_done_ = 0;
  place_ = LivePosition();
  state_ = State::kRead;
}

void ExpiringCursor::ReadStep(int64_t now_us, Writer* writer) {
  if (work_done_ == work_.size()) {
    EndPart();
    return;
  }
  const auto [death_us, shard] = work_[work_done_];
  const int64_t since_us = death_us <= again_until_us_ ? since_us_ : INT64_MIN;
  const bool through = (*feed_->shards_)[shard]->ReadLive(
      death_us, now_us, &place_, [&, death = death_us](const Record& record) {
        return record.put_us < since_us || writer->Add(death, record.view());
      });
  if (!through) return;
  ++work_done_;
  place_ = LivePosition();
}

void ExpiringCursor::EndPart() {
  work_.clear();
  front_us_ = std::max(front_us_, part_end_us_);
  if (part_end_us_ < again_until_us_) {
    part_begin_us_ = part_end_us_;
    list_shard_ = 0;
    state_ = State::kList;
    return;
  }
  if (again_until_us_ != INT64_MIN) {
    since_us_ = again_since_us_;
    again_until_us_ = INT64_MIN;
  }
  if (part_end_us_ < round_until_us_) {
    look_ = feed_->NextLook();
    state_ = State::kLook;
    return;
  }
  watermark_us_ = std::max(watermark_us_, round_us_);
  std::vector<Work>().swap(work_);
  charge_.Set(0);
  state_ = State::kIdle;
}

}  // namespace timecache::server
