#include "client/cpp/watcher.h"

#include <algorithm>
#include <utility>

#include "client/cpp/call.h"
#include "client/cpp/channel.h"
#include "client/cpp/connection.h"
#include "client/cpp/convert.h"
#include "client/cpp/status.h"
#include "client/cpp/watch_stream.h"

namespace timecache::inline client {
namespace {

v1::WatchExpiredRequest MakeRequest(const Client& client,
                                    const WatchOptions& options) {
  v1::WatchExpiredRequest request;
  for (const std::string& ns : options.namespaces) request.add_namespaces(ns);
  if (options.namespaces.empty()) {
    request.add_namespaces(client.options().default_namespace);
  }
  request.set_key_prefix(options.key_prefix);
  request.set_keys_only(options.keys_only);
  if (options.heartbeat_interval) {
    *request.mutable_heartbeat_interval() =
        ToProto(*options.heartbeat_interval);
  }
  request.set_fail_on_loss(options.fail_on_loss);
  if (options.lead_time) {
    *request.mutable_lead_time() = ToProto(*options.lead_time);
  }
  request.set_group(options.group);
  if (options.max_in_flight) {
    request.set_max_in_flight(*options.max_in_flight);
  }
  request.set_max_message_bytes(
      options.max_message_bytes.value_or(kMaxMessageBytes));
  return request;
}

}  // namespace

Watcher::Watcher(const Client& client, WatchOptions options)
    : options_(std::move(options)),
      channel_(client.channel()),
      stub_(v1::TimeCacheService::NewStub(channel_)),
      request_(MakeRequest(client, options_)),
      backoff_(options_.min_pause, options_.max_pause) {
  for (const std::string& ns : request_.namespaces()) positions_[ns];
  for (const auto& [ns, token] : options_.resume_tokens) {
    positions_[ns].resume_token = token;
  }
  PlaceRequest();
}

Watcher::~Watcher() = default;

bool Watcher::cancelled() const {
  absl::MutexLock lock(&mu_);
  return cancelled_;
}

void Watcher::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  cancel_.SignalAll();
  if (stream_ != nullptr) stream_->Cancel();
}

absl::StatusOr<WatchBatch> Watcher::Next(absl::Duration timeout) {
  const SteadyTime give_up_at = SteadyAfter(timeout);
  while (true) {
    if (cancelled()) return absl::CancelledError("the watch was cancelled");
    if (!end_.ok()) return end_;
    if (stream_ == nullptr && !Open(give_up_at)) {
      if (cancelled()) continue;
      return absl::DeadlineExceededError("no connection within the timeout");
    }
    const SteadyTime silent_at =
        SteadyAfter(options_.silence_max, stream_->waiting_since());
    switch (stream_->Await(std::min(give_up_at, silent_at))) {
      case WatchStream::Event::kMessage:
        return Accept();
      case WatchStream::Event::kEnd:
        HandleEnd(FromGrpcStatus(stream_->status()));
        break;
      case WatchStream::Event::kTimeout:
        if (SteadyNow() < silent_at) {
          return absl::DeadlineExceededError("nothing came within the timeout");
        }
        HandleEnd(absl::UnavailableError("the server fell silent"));
        break;
    }
  }
}

// Waits for the pause to be over, and opens the stream. False if that would be
// after `give_up_at`, or was cancelled.
bool Watcher::Open(SteadyTime give_up_at) {
  if (!AwaitAttempt(give_up_at)) return false;
  // Without a connection the stream fails, and says why there is none.
  Connect(*channel_, std::min(SteadyAfter(kConnectPatience), give_up_at));
  absl::MutexLock lock(&mu_);
  if (cancelled_) return false;
  stream_ = std::make_unique<WatchStream>(*stub_, request_);
  return true;
}

