#include "server/rpc/watch/watch_stream.h"

#include <algorithm>
#include <utility>

#include "server/rpc/watch/watch_message.h"

namespace timecache::server {
namespace {

// A heartbeat that is due, with the watermark of now.
constexpr int64_t kExactly = INT64_MIN + 1;

// The engine knows one namespace; a watch has several.
std::string WatchFieldPath(const std::string& field) {
  return field == "namespace" ? "namespaces" : field;
}

}  // namespace

WatchStream* WatchStream::StartWith(ReadRequest read_request,
                                    const CallGate& gate, const Method& method,
                                    grpc::CallbackServerContext* context,
                                    WatchHub* hub, Store* store) {
  WatchStream* const stream = Keep(std::shared_ptr<WatchStream>(
      new WatchStream(gate, method, context, hub)));
  const absl::Status status = stream->Prepare(read_request);
  if (status.ok()) {
    stream->OpenReaders(store);
  } else {
    absl::MutexLock lock(&stream->mu_);
    stream->End(status);
  }
  return stream;
}

absl::Status WatchStream::Prepare(ReadRequest read_request) {
  absl::Status status = call_.Identify();
  if (!status.ok()) return status;
  absl::StatusOr<WatchRequest> valid = read_request();
  if (!valid.ok()) return valid.status();
  request_ = *std::move(valid);
  status = Authorize();
  if (!status.ok()) return status;
  request_.filter =
      hub_->filters()->Find(request_.key_prefix, request_.keys_only);
  needs_ = {request_.namespaces.front(),
            static_cast<int64_t>(request_.namespaces.size()),
            request_.heartbeat_us};
  // First, so that one watcher too many leaves no group behind. Until open_ is
  // set nothing wakes the stream: it may still fail to open.
  return hub_->Add(self(), needs_);
}

void WatchStream::OpenReaders(Store* store) {
  const Store::Wake wake = [weak = std::weak_ptr<WatchStream>(self())] {
    const std::shared_ptr<WatchStream> stream = weak.lock();
    if (stream != nullptr) stream->WakeUp(stream);
  };
  const std::vector<std::string>& names = request_.namespaces;
  if (!request_.group.empty()) {
    store->JoinGroups(names,
                      {request_.group, request_.max_in_flight, request_.start,
                       call_.Principal(), call_.Peer()},
                      wake, WhenOpen());
  } else if (request_.changes) {
    store->OpenChanges(names, request_.start, request_.resume_points, wake,
                       WhenOpen());
  } else if (request_.lead_us > 0) {
    store->OpenExpiring(
        names, {request_.lead_us, request_.key_prefix, request_.keys_only},
        wake, WhenOpen());
  } else {
    store->OpenLogs(names, request_.start, request_.resume_points, wake,
                    WhenOpen());
  }
}

// On any thread. The stream may have ended since, and its call be over: then
// the readers end with the completion, outside of the lock.
Store::DoneWith<Store::Readers> WatchStream::WhenOpen() {
  return [this, kept = self()](absl::StatusOr<Store::Readers> readers) {
    absl::MutexLock lock(&mu_);
    if (ended()) return;
    if (!readers.ok()) return End(readers.status());
    for (size_t i = 0; i < readers->size(); ++i) {
      // The first message is due now: it confirms the watch.
      sources_.push_back(
          {{request_.namespaces[i], &request_, std::move((*readers)[i])},
           INT64_MIN,
           0});
    }
    writable_us_ = hub_->clock()->NowUs();
    // Earlier wake-ups are handled now.
    open_ = true;
    if (draining_) DrainSources();
    EndWithoutAccess();
    if (!ended()) PumpOrQueue();
  };
}

absl::Status WatchStream::Authorize() {
  const Verbs verbs = request_.group.empty() ? Verbs(config::v1::VERB_WATCH)
                                             : Verbs{config::v1::VERB_WATCH,
                                                     config::v1::VERB_SETTLE};
  absl::Status status;
  for (const std::string& name : request_.namespaces) {
    status = call_.Authorize(verbs, name);
    if (!status.ok()) break;
  }
  return status;
}

// A message in flight may still be read, for a while.
void WatchStream::EndWithoutAccess() {
  if (ended()) return;
  if (!withdrawn_.ok()) {
    if (hub_->clock()->NowUs() >= withdrawn_us_ + kWithdrawalGraceUs) {
      context_->TryCancel();
    }
    return;
  }
  absl::Status status = CheckAccess();
  if (status.ok()) return;
  if (writing_) {
    withdrawn_ = std::move(status);
    withdrawn_us_ = hub_->clock()->NowUs();
    hub_->SetTimer(self(), withdrawn_us_ + kWithdrawalGraceUs);
  } else {
    End(status);
  }
}

bool WatchStream::OnWake(Wake why) {
  absl::MutexLock lock(&mu_);
  if (why == Wake::kDrain) draining_ = true;
  if (has_waited_.exchange(false)) waiting_for_room_ = false;
  if (ended() || !open_) return false;
  EndWithoutAccess();
  if (ended()) return false;
  if (why == Wake::kDrain) DrainSources();
  if (why != Wake::kReady) {
    for (Source& source : sources_) source.heartbeat_us = kExactly;
  }
  return Pump();
}

void WatchStream::DrainSources() {
  for (Source& source : sources_) source.events.OnDrain();
}

void WatchStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  writable_us_ = hub_->clock()->NowUs();
  message_.Clear();
  if (ended()) return;
  if (!ok || cancelled_) {
    End(!withdrawn_.ok() ? withdrawn_
                         : absl::CancelledError("the watcher is gone"));
    return;
  }
  call_.CountSent();
  if (!withdrawn_.ok()) {
    End(withdrawn_);
    return;
  }
  PumpOrQueue();
}

