#include "server/rpc/peer/hosted_reader.h"

#include <algorithm>

#include "server/edge/response/open_streams.h"
#include "server/rpc/peer/peer_stream.h"

namespace timecache::server {

void HostedWake::Wake() {
  absl::MutexLock lock(&mu_);
  for (const auto& reader : readers_) hub_->Notify(reader);
}

void HostedWake::Add(std::shared_ptr<HostedReader> reader) {
  absl::MutexLock lock(&mu_);
  readers_.push_back(std::move(reader));
}

void HostedWake::Remove(const HostedReader* reader) {
  // Not destroyed under the lock.
  std::shared_ptr<HostedReader> removed;
  absl::MutexLock lock(&mu_);
  const auto it =
      std::find_if(readers_.begin(), readers_.end(),
                   [reader](const auto& each) { return each.get() == reader; });
  if (it == readers_.end()) return;
  removed = std::move(*it);
  readers_.erase(it);
}

HostedReader::HostedReader(Of of, std::unique_ptr<EventReader> reader,
                           std::weak_ptr<PeerStream> stream,
                           std::shared_ptr<HostedWake> wake, WatchHub* hub)
    : id_(of.id),
      name_(std::move(of.name)),
      fetches_(of.fetches),
      once_(of.once),
      part_(std::move(of.part)),
      stream_(std::move(stream)),
      wake_(std::move(wake)),
      hub_(hub),
      reader_(std::move(reader)),
      grants_(of.grants.begin(), of.grants.end()) {}

PeerChunk HostedReader::ReadFirst() {
  absl::MutexLock lock(&mu_);
  // That there is nothing is said as of now.
  if (once_) refresh_us_ = 1;
  // One that has nothing but its place is sent, too.
  PeerChunk first = ReadOnce().chunk;
  // What is being stored is there at the next read.
  if (once_ && part_ == nullptr && !first.chunk.storing) {
    reader_->StopReading();
    left_ = true;
    grants_.clear();
  }
  return first;
}

void HostedReader::Begin() {
  {
    absl::MutexLock lock(&mu_);
    if (reader_ == nullptr) return;
    begun_ = true;
    wake_->Add(shared_from_this());
  }
  // What came meanwhile.
  hub_->Notify(shared_from_this());
}

HostedReader::Read HostedReader::ReadOnce() {
  Read read;
  EventChunk& chunk = read.chunk.chunk;
  const bool granted = !grants_.empty();
  const PeerGrant grant = granted ? grants_.front() : PeerGrant{.events = 0};
  // The others see at the end of the read what it leaves to them.
  if (part_ != nullptr && part_->in_flight != nullptr && granted) {
    part_->in_flight->SetRoom(grant.events);
  }
  const int64_t now_us = hub_->clock()->NowUs();
  if (refresh_us_.has_value()) {
    reader_->RefreshWatermark(now_us, *refresh_us_);
    refresh_us_.reset();
    awaited_ = true;
  }
  chunk = reader_->Read(now_us, grant.events, grant.bytes);
  int64_t bytes = 0;
  for (size_t counted = 0; fetches_ && chunk.more;) {
    for (; counted < chunk.deliveries.size(); ++counted) {
      const Delivery& delivery = chunk.deliveries[counted];
      bytes +=
          static_cast<int64_t>(delivery.batch->encoded(delivery.index).size());
    }
    if (static_cast<int>(counted) >= grant.events || bytes >= grant.bytes) {
      break;
    }
    EventChunk next = reader_->Read(
        now_us, grant.events - static_cast<int>(counted), grant.bytes - bytes);
    next.lost += chunk.lost;
    next.deliveries.insert(next.deliveries.begin(), chunk.deliveries.begin(),
                           chunk.deliveries.end());
    next.more = next.more && next.deliveries.size() > counted;
    chunk = std::move(next);
  }
  if (chunk.closed) read.chunk.why_closed = reader_->WhyClosed();
  const bool content = read.chunk.has_content();
  // Someone waits for it; of several partitions the watermark is there once all
  // of them have been read.
  if (awaited_ && !chunk.more) {
    // Of a member in several partitions it is no news by itself.
    chunk.all_delivered |= part_ == nullptr;
    read.chunk.refresh = refresh_;
    awaited_ = false;
  }
  read.worth_sending = content || chunk.all_delivered ||
                       chunk.storing != storing_ || read.chunk.refresh > 0;
  if (read.worth_sending) storing_ = chunk.storing;
  if (part_ != nullptr) {
    read.chunk.answers = granted;
    read.worth_sending |= granted || chunk.more;
    if (granted) grants_.pop_front();
    read.chunk.held = Held();
    return read;
  }
  if (content) grants_.pop_front();
  // It is woken again only once it has found nothing.
  read.more = (content || chunk.more) && !grants_.empty();
  return read;
}

int HostedReader::Held() {
  if (part_->in_flight == nullptr) return 0;
  // First: what is settled from here on wakes it.
  part_->in_flight->AwaitRoom();
  held_ = part_->in_flight->held();
  return held_;
}

PeerChunk HostedReader::Notice() {
  PeerChunk notice;
  notice.notice = true;
  notice.may_have = part_->woken.exchange(false);
  notice.held = Held();
  return notice;
}

void HostedReader::OnFrame(peer::v1::FrameKind kind, absl::string_view body) {
  FieldReader fields(body);
  if (kind == peer::v1::FRAME_KIND_CLOSE) return Close();
  {
    absl::MutexLock lock(&mu_);
    if (reader_ == nullptr) return;
    switch (kind) {
      case peer::v1::FRAME_KIND_GRANT: {
        PeerGrant grant;
        fields(grant);
        if (fields.ok() && !left_ && grants_.size() < size_t{kMaxPeerChunks}) {
          grants_.push_back(grant);
        }
        break;
      }
      case peer::v1::FRAME_KIND_REFRESH: {
        int64_t max_age_us = 0;
        fields(max_age_us, refresh_);
        refresh_us_ = std::min(refresh_us_.value_or(max_age_us), max_age_us);
        break;
      }
      case peer::v1::FRAME_KIND_COUNT: {
        int64_t lateness_us = 0;
        uint64_t events = 0;
        fields(lateness_us, events);
        reader_->CountDelivery(lateness_us, events);
        return;
      }
      case peer::v1::FRAME_KIND_STOP:
        reader_->StopReading();
        left_ = true;
        grants_.clear();
        return;
      case peer::v1::FRAME_KIND_LEAVE: {
        StreamEnd end = StreamEnd::kByServer;
        fields(end);
        left_ = true;
        grants_.clear();
        reader_->Leave(hub_->clock()->NowUs(), end);
        return;
      }
      default:
        return;
    }
  }
  hub_->Notify(shared_from_this());
}

bool HostedReader::OnWake(Wake why) {
  Read read;
  absl::Status ends;
  {
    absl::MutexLock lock(&mu_);
    if (why == Wake::kDrain) draining_ = true;
    if (reader_ == nullptr || !begun_) return false;
    ends = WhyEnds(draining_);
    if (ends.ok()) {
      const bool part = part_ != nullptr && !left_;
      if (grants_.empty() && !part) return false;
      if (grants_.empty() && !refresh_us_.has_value()) {
        const int told = held_;
        read.chunk = Notice();
        read.worth_sending = read.chunk.may_have || held_ != told;
      } else {
        read = ReadOnce();
      }
      if (!read.more) {
        hub_->SetTimer(shared_from_this(), reader_->NextDueUs());
      }
    }
  }
  if (!ends.ok()) {
    read.chunk.chunk.closed = true;
    read.chunk.why_closed = ends;
    read.worth_sending = true;
  }
  if (read.worth_sending) Send(read.chunk);
  if (read.chunk.chunk.closed) Close();
  return read.more;
}

absl::Status HostedReader::WhyEnds(bool draining) const {
  const std::shared_ptr<PeerStream> stream = stream_.lock();
  if (stream == nullptr) return absl::OkStatus();
  absl::Status serves = stream->CheckService();
  return serves.ok() && draining ? OpenStreams::DrainingError() : serves;
}

void HostedReader::Send(const PeerChunk& chunk) {
  const std::shared_ptr<PeerStream> stream = stream_.lock();
  if (stream == nullptr) return;
  FieldWriter body;
  WriteChunk(chunk, &body);
  stream->Send({id_, peer::v1::FRAME_KIND_CHUNK,
                std::make_shared<const std::string>(body.Take())});
}

// What its member holds is returned: it was the node that went.
void HostedReader::Close() {
  std::unique_ptr<EventReader> reader;
  {
    absl::MutexLock lock(&mu_);
    reader = std::move(reader_);
    if (reader == nullptr) return;
    reader->Leave(hub_->clock()->NowUs(), StreamEnd::kByServer);
  }
  hub_->Remove(shared_from_this());
  wake_->Remove(this);
}

}  // namespace timecache::server
