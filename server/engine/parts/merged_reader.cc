#include "server/engine/parts/merged_reader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/status/status.h"

namespace timecache::server {
namespace {

// What a Read may still pass on.
struct Room {
  int events;
  int64_t bytes;
  bool at_least_one;

  bool any() const { return at_least_one || (events > 0 && bytes > 0); }
  void Use(size_t used_events, size_t used_bytes) {
    events -= static_cast<int>(used_events);
    bytes -= static_cast<int64_t>(used_bytes);
    if (used_events > 0) at_least_one = false;
  }
};

class MergedReader : public EventReader {
 public:
  MergedReader(PartReaders parts, std::shared_ptr<ReadyPartitions> wakes)
      : wakes_(std::move(wakes)),
        all_(~PartitionSet{0} >> (64 - parts.size())) {
    for (auto& reader : parts) {
      if (reader->refreshes_later()) later_ |= SetOf(parts_.size());
      parts_.push_back({std::move(reader)});
    }
    // The first reads come without wakes.
    ready_ = all_;
  }
  ~MergedReader() override { wakes_->StopAwaiting(); }

  EventChunk Read(int64_t now_us, int max_events, int64_t max_bytes,
                  bool at_least_one) final {
    ready_ |= wakes_->Take();
    ready_ &= ~closed_;
    EventChunk chunk;
    const bool refreshes = refreshing_ != 0;
    ReadParts(now_us, {max_events, max_bytes, at_least_one}, &chunk);
    refreshing_ &= ~closed_;
    const int64_t watermark_us = Least(&Part::watermark_us);
    chunk.all_delivered |=
        refreshes && refreshing_ == 0 && watermark_us > refreshed_from_us_;
    watermark_us_ = watermark_us;
    chunk.watermark_us = watermark_us;
    chunk.storing = storing_ != 0;
    chunk.closed = IsClosed();
    chunk.more = !chunk.closed && (Readable() != 0 || !Await());
    // News is of a reader that has read all that there is.
    untold_ |= chunk.all_delivered;
    chunk.all_delivered = !chunk.more && std::exchange(untold_, false);
    return chunk;
  }

  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override {
    for (const Part& part : parts_) {
      part.reader->RefreshWatermark(now_us, max_age_us);
    }
    ready_ = all_ & ~closed_;
    // One that comes before the last is done is told with it.
    if (refreshing_ == 0) refreshed_from_us_ = watermark_us_;
    refreshing_ = later_ & ~closed_;
  }
  bool refreshes_later() const override { return later_ != 0; }

  absl::Status WhyClosed() const override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if ((closed_ & SetOf(i)) != 0) return parts_[i].reader->WhyClosed();
    }
    return absl::OkStatus();
  }

 protected:
  virtual bool in_group() const { return false; }

  struct Part {
    std::unique_ptr<EventReader> reader;
    // As its last chunk said.
    LogPoint point = {};
    int64_t watermark_us = 0;
    int64_t delivered_us = 0;
    int64_t arrived_us = 0;
    // Whether these are known.
    bool known = false;
  };

  // Reads what is ready, as far as there is room.
  virtual void ReadParts(int64_t now_us, Room room, EventChunk* chunk) = 0;
  virtual bool IsClosed() const { return closed_ != 0; }
  // Of what is ready, what may be read now.
  virtual PartitionSet Readable() const { return ready_; }
  // There is nothing more: false if there is by now.
  virtual bool Await() { return wakes_->Await(); }

  // Calls `read(i)` for the partitions that are ready, in their turn, until it
  // returns false.
  template <typename Fn>
  void InTurn(const Fn& read) {
    const size_t first = turn_;
    bool any = false;
    for (size_t step = 0; step < parts_.size(); ++step) {
      const size_t i = (first + step) % parts_.size();
      if ((ready_ & SetOf(i)) == 0) continue;
      if (!any) turn_ = (i + 1) % parts_.size();
      any = true;
      if (!read(i)) return;
    }
  }