void WatchStream::OnCancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  if (ended()) return;
  // A write that is in flight fails now, and then ends the stream.
  if (writing_) {
    EndSources(StreamEnd::kByClient);
  } else {
    End(absl::CancelledError("the watcher is gone"));
  }
}

// From any thread, under the locks of what it watches. `self` is this stream.
void WatchStream::WakeUp(const std::shared_ptr<WatchStream>& self) {
  absl::MutexLock lock(&wake_mu_);
  if (!has_left_) hub_->Notify(self);
}

// From here on the hub may end before the stream, which the store keeps until
// it has completed its call.
void WatchStream::Leave() {
  {
    absl::MutexLock lock(&wake_mu_);
    has_left_ = true;
  }
  hub_->Remove(self());
  // Not destroyed under the lock.
  std::vector<Source> sources;
  std::shared_ptr<const EventFilter> filter;
  absl::MutexLock lock(&mu_);
  sources.swap(sources_);
  filter.swap(request_.filter);
}

// Whether a message is cheap to compose, as it refers to existing bytes or
// copies some: then gRPC's thread does it, without waiting for a turn.
bool WatchStream::IsLight() const {
  return request_.lead_us == 0 && request_.key_prefix.empty() &&
         !request_.keys_only;
}

void WatchStream::PumpOrQueue() {
  if (!IsLight() || Pump()) hub_->Notify(self());
}

// Writes the next message, if there is one and none is in flight: sources take
// turns. Returns whether there is more to do before there can be one.
bool WatchStream::Pump() {
  if (writing_ || ended() || WaitsForRoom()) return false;
  const int64_t now_us = hub_->clock()->NowUs();
  for (size_t i = 0; i < sources_.size() && !ended(); ++i) {
    Source& source = sources_[turn_];
    turn_ = (turn_ + 1) % sources_.size();
    switch (Compose(&source, now_us)) {
      case Composed::kNothing:
        break;
      case Composed::kMore:
        return true;
      case Composed::kMessage:
        writing_ = true;
        StartWrite(&message_);
        source.events.OnWritten(hub_->clock()->NowUs(), writable_us_);
        return false;
    }
  }
  if (ended()) return false;
  if (draining_) {
    End(absl::OkStatus());
  } else {
    SetTimer();
  }
  return false;
}

// The sources are not read while its connection has no room: their cursors do
// not move.
bool WatchStream::WaitsForRoom() {
  if (waiting_for_room_) return true;
  if (account_.get() == nullptr || !account_->MustWait()) return false;
  waiting_for_room_ = true;
  // Not this stream's own work: the ledger's thread serves all that wait.
  account_->WhenRoom(
      [weak = std::weak_ptr<WatchStream>(self())](const absl::Status&) {
        const std::shared_ptr<WatchStream> stream = weak.lock();
        if (stream == nullptr) return;
        stream->has_waited_.store(true);
        stream->WakeUp(stream);
      });
  return true;
}

// Fills message_ from the source, if it has something to send.
WatchStream::Composed WatchStream::Compose(Source* source, int64_t now_us) {
  const bool heartbeat = source->heartbeat_us <= now_us;
  if (heartbeat) {
    // The last watermark is exact, and one that was asked for. Others may be
    // shared with other streams; half a heartbeat old at most, so that each
    // exceeds the previous one.
    const int64_t max_age_us =
        draining_ ? 0
        : source->heartbeat_us == kExactly
            ? 1
            : std::min(kMaxWatermarkAgeUs, request_.heartbeat_us / 2);
    source->events.RefreshWatermark(now_us, max_age_us);
  }
  WatchMessage message(request_.max_message_bytes, account_.get());
  const WatchSource::Reading reading = source->events.Read(now_us, &message);
  const bool has_events = !message.empty() || message.lost > 0;
  if (!reading.end.ok() && !has_events) {
    End(reading.end);
    return Composed::kNothing;
  }
  if (!reading.more) {
    if (!has_events && !heartbeat && !reading.news) {
      return Composed::kNothing;
    }
    // Only now: a heartbeat is due until the watermark after all events is
    // sent, even if the last of them are filtered out.
    source->heartbeat_us =
        draining_ ? kNeverUs : now_us + hub_->HeartbeatUs(needs_);
  } else if (!has_events && ++source->empty_reads < kMaxEmptyReads) {
    return Composed::kMore;
  }
  source->empty_reads = 0;
  // A group's loss is reported once for all of its members.
  if (message.lost > 0 && request_.group.empty()) {
    call_.CountLost(source->events.name(), message.lost);
  }
  // A filter that no event passes still sends watermarks.
  message_ = message.Take(source->events.name());
  return Composed::kMessage;
}

void WatchStream::SetTimer() {
  int64_t due_us = kNeverUs;
  for (const Source& source : sources_) {
    due_us = std::min({due_us, source.heartbeat_us, source.events.NextDueUs()});
  }
  hub_->SetTimer(self(), due_us);
}

void WatchStream::End(const absl::Status& status) {
  EndSources(absl::IsCancelled(status) ? StreamEnd::kByClient
                                       : StreamEnd::kByServer);
  EndCall(status, WatchFieldPath);
}

void WatchStream::EndSources(StreamEnd end) {
  const int64_t now_us = hub_->clock()->NowUs();
  for (Source& source : sources_) source.events.OnEnd(now_us, end);
}

}  // namespace timecache::server
