#include "server/peer/remote_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

// Where the reader of this chunk stands.
EventChunk PlaceOf(const EventChunk& chunk) {
  EventChunk place;
  place.watermark_us = chunk.watermark_us;
  place.delivered_us = chunk.delivered_us;
  place.arrived_us = chunk.arrived_us;
  place.point = chunk.point;
  place.points = chunk.points;
  place.storing = chunk.storing;
  place.closed = chunk.closed;
  return place;
}

bool Fits(const EventChunk& chunk, int max_events, int64_t max_bytes) {
  for (const auto& batch : chunk.batches) {
    max_events -= batch->size();
    max_bytes -= static_cast<int64_t>(batch->encoded().size());
  }
  for (const Delivery& delivery : chunk.deliveries) {
    --max_events;
    max_bytes -=
        static_cast<int64_t>(delivery.batch->encoded(delivery.index).size());
  }
  return max_events >= 0 && max_bytes >= 0;
}

std::string BodyOf(const auto&... fields) {
  FieldWriter writer;
  writer(fields...);
  return writer.Take();
}

}  // namespace

bool ReceivedChunks::Begin(PeerChunk first) {
  absl::MutexLock lock(&mu_);
  if (of_part()) {
    may_have_ = first.chunk.more || first.chunk.at_limit;
    const bool granted = !first.chunk.deliveries.empty();
    chunks_.push_back(std::move(first));
    return !granted;
  }
  granted_ = of_log() ? kMaxPeerChunks : 1;
  if (first.has_content()) --granted_;
  chunks_.push_back(std::move(first));
  return granted_ >= 0;
}

// A group whose stream ends takes nothing more.
void ReceivedChunks::Ask(int max_events, int64_t max_bytes,
                         std::optional<PeerGrant>* grant) {
  if (max_events <= 0 || place_.closed || granted_ > 0) return;
  if (of_part()) {
    if (!std::exchange(may_have_, false)) return;
    if (in_flight_ != nullptr) {
      max_events = std::min(max_events, in_flight_->room());
      in_flight_->Add(max_events);
      lent_ += max_events;
    }
    asked_ = max_events;
  }
  *grant = PeerGrant{max_events, std::min(max_bytes, kMaxPeerChunkBytes)};
  ++granted_;
}

EventChunk ReceivedChunks::TakePlace(int max_events, int64_t max_bytes,
                                     std::optional<PeerGrant>* grant) {
  idle_ = true;
  EventChunk place = PlaceOf(place_);
  // A group whose stream ends takes nothing more.
  if (!of_log()) Ask(max_events, max_bytes, grant);
  // A fetch waits for what it has asked for.
  place.storing |= kind_ == PeerReaderKind::kPartOfFetch && granted_ > 0;
  return place;
}

EventChunk ReceivedChunks::Take(int max_events, int64_t max_bytes,
                                bool at_least_one,
                                std::optional<PeerGrant>* grant) {
  absl::MutexLock lock(&mu_);
  if (chunks_.empty() || (!of_log() && max_events == 0)) {
    return TakePlace(max_events, max_bytes, grant);
  }
  if (!at_least_one && !Fits(chunks_.front().chunk, max_events, max_bytes)) {
    EventChunk place = PlaceOf(place_);
    place.more = true;
    return place;
  }
  PeerChunk chunk = std::move(chunks_.front());
  chunks_.pop_front();
  if (of_log() && chunk.has_content()) {
    *grant = PeerGrant();
    ++granted_;
  }
  place_ = PlaceOf(chunk.chunk);
  chunk.chunk.refreshed = chunk.refresh == refresh_ && refresh_ > 0;
  if (chunk.chunk.closed) why_closed_ = std::move(chunk.why_closed);
  if (!chunk.chunk.deliveries.empty()) delivered_ = true;
  // A fetch is answered by what it has: what comes later would be unasked for.
  chunk.chunk.more = kind_ != PeerReaderKind::kFetch && !chunks_.empty();
  // What may be there is asked for: at once where the chunk has none itself, as newer
  // places may come between this read and each next one.
  if (of_part() && may_have_ && !chunk.chunk.at_limit) {
    if (chunk.chunk.deliveries.empty() && !chunk.chunk.more) {
      Ask(max_events, max_bytes, grant);
    }
    chunk.chunk.more |= may_have_ && granted_ == 0;
  }
  // A fetch waits for what it has asked for, also where this is not its answer.
  chunk.chunk.storing |= kind_ == PeerReaderKind::kPartOfFetch && granted_ > 0;
  idle_ = !chunk.chunk.more;
  return std::move(chunk.chunk);
}