  // Adds what it reads of the partition to `*chunk`. Returns whether there may be
  // more for which a member has no room.
  bool ReadPart(size_t i, int64_t now_us, Room* room, EventChunk* chunk) {
    Part& part = parts_[i];
    EventChunk read = part.reader->Read(now_us, std::max(room->events, 0),
                                        std::max<int64_t>(room->bytes, 0),
                                        room->at_least_one);
    Put(i, read.more && !read.closed, &ready_);
    Put(i, read.storing, &storing_);
    if (read.closed) closed_ |= SetOf(i);
    // Of a group that is gone a chunk says no more than that.
    if (!read.closed || read.watermark_us > part.watermark_us) {
      part.point = read.point;
      part.watermark_us = read.watermark_us;
      part.delivered_us = read.delivered_us;
      part.arrived_us = std::max(part.arrived_us, read.arrived_us);
      part.known = true;
    }
    chunk->shared += read.shared;
    for (auto& batch : read.batches) {
      room->Use(static_cast<size_t>(batch->size()), batch->encoded().size());
      chunk->batches.push_back(std::move(batch));
    }
    for (Delivery& delivery : read.deliveries) {
      room->Use(1, delivery.batch->encoded(delivery.index).size());
      delivery.partition = static_cast<uint8_t>(i);
      chunk->deliveries.push_back(std::move(delivery));
    }
    chunk->lost += read.lost;
    std::move(read.lost_events.begin(), read.lost_events.end(),
              std::back_inserter(chunk->lost_events));
    chunk->undoable |= read.undoable;
    // That one part was refreshed is no news.
    if (read.refreshed) Put(i, false, &refreshing_);
    chunk->all_delivered |=
        read.all_delivered && (!read.refreshed || in_group());
    return read.at_limit && !read.closed;
  }

  int64_t Least(int64_t Part::*time) const {
    int64_t least_us = kNeverUs;
    for (const Part& part : parts_) least_us = std::min(least_us, part.*time);
    return least_us;
  }
  static void Put(size_t i, bool in, PartitionSet* to) {
    *to = in ? *to | SetOf(i) : *to & ~SetOf(i);
  }

  const std::shared_ptr<ReadyPartitions> wakes_;
  const PartitionSet all_;
  std::vector<Part> parts_;
  // Of these, those to be read; those that wait for the journal; those of which
  // nothing comes any more.
  PartitionSet ready_ = 0;
  PartitionSet storing_ = 0;
  PartitionSet closed_ = 0;
  // Those that refresh later, and of these those that were asked to, and have not yet.
  PartitionSet later_ = 0;
  PartitionSet refreshing_ = 0;
  // As the last chunk said; and as it did before they were asked.
  int64_t watermark_us_ = 0;
  int64_t refreshed_from_us_ = 0;
  // What was read while there was more, and is news.
  bool untold_ = false;
  // The partition that has the next turn.
  size_t turn_ = 0;
};

class MergedLogReader final : public MergedReader {
 public:
  MergedLogReader(PartReaders parts, std::shared_ptr<ReadyPartitions> wakes,
                  const std::vector<LogPoint>& points)
      : MergedReader(std::move(parts), std::move(wakes)) {
    for (size_t i = 0; i < points.size(); ++i) {
      parts_[i].point = points[i];
      parts_[i].watermark_us = points[i].watermark_us;
      parts_[i].known = true;
    }
  }

  // The namespace's statistics are the sum of its partitions'.
  void CountDelivery(int64_t lateness_us, uint64_t events) override {
    parts_.front().reader->CountDelivery(lateness_us, events);
  }

 private:
  void ReadParts(int64_t now_us, Room room, EventChunk* chunk) override {
    InTurn([&](size_t i) {
      // A chunk says where all of them stand: one that is not known yet is read
      // without room, too.
      if (room.any() || !parts_[i].known) ReadPart(i, now_us, &room, chunk);
      return true;
    });
    std::stable_sort(chunk->batches.begin(), chunk->batches.end(),
                     [](const auto& a, const auto& b) {
                       return a->death_us() < b->death_us();
                     });
    chunk->points.reserve(parts_.size());
    for (const Part& part : parts_) chunk->points.push_back(part.point);
    // The others are read to their ends, too.
    if (closed_ != 0 && !closing_) {
      closing_ = true;
      ready_ = all_ & ~closed_;
    }
  }
  bool IsClosed() const override {
    return closed_ != 0 && ready_ == 0 && storing_ == 0;
  }

  bool closing_ = false;
};

class MergedGroupReader final : public MergedReader {
 public:
  MergedGroupReader(PartReaders parts, std::shared_ptr<ReadyPartitions> wakes,
                    std::shared_ptr<InFlightLimit> in_flight)
      : MergedReader(std::move(parts), std::move(wakes)),
        in_flight_(std::move(in_flight)) {}

  int64_t NextDueUs() const override {
    // What refreshes later wakes it.
    return has_news_ && refreshing_ == 0 ? NewsDueUs() : kNeverUs;
  }
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override {
    if (refreshing_ == 0) delivered_from_us_ = delivered_us_;
    MergedReader::RefreshWatermark(now_us, max_age_us);
  }
  void StopReading() override {
    for (const Part& part : parts_) part.reader->StopReading();
  }
  void Leave(int64_t now_us, StreamEnd end) override {
    // What it returns makes room that it does not need.
    wakes_->StopAwaiting();
    for (const Part& part : parts_) part.reader->Leave(now_us, end);
  }

 private:
  bool in_group() const override { return true; }