bool Watcher::AwaitAttempt(SteadyTime give_up_at) {
  absl::MutexLock lock(&mu_);
  while (!cancelled_ && SteadyNow() < next_attempt_at_) {
    if (SteadyNow() >= give_up_at) return false;
    cancel_.WaitUntil(&mu_, std::min(next_attempt_at_, give_up_at));
  }
  return !cancelled_;
}

// Says where to begin. Namespaces without a token all begin alike: where one
// needs all of its log, another that has not begun gets more than was asked,
// never less. So does a group that has to be made again.
void Watcher::PlaceRequest() {
  bool from_earliest = options_.start == WatchStart::kEarliest ||
                       (established_ && !options_.group.empty());
  request_.clear_resume_tokens();
  for (const auto& [ns, position] : positions_) {
    if (position.log_changed) from_earliest = true;
    if (position.resume_token.empty()) continue;
    request_.add_resume_tokens(position.resume_token);
  }
  request_.set_start(from_earliest ? v1::WATCH_START_EARLIEST
                                   : v1::WATCH_START_UNSPECIFIED);
}

WatchBatch Watcher::Accept() {
  v1::WatchExpiredResponse& message = stream_->message();
  established_ = true;
  backoff_.Reset();
  Position& position = positions_[message.namespace_()];
  WatchBatch batch = {
      .ns = message.namespace_(),
      .events = {},
      .watermark = FromProto(message.watermark()),
      .lost = message.lost(),
      .resume_token = message.resume_token(),
      .reconnected = std::exchange(position.broken, false),
      .log_changed = std::exchange(position.log_changed, false)};
  if (batch.log_changed) batch.missed_after = position.watermark;
  batch.events.reserve(message.events_size());
  for (v1::ExpiredEvent& event : *message.mutable_events()) {
    if (event.omitted_value_bytes() > 0) ++batch.omitted_values;
    batch.events.push_back(FromProto(std::move(event)));
  }
  position.watermark = batch.watermark;
  position.resume_token = batch.resume_token;
  return batch;
}

void Watcher::HandleEnd(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    stream_.reset();
    if (cancelled_) return;
  }
  if (BeginAnew(status)) return PlaceRequest();
  if (!IsBreak(status) && !TakeSmallerMessages(status)) {
    end_ =
        status.ok() ? absl::UnavailableError("the server is stopping") : status;
    return;
  }
  for (auto& [ns, position] : positions_) position.broken = established_;
  PlaceRequest();
  next_attempt_at_ = SteadyAfter(backoff_.Next());
  if (options_.on_break) options_.on_break(status);
}

// Whether the server has refused the token of a namespace, which has another
// log now, and the watch may begin that one anew. Each time a token goes, so
// that this comes to an end.
bool Watcher::BeginAnew(const absl::Status& status) {
  if (options_.fail_on_loss) return false;
  const std::optional<std::string> reason = ErrorReason(status);
  if (reason != "LOG_CHANGED" && reason != "RESUME_POINT_AHEAD") return false;
  const auto it =
      positions_.find(ErrorMetadata(status, "namespace").value_or(""));
  if (it == positions_.end() || it->second.resume_token.empty()) return false;
  it->second.resume_token.clear();
  it->second.log_changed = true;
  return true;
}

// Whether a message came that is too large for the channel, and the watch may
// ask for smaller ones: what a channel of the caller's making takes is not
// known.
bool Watcher::TakeSmallerMessages(const absl::Status& status) {
  if (!IsMessageTooLarge(status) ||
      request_.max_message_bytes() <= kGrpcMaxMessageBytes) {
    return false;
  }
  request_.set_max_message_bytes(kGrpcMaxMessageBytes);
  return true;
}

// A server that ends the stream with a reason of its own means it, but where
// that passes.
bool Watcher::IsBreak(const absl::Status& status) const {
  if (!established_ && !options_.wait_for_server) return false;
  return status.ok() || IsConnectionLost(status) ||
         ErrorReason(status) == "MAX_WATCHERS";
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
