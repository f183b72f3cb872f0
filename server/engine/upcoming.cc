#include "server/engine/upcoming.h"

#include <algorithm>
#include <array>

namespace timecache {

std::unique_ptr<Upcoming::Cursor> Upcoming::Subscribe(
    int64_t lead_us, std::function<void()> wake) {
  std::unique_ptr<Cursor> cursor(new Cursor(this, lead_us, std::move(wake)));
  absl::MutexLock lock(&mu_);
  cursors_.insert(cursor.get());
  return cursor;
}

void Upcoming::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  for (Cursor* cursor : cursors_) cursor->wake_();
}

int64_t Upcoming::cursors() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int64_t>(cursors_.size());
}

bool Upcoming::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

// Writes what one Read takes, a batch for each death.
class Upcoming::Cursor::Writer {
 public:
  Writer(const Upcoming* upcoming, int64_t now_us, int64_t max_bytes)
      : upcoming_(upcoming), now_us_(now_us), bytes_left_(max_bytes) {}

  // False if it has no room left for this.
  bool Add(int64_t death_us, const ExpiredEvent& event) {
    const auto bytes =
        static_cast<int64_t>(event.key.size() + event.value.size());
    full_ =
        events_ == kMaxEventBatchEvents || (events_ > 0 && bytes > bytes_left_);
    if (full_) return false;
    if (batch_ == nullptr || batch_->death_us() != death_us) {
      Flush();
      const Death death = {death_us, now_us_, Cause::kExpiring};
      batch_ = std::make_shared<EventBatch>(upcoming_->name_, death,
                                            upcoming_->format_);
    }
    batch_->Add(event);
    bytes_left_ -= bytes;
    ++events_;
    return true;
  }

  bool full() const { return full_; }

  std::vector<std::shared_ptr<const EventBatch>> Take() {
    Flush();
    return std::move(batches_);
  }

 private:
  void Flush() {
    if (batch_ == nullptr) return;
    batch_->ShrinkToFit();
    batches_.push_back(std::exchange(batch_, nullptr));
  }

  const Upcoming* const upcoming_;
  const int64_t now_us_;
  int64_t bytes_left_;
  int events_ = 0;
  bool full_ = false;
  std::shared_ptr<EventBatch> batch_;
  std::vector<std::shared_ptr<const EventBatch>> batches_;
};

Upcoming::Cursor::Cursor(Upcoming* upcoming, int64_t lead_us,
                         std::function<void()> wake)
    : upcoming_(upcoming),
      lead_us_(lead_us),
      wake_(std::move(wake)),
      places_(upcoming->shards_->size()) {}

Upcoming::Cursor::~Cursor() {
  absl::MutexLock lock(&upcoming_->mu_);
  upcoming_->cursors_.erase(this);
}

Upcoming::Chunk Upcoming::Cursor::Read(int64_t now_us, int64_t max_bytes) {
  Chunk chunk;
  chunk.closed = upcoming_->closed();
  if (!chunk.closed) {
    if (round_us_ == kNeverUs && next_round_us_ <= now_us) BeginRound(now_us);
    Writer writer(
        upcoming_, now_us,
        std::min(max_bytes, static_cast<int64_t>(kMaxEventBatchBytes)));
    for (int steps = 0;
         steps < kMaxReadSteps && round_us_ != kNeverUs && !writer.full();
         ++steps) {
      if (look_shard_ < places_.size()) {
        LookStep(now_us);
      } else if (work_done_ < work_.size()) {
        ReadStep(now_us, &writer);
      } else {
        watermark_us_ = std::max(watermark_us_, round_us_);
        round_us_ = kNeverUs;
      }
    }
    chunk.batches = writer.Take();
    chunk.more = round_us_ != kNeverUs;
  }
  chunk.watermark_us = watermark_us_;
  return chunk;
}

void Upcoming::Cursor::BeginRound(int64_t now_us) {
  round_us_ = now_us;
  next_round_us_ =
      now_us + std::min(upcoming_->shards_->front()->width_us(), kMaxSoonUs);
  look_shard_ = 0;
  look_death_us_ = now_us;
  work_.clear();
  work_done_ = 0;
}

// Looks at some generations of a shard: which of them come later, and which
// have something new.
void Upcoming::Cursor::LookStep(int64_t now_us) {
  const int64_t until_us = round_us_ + lead_us_;
  absl::btree_map<int64_t, LivePlace>& places = places_[look_shard_];
  const auto forget_before = [&](int64_t death_us) {
    places.erase(places.upper_bound(look_death_us_),
                 places.lower_bound(death_us));
  };
  if (look_death_us_ == round_us_) {
    places.erase(places.begin(), places.upper_bound(round_us_));
  }
  std::array<LiveMark, Shard::kMaxLiveMarks> marks;
  const size_t count = (*upcoming_->shards_)[look_shard_]->ListLive(
      look_death_us_, until_us, now_us, absl::MakeSpan(marks));
  for (const LiveMark& mark : absl::MakeSpan(marks.data(), count)) {
    // Those between are gone: if they come again, they begin anew.
    forget_before(mark.death_us);
    look_death_us_ = mark.death_us;
    if (mark.death_us > until_us) {
      next_round_us_ = std::min(next_round_us_, mark.death_us - lead_us_);
      break;
    }
    const LivePlace& place = places[mark.death_us];
    if (place.last != mark.last || place.open != mark.open) {
      work_.emplace_back(mark.death_us, look_shard_);
    }
  }
  if (count == marks.size() && look_death_us_ <= until_us) return;
  if (look_death_us_ <= until_us) forget_before(kNeverUs);
  look_death_us_ = round_us_;
  if (++look_shard_ == places_.size()) std::sort(work_.begin(), work_.end());
}

void Upcoming::Cursor::ReadStep(int64_t now_us, Writer* writer) {
  const auto [death_us, index] = work_[work_done_];
  Shard* const shard = (*upcoming_->shards_)[index].get();
  const bool through = shard->ReadLive(
      death_us, now_us, &places_[index][death_us],
      [&, death = death_us](const Record& record) {
        return writer->Add(death, {record.key, record.value, record.version,
                                   record.put_us, record.deadline_us()});
      });
  if (through) ++work_done_;
}

}  // namespace timecache