  void ReadParts(int64_t now_us, Room room, EventChunk* chunk) override {
    const bool refreshes = refreshing_ != 0;
    const PartitionSet passed_by = std::exchange(blocked_, 0) & ~ready_;
    ready_ |= passed_by & ~closed_;
    const int most = std::min(room.events, kMaxTaken);
    room.events = most;
    const auto take = [&](size_t i) {
      Put(i, ReadPart(i, now_us, &room, chunk), &blocked_);
      return true;
    };
    InTurn([&](size_t i) {
      if ((Readable() & SetOf(i)) == 0) return true;
      const bool full = in_flight_ != nullptr && in_flight_->room() == 0;
      if (!full && most > 0 && (room.events <= 0 || room.bytes <= 0)) {
        return false;
      }
      // A group has to know that the member takes nothing now. One that was
      // passed by does.
      if (!full || (passed_by & SetOf(i)) == 0) return take(i);
      Put(i, false, &ready_);
      Put(i, true, &blocked_);
      return true;
    });
    has_news_ |= std::exchange(chunk->all_delivered, false);
    chunk->all_delivered = refreshes && IsRefreshedNews();
    if (in_flight_ != nullptr && has_news_ && ready_ == 0 && refreshing_ == 0 &&
        now_us >= NewsDueUs()) {
      has_news_ = false;
      news_us_ = std::max(news_us_, now_us) + kAllDeliveredUs;
      RefreshWatermark(now_us, 1);
      blocked_ = 0;
      const bool tells = chunk->all_delivered;
      InTurn(take);
      chunk->all_delivered = tells || IsRefreshedNews();
    }
    delivered_us_ = Least(&Part::delivered_us);
    chunk->delivered_us = delivered_us_;
    chunk->arrived_us = Least(&Part::arrived_us);
    std::stable_sort(chunk->deliveries.begin(), chunk->deliveries.end(),
                     [](const Delivery& a, const Delivery& b) {
                       return a.batch->death_us() < b.batch->death_us();
                     });
  }

  // Whether all are refreshed, and more is delivered than was said before.
  bool IsRefreshedNews() const {
    return refreshing_ == 0 && Least(&Part::delivered_us) > delivered_from_us_;
  }
  // A fetch that waits for what a partition has for it takes no others, which may be
  // too many.
  PartitionSet Readable() const override {
    return in_flight_ == nullptr && storing_ != 0 ? ready_ & storing_ : ready_;
  }
  int64_t NewsDueUs() const {
    return news_us_ - (kAllDeliveredAtOnce - 1) * kAllDeliveredUs;
  }

  bool Await() override {
    if (!MergedReader::Await()) return false;
    // After that, so that no room is missed.
    if (blocked_ == 0 || in_flight_->AwaitRoom()) return true;
    wakes_->StopAwaiting();
    return false;
  }

  // Null of a fetch.
  const std::shared_ptr<InFlightLimit> in_flight_;
  // Partitions that may have events for which there was no room.
  PartitionSet blocked_ = 0;
  // As the last chunk said; and as it did before the refresh.
  int64_t delivered_us_ = 0;
  int64_t delivered_from_us_ = 0;
  // All that some partition had is delivered, which has not been said.
  bool has_news_ = false;
  // When it would be said next if it were said kAllDeliveredUs apart.
  int64_t news_us_ = 0;
};

class MergedExpiringReader final : public MergedReader {
 public:
  using MergedReader::MergedReader;

  int64_t NextDueUs() const override {
    int64_t due_us = kNeverUs;
    for (const Part& part : parts_) {
      due_us = std::min(due_us, part.reader->NextDueUs());
    }
    return due_us;
  }

 private:
  void ReadParts(int64_t now_us, Room room, EventChunk* chunk) override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].reader->NextDueUs() <= now_us) ready_ |= SetOf(i);
    }
    ready_ &= ~closed_;
    InTurn([&](size_t i) {
      ReadPart(i, now_us, &room, chunk);
      return chunk->batches.empty() && (ready_ & SetOf(i)) == 0;
    });
  }
};

}  // namespace

std::unique_ptr<EventReader> MergeLogs(PartReaders parts,
                                       std::shared_ptr<ReadyPartitions> ready,
                                       const std::vector<LogPoint>& points) {
  return std::make_unique<MergedLogReader>(std::move(parts), std::move(ready),
                                           points);
}

std::unique_ptr<EventReader> MergeMembers(
    PartReaders parts, std::shared_ptr<ReadyPartitions> ready,
    std::shared_ptr<InFlightLimit> in_flight) {
  return std::make_unique<MergedGroupReader>(std::move(parts), std::move(ready),
                                             std::move(in_flight));
}

std::unique_ptr<EventReader> MergeExpiring(
    PartReaders parts, std::shared_ptr<ReadyPartitions> ready) {
  return std::make_unique<MergedExpiringReader>(std::move(parts),
                                                std::move(ready));
}

}  // namespace timecache::server
