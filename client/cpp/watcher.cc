#include "client/cpp/watcher.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/convert.h"
#include "client/cpp/status.h"
#include "client/cpp/watch_stream.h"

namespace timecache::inline client {
namespace {

v1::WatchStart ToWire(WatchStart start) {
  return start == WatchStart::kEarliest ? v1::WATCH_START_EARLIEST
                                        : v1::WATCH_START_NOW;
}

v1::WatchExpiredRequest MakeRequest(const Client& client,
                                    const WatchOptions& options) {
  v1::WatchExpiredRequest request;
  for (const std::string& ns : options.namespaces) request.add_namespaces(ns);
  if (options.namespaces.empty()) {
    request.add_namespaces(client.options().default_namespace);
  }
  request.set_start(ToWire(options.start));
  request.set_key_prefix(options.key_prefix);
  request.set_keys_only(options.keys_only);
  if (options.heartbeat_interval) {
    *request.mutable_heartbeat_interval() =
        ToProto(*options.heartbeat_interval);
  }
  return request;
}

// The pause, shortened at random by up to half: many watchers of one server
// that restarts do not come back all at once.
absl::Duration Jittered(absl::Duration pause) {
  thread_local std::minstd_rand generator{std::random_device()()};
  return pause * std::uniform_real_distribution<double>(0.5, 1.0)(generator);
}

}  // namespace

Watcher::Watcher(const Client& client, WatchOptions options)
    : options_(std::move(options)),
      stub_(v1::TimeCacheService::NewStub(client.channel())),
      request_(MakeRequest(client, options_)),
      pause_(options_.min_pause) {}

Watcher::~Watcher() = default;

bool Watcher::cancelled() const {
  absl::MutexLock lock(&mu_);
  return cancelled_;
}

void Watcher::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  if (stream_ != nullptr) stream_->Cancel();
}

absl::StatusOr<WatchBatch> Watcher::Next(absl::Duration timeout) {
  const absl::Time give_up_at = absl::Now() + timeout;
  while (true) {
    if (cancelled()) return absl::CancelledError("the watch was cancelled");
    if (!end_.ok()) return end_;
    if (stream_ == nullptr && !Open(give_up_at)) {
      if (cancelled()) continue;
      return absl::DeadlineExceededError("no connection within the timeout");
    }
    const absl::Time silent_at =
        stream_->waiting_since() + options_.silence_max;
    switch (stream_->Await(std::min(give_up_at, silent_at))) {
      case WatchStream::Event::kMessage:
        return Accept();
      case WatchStream::Event::kEnd:
        HandleEnd(FromGrpcStatus(stream_->status()));
        break;
      case WatchStream::Event::kTimeout:
        if (absl::Now() < silent_at) {
          return absl::DeadlineExceededError("nothing came within the timeout");
        }
        HandleEnd(absl::UnavailableError("the server fell silent"));
        break;
    }
  }
}

// Waits for the pause to be over, and opens the stream. False if that would be
// after `give_up_at`, or was cancelled.
bool Watcher::Open(absl::Time give_up_at) {
  absl::MutexLock lock(&mu_);
  if (mu_.AwaitWithDeadline(absl::Condition(&cancelled_),
                            std::min(next_attempt_at_, give_up_at))) {
    return false;
  }
  if (absl::Now() < next_attempt_at_) return false;
  stream_ = std::make_unique<WatchStream>(*stub_, request_);
  return true;
}

WatchBatch Watcher::Accept() {
  v1::WatchExpiredResponse& message = stream_->message();
  established_ = true;
  pause_ = options_.min_pause;
  Position& position = positions_[message.namespace_()];
  WatchBatch batch = {.ns = message.namespace_(),
                      .events = {},
                      .watermark = FromProto(message.watermark()),
                      .lost = message.lost()};
  if (position.broken) {
    batch.reconnected = true;
    batch.missed_after = std::max(position.watermark, position.replay_until);
    position.broken = false;
    position.replay_until = options_.restart == WatchStart::kEarliest
                                ? batch.missed_after
                                : absl::InfinitePast();
  }
  batch.events.reserve(message.events_size());
  for (v1::ExpiredEvent& proto : *message.mutable_events()) {
    ExpiredEvent event = FromProto(std::move(proto));
    if (!IsReplayed(event, position)) batch.events.push_back(std::move(event));
  }
  if (batch.watermark >= position.replay_until) {
    position.replay_until = absl::InfinitePast();
  }
  position.watermark = batch.watermark;
  return batch;
}

// All that died before the watermark of the break has come already. What died
// at that very watermark may not have: a bucket can be killed by hand while a
// virtual clock stands still.
bool Watcher::IsReplayed(const ExpiredEvent& event, Position& position) {
  if (event.delivered_at < position.replay_until) {
    // Another life of the server, whose clock began anew: all of it is news.
    position.replay_until = absl::InfinitePast();
  }
  return event.death_time < position.replay_until;
}

void Watcher::HandleEnd(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    stream_.reset();
    if (cancelled_) return;
  }
  if (!IsBreak(status)) {
    end_ =
        status.ok() ? absl::UnavailableError("the server is stopping") : status;
    return;
  }
  request_.set_start(ToWire(established_ ? options_.restart : options_.start));
  for (const std::string& ns : request_.namespaces()) {
    positions_[ns].broken = established_;
  }
  next_attempt_at_ = absl::Now() + Jittered(pause_);
  pause_ = std::min(pause_ * 2, options_.max_pause);
  if (options_.on_break) options_.on_break(status);
}

// A server that ends the stream with a reason of its own means it, but for the
// two that pass. Without a reason it is the connection that broke, which gRPC
// reports by one of several codes.
bool Watcher::IsBreak(const absl::Status& status) const {
  if (!established_ && !options_.wait_for_server) return false;
  if (status.ok() || absl::IsUnavailable(status)) return true;
  const std::optional<std::string> reason = ErrorReason(status);
  if (reason) return *reason == "MAX_WATCHERS";
  return absl::IsInternal(status) || absl::IsUnknown(status) ||
         absl::IsCancelled(status);
}

WatchThread::WatchThread(const Client& client, WatchOptions options,
                         std::function<void(WatchBatch batch)> on_batch,
                         std::function<void(const absl::Status& why)> on_end)
    : watcher_(client, std::move(options)) {
  thread_ = std::thread(
      [this, on_batch = std::move(on_batch), on_end = std::move(on_end)] {
        while (true) {
          absl::StatusOr<WatchBatch> batch = watcher_.Next();
          if (!batch.ok()) return on_end(batch.status());
          on_batch(*std::move(batch));
        }
      });
}

WatchThread::~WatchThread() {
  watcher_.Cancel();
  thread_.join();
}

}  // namespace timecache::inline client
