#include "server/rpc/watch/fetch_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/edge/response/open_streams.h"
#include "server/rpc/call/request.h"
#include "server/rpc/watch/watch_source.h"

namespace timecache::server {

FetchCall::FetchCall(const CallGate& gate, grpc::CallbackServerContext* context,
                     WatchHub* hub, grpc::ByteBuffer* answer)
    : CallStream(gate, methods::kFetchExpired, context),
      hub_(hub),
      answer_(answer) {}

FetchCall* FetchCall::Start(const CallGate& gate,
                            grpc::CallbackServerContext* context, WatchHub* hub,
                            Store* store, const grpc::ByteBuffer& bytes,
                            grpc::ByteBuffer* answer) {
  FetchCall* const call = Keep(
      std::shared_ptr<FetchCall>(new FetchCall(gate, context, hub, answer)));
  const absl::Status status = call->Prepare(bytes);
  if (status.ok()) {
    call->Join(store);
  } else {
    absl::MutexLock lock(&call->mu_);
    call->End(status);
  }
  return call;
}

absl::Status FetchCall::Prepare(const grpc::ByteBuffer& bytes) {
  absl::Status status = call_.BeginRequest(bytes.Length());
  if (status.ok()) status = call_.Identify();
  if (!status.ok()) return status;
  v1::FetchExpiredRequest from;
  status = TakeRequest(bytes, &from);
  if (!status.ok()) return status;
  request_.namespace_name = from.namespace_();
  status = Authorize();
  if (!status.ok()) return status;
  absl::StatusOr<FetchRequest> request = ToFetchRequest(from);
  if (!request.ok()) return request.status();
  request_ = *std::move(request);
  {
    absl::MutexLock lock(&mu_);
    message_.SetLimits(request_.max_message_bytes, account_.get());
  }
  // First, so that one call too many leaves no group behind.
  return hub_->Add(
      self(), {.flow = request_.namespace_name, .waits = request_.wait_us > 0});
}

absl::Status FetchCall::Authorize() {
  return call_.Authorize({config::v1::VERB_WATCH, config::v1::VERB_SETTLE},
                         request_.namespace_name);
}

void FetchCall::Join(Store* store) {
  store->JoinGroups(
      {&request_.namespace_name, 1},
      {.group = request_.group,
       .max_in_flight = request_.max_events,
       .start = request_.start,
       .created_by = call_.Principal(),
       .peer = {},
       .fetches = true,
       .waits = request_.wait_us > 0},
      [weak = std::weak_ptr<FetchCall>(self())] {
        const std::shared_ptr<FetchCall> call = weak.lock();
        if (call != nullptr) call->WakeUp(call);
      },
      WhenJoined());
}

// As WatchStream::WhenOpen.
Store::DoneWith<Store::Readers> FetchCall::WhenJoined() {
  return [this, kept = self()](absl::StatusOr<Store::Readers> readers) {
    absl::MutexLock lock(&mu_);
    if (ended()) return;
    if (!readers.ok()) return End(readers.status());
    reader_ = std::move(readers->front());
    deadline_us_ = hub_->clock()->NowUs() + request_.wait_us;
    if (Pump(/*settled=*/false)) hub_->Notify(self());
  };
}

bool FetchCall::OnWake(Wake why) {
  absl::MutexLock lock(&mu_);
  if (why == Wake::kDrain) draining_ = true;
  if (ended() || reader_ == nullptr) return false;
  absl::Status status = CheckAccess();
  if (status.ok() && has_waited_.exchange(false)) {
    waiting_for_room_ = false;
    absl::MutexLock wake_lock(&wake_mu_);
    status = room_;
  }
  if (!status.ok()) {
    End(status);
    return false;
  }
  // What died until a moment of a virtual clock is there when it asks for
  // heartbeats.
  return Pump(/*settled=*/why == Wake::kHeartbeat);
}

void FetchCall::OnCancel() {
  absl::MutexLock lock(&mu_);
  if (!ended()) End(absl::CancelledError("the caller is gone"));
}

// From any thread, under the locks of what it waits for. `self` is this call.
void FetchCall::WakeUp(const std::shared_ptr<FetchCall>& self) {
  absl::MutexLock lock(&wake_mu_);
  if (!has_left_) hub_->Notify(self);
}

void FetchCall::Leave() {
  {
    absl::MutexLock lock(&wake_mu_);
    has_left_ = true;
  }
  hub_->Remove(self());
  // Not destroyed under the lock.
  std::unique_ptr<EventReader> reader;
  absl::MutexLock lock(&mu_);
  reader.swap(reader_);
  if (reader == nullptr) return;
  const bool arrived = answered_ && !context_->IsCancelled();
  reader->Leave(hub_->clock()->NowUs(),
                arrived ? StreamEnd::kAnswered : StreamEnd::kByServer);
}

// Answers, if there is something to answer now. `settled`: all that has died is
// in the group. Returns whether there is more to take.
bool FetchCall::Pump(bool settled) {
  if (draining_ && events_ == 0) {
    End(OpenStreams::DrainingError());
    return false;
  }
  if (WaitsForRoom()) return false;
  const int64_t now_us = hub_->clock()->NowUs();
  EventChunk chunk = Read(now_us);
  if (chunk.storing) {
    // By now it may be stored.
    if (!chunk.more) AwaitStored(now_us);
    return chunk.more;
  }
  storing_us_ = 0;
  if (events_ == 0 && message_.lost == 0) {
    if (chunk.closed) {
      End(reader_->WhyClosed());
    } else {
      AwaitMore(chunk, now_us, settled);
    }
    return false;
  }
  const bool full =
      events_ >= request_.max_events || bytes_ >= WatchSource::kMaxMessageBytes;
  if (!chunk.deliveries.empty() && chunk.more && !full) return true;
  Answer();
  return false;
}

// As WatchStream's, but that an error ends the call.
bool FetchCall::WaitsForRoom() {
  if (waiting_for_room_) return true;
  if (account_ == nullptr || !account_->MustWait()) return false;
  waiting_for_room_ = true;
  account_->WhenRoom(
      [weak = std::weak_ptr<FetchCall>(self())](const absl::Status& room) {
        const std::shared_ptr<FetchCall> call = weak.lock();
        if (call == nullptr) return;
        {
          absl::MutexLock lock(&call->wake_mu_);
          call->room_ = room;
        }
        call->has_waited_.store(true);
        call->WakeUp(call);
      });
  return true;
}

EventChunk FetchCall::ReadOnce(int64_t now_us) {
  EventChunk chunk = reader_->Read(now_us, request_.max_events - events_,
                                   WatchSource::kMaxMessageBytes - bytes_,
                                   /*at_least_one=*/events_ == 0);
  message_.lost += chunk.lost;
  return chunk;
}

EventChunk FetchCall::Read(int64_t now_us) {
  EventChunk chunk = ReadOnce(now_us);
  const bool nothing = chunk.deliveries.empty() && message_.lost == 0;
  if (nothing && events_ == 0 && !chunk.storing && now_us >= deadline_us_) {
    // The answer is that there are none: as of now.
    reader_->RefreshWatermark(now_us, 1);
    chunk = ReadOnce(now_us);
  }
  for (const Delivery& delivery : chunk.deliveries) {
    bytes_ +=
        static_cast<int64_t>(delivery.batch->encoded(delivery.index).size());
    message_.AddDelivery(delivery, request_.keys_only, kFetchedEvents);
  }
  events_ += static_cast<int>(chunk.deliveries.size());
  message_.watermark_us = chunk.watermark_us;
  message_.delivered_us = chunk.delivered_us;
  return chunk;
}

// The reader has events that are its own only once they are stored.
void FetchCall::AwaitStored(int64_t now_us) {
  if (storing_us_ == 0) storing_us_ = now_us;
  if (now_us >= storing_us_ + kMaxStoringUs) {
    End(ErrorWithReason(
        absl::StatusCode::kResourceExhausted, Reason::kDiskFull,
        absl::StrCat("the journal of namespace ", request_.namespace_name,
                     " stores nothing now: its disk is full, or too slow")));
    return;
  }
  hub_->SetTimer(self(), now_us + kLookAgainUs);
}

void FetchCall::AwaitMore(const EventChunk& chunk, int64_t now_us,
                          bool settled) {
  if (now_us < deadline_us_) {
    hub_->SetTimer(self(), deadline_us_);
  } else if (settled || request_.wait_us == 0 ||
             chunk.arrived_us >= deadline_us_ ||
             now_us >= deadline_us_ + kMaxOvertimeUs) {
    Answer();
  } else {
    hub_->SetTimer(self(), now_us + kLookAgainUs);
  }
}

void FetchCall::Answer() {
  reader_->StopReading();
  answered_ = true;
  *answer_ = message_.TakeFetched();
  EndCall(absl::OkStatus());
}

void FetchCall::End(const absl::Status& status) {
  if (reader_ != nullptr) {
    reader_->Leave(hub_->clock()->NowUs(), StreamEnd::kByServer);
  }
  EndCall(status);
}

}  // namespace timecache::server