uint64_t ReceivedChunks::NextRefresh() {
  absl::MutexLock lock(&mu_);
  return ++refresh_;
}

absl::Status ReceivedChunks::why_closed() const {
  absl::MutexLock lock(&mu_);
  return why_closed_;
}

bool ReceivedChunks::delivered() const {
  absl::MutexLock lock(&mu_);
  return delivered_;
}

void ReceivedChunks::OnChunk(absl::string_view body) {
  PeerChunk chunk;
  FieldReader reader(body);
  if (!ReadChunk(name_, &reader, &chunk)) {
    chunk = PeerChunk();
    chunk.chunk.closed = true;
    chunk.why_closed =
        absl::InternalError("a node sent events that another cannot read");
  }
  Add(std::move(chunk));
}

void ReceivedChunks::OnBroken() {
  PeerChunk end;
  {
    absl::MutexLock lock(&mu_);
    end.chunk = PlaceOf(chunks_.empty() ? place_ : chunks_.back().chunk);
  }
  end.chunk.closed = true;
  end.why_closed =
      ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kNotOwner,
                      absl::StrCat("the node that owned namespace ", name_,
                                   " is not reached any more: watch again"));
  Add(std::move(end));
}

int ReceivedChunks::Settle(const PeerChunk& chunk) {
  if (chunk.answers) granted_ = asked_ = 0;
  may_have_ |=
      chunk.notice ? chunk.may_have : chunk.chunk.more || chunk.chunk.at_limit;
  if (in_flight_ == nullptr) return 0;
  const int settled = lent_ - chunk.held - asked_;
  lent_ -= settled;
  return settled;
}

void ReceivedChunks::Add(PeerChunk chunk) {
  int settled = 0;
  bool wakes = false;
  {
    absl::MutexLock lock(&mu_);
    if (of_part() && !chunk.chunk.closed) settled = Settle(chunk);
    if (!chunk.notice) Push(std::move(chunk));
    wakes = (!chunks_.empty() || may_have_) && std::exchange(idle_, false);
  }
  if (settled > 0) in_flight_->Remove(settled);
  if (wakes) wake_();
}

void ReceivedChunks::Push(PeerChunk chunk) {
  if (!of_part() && chunk.has_content() && !chunk.chunk.closed) --granted_;
  // Only the newest place counts.
  if (!chunks_.empty() && !chunks_.back().has_content()) {
    chunk.chunk.all_delivered |= chunks_.back().chunk.all_delivered;
    chunk.refresh = std::max(chunk.refresh, chunks_.back().refresh);
    chunks_.pop_back();
  }
  chunks_.push_back(std::move(chunk));
}

EventChunk RemoteReader::Read(int64_t /*now_us*/, int max_events,
                              int64_t max_bytes, bool at_least_one) {
  std::optional<PeerGrant> grant;
  EventChunk chunk = chunks_->Take(max_events, max_bytes, at_least_one, &grant);
  if (grant.has_value()) {
    link_->Send(id_, peer::v1::FRAME_KIND_GRANT, BodyOf(*grant));
  }
  return chunk;
}

void RemoteReader::RefreshWatermark(int64_t /*now_us*/, int64_t max_age_us) {
  link_->Send(id_, peer::v1::FRAME_KIND_REFRESH,
              BodyOf(max_age_us, chunks_->NextRefresh()));
}

void RemoteReader::CountDelivery(int64_t lateness_us, uint64_t events) {
  if (chunks_->kind() != PeerReaderKind::kLog) return;
  link_->Send(id_, peer::v1::FRAME_KIND_COUNT, BodyOf(lateness_us, events));
}

void RemoteReader::StopReading() {
  link_->Send(id_, peer::v1::FRAME_KIND_STOP);
}

void RemoteReader::Leave(int64_t /*now_us*/, StreamEnd end) {
  // What nobody was given can be nobody's doing, and is nobody's.
  if (!chunks_->delivered()) end = StreamEnd::kByServer;
  link_->Send(id_, peer::v1::FRAME_KIND_LEAVE, BodyOf(end));
}

}  // namespace timecache::server
