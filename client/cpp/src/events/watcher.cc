#include "timecache/watcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/events/watch_stream.h"
#include "client/cpp/src/rpc/backoff.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "server/base/steady_cond_var.h"
#include "timecache/channel.h"
#include "timecache/status.h"

namespace timecache {
namespace {

WatchOptions Checked(WatchOptions options, const Client& client) {
  if (options.namespaces.empty()) {
    options.namespaces = {client.options().default_namespace};
  }
  return options;
}

// The calls' requests cannot express options that exclude each other.
absl::Status CheckTogether(const WatchOptions& options) {
  const bool has_group = !options.group.empty();
  if (options.max_in_flight && !has_group) {
    return absl::InvalidArgumentError("max_in_flight goes with group only");
  }
  if (options.changes && (has_group || options.lead_time)) {
    return absl::InvalidArgumentError(
        "changes does not go with group or lead_time");
  }
  if (!has_group && !options.lead_time) return absl::OkStatus();
  const std::string what = has_group ? "group" : "lead_time";
  const auto not_with = [&what](absl::string_view other) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " does not go with ", other));
  };
  if (has_group && options.lead_time) return not_with("lead_time");
  if (!options.resume_tokens.empty()) return not_with("resume_tokens");
  if (options.fail_on_loss) return not_with("fail_on_loss");
  if (has_group && !options.key_prefix.empty()) return not_with("key_prefix");
  if (!has_group && options.start != WatchStart::kNow) return not_with("start");
  return absl::OkStatus();
}

// The fields that every kind of request has.
template <typename Request>
Request CommonRequest(const WatchOptions& options, uint32_t max_message_bytes) {
  Request request;
  for (const std::string& ns : options.namespaces) request.add_namespaces(ns);
  request.set_keys_only(options.keys_only);
  if (options.heartbeat_interval) {
    *request.mutable_heartbeat_interval() =
        ToProto(*options.heartbeat_interval);
  }
  request.set_max_message_bytes(max_message_bytes);
  return request;
}

v1::WatchStart StartOf(bool from_earliest) {
  return from_earliest ? v1::WATCH_START_EARLIEST : v1::WATCH_START_UNSPECIFIED;
}

}  // namespace

class Watcher::State {
 public:
  State(const Client& client, WatchOptions options);

  absl::StatusOr<WatchBatch> Next(absl::Duration timeout);
  void Cancel();

 private:
  struct Position {
    // Of the last batch.
    absl::Time watermark = absl::InfinitePast();
    std::string resume_token;
    // No batch since the last break, or since the log was another.
    bool broken = false;
    bool log_changed = false;
  };

  bool Open(SteadyTime give_up_at);
  bool AwaitAttempt(SteadyTime give_up_at);
  std::unique_ptr<WatchStream> MakeStream() const;
  template <typename Request>
  std::unique_ptr<WatchStream> ResumeStream() const;
  WatchBatch Accept();
  void HandleEnd(const absl::Status& status);
  bool TriesElsewhere(const absl::Status& status);
  bool BeginAnew(const absl::Status& status);
  bool TakeSmallerMessages(const absl::Status& status);
  bool IsBreak(const absl::Status& status) const;
  bool cancelled() const;

  // Constant after construction.
  const WatchOptions options_;
  const std::shared_ptr<Client::Core> core_;
  const absl::Duration silence_max_;

  // Touched by Next alone.
  Endpoint* endpoint_ = nullptr;  // Of the last stream.
  size_t unreached_ = 0;          // Addresses, before the first batch.
  uint32_t max_message_bytes_;
  absl::Status end_;          // What the watch ended with; OK while it goes on.
  bool established_ = false;  // Whether any batch has come.
  bool delivered_ = false;    // Whether one has come on this stream.
  SteadyTime next_attempt_at_ = SteadyTime::min();
  Backoff backoff_;
  Backoff not_owner_{kMinNotOwnerPause, kMaxNotOwnerPause};
  std::map<std::string, Position> positions_;  // One for each namespace.

  mutable absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  SteadyCondVar cancel_;
  // Written by Next under mu_, read by it without, by Cancel with it.
  std::unique_ptr<WatchStream> stream_;
};

Watcher::State::State(const Client& client, WatchOptions options)
    : options_(Checked(std::move(options), client)),
      core_(Client::Core::Of(client)),
      silence_max_(SilenceMax(options_, core_->endpoints.size())),
      max_message_bytes_(options_.max_message_bytes.value_or(kMaxMessageBytes)),
      end_(core_->endpoints.error().ok() ? CheckTogether(options_)
                                         : core_->endpoints.error()),
      backoff_(options_.min_pause, options_.max_pause) {
  for (const std::string& ns : options_.namespaces) positions_[ns];
  for (const auto& [ns, token] : options_.resume_tokens) {
    positions_[ns].resume_token = token;
  }
}

bool Watcher::State::cancelled() const {
  absl::MutexLock lock(&mu_);
  return cancelled_;
}

void Watcher::State::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  cancel_.SignalAll();
  if (stream_ != nullptr) stream_->Cancel();
}

absl::StatusOr<WatchBatch> Watcher::State::Next(absl::Duration timeout) {
  const SteadyTime give_up_at = SteadyAfter(timeout);
  while (true) {
    if (cancelled()) return absl::CancelledError("the watch was cancelled");
    if (!end_.ok()) return end_;
    if (stream_ == nullptr && !Open(give_up_at)) {
      if (cancelled()) continue;
      return absl::DeadlineExceededError("no connection within the timeout");
    }
    const SteadyTime silent_at =
        SteadyAfter(silence_max_, stream_->waiting_since());
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
bool Watcher::State::Open(SteadyTime give_up_at) {
  if (!AwaitAttempt(give_up_at)) return false;
  // Without a connection the stream fails with the reason.
  endpoint_ = &core_->endpoints.current();
  Connect(*endpoint_->channel,
          std::min(SteadyAfter(kConnectPatience), give_up_at),
          core_->endpoints.size() > 1);
  absl::MutexLock lock(&mu_);
  if (cancelled_) return false;
  stream_ = MakeStream();
  delivered_ = false;
  return true;
}

bool Watcher::State::AwaitAttempt(SteadyTime give_up_at) {
  absl::MutexLock lock(&mu_);
  while (!cancelled_ && SteadyNow() < next_attempt_at_) {
    if (SteadyNow() >= give_up_at) return false;
    cancel_.WaitUntil(&mu_, std::min(next_attempt_at_, give_up_at));
  }
  return !cancelled_;
}

// Starts where the last one has ended.
std::unique_ptr<WatchStream> Watcher::State::MakeStream() const {
  if (options_.lead_time) {
    auto request =
        CommonRequest<v1::WatchExpiringRequest>(options_, max_message_bytes_);
    *request.mutable_lead_time() = ToProto(*options_.lead_time);
    request.set_key_prefix(options_.key_prefix);
    return std::make_unique<WatchStream>(endpoint_->cache, request);
  }
  if (!options_.group.empty()) {
    auto request =
        CommonRequest<v1::ConsumeExpiredRequest>(options_, max_message_bytes_);
    request.set_group(options_.group);
    // A group that has to be created again misses no event.
    request.set_start(
        StartOf(established_ || options_.start == WatchStart::kEarliest));
    if (options_.max_in_flight) {
      request.set_max_in_flight(*options_.max_in_flight);
    }
    return std::make_unique<WatchStream>(endpoint_->cache, request);
  }
  return options_.changes ? ResumeStream<v1::WatchChangesRequest>()
                          : ResumeStream<v1::WatchExpiredRequest>();
}

template <typename Request>
std::unique_ptr<WatchStream> Watcher::State::ResumeStream() const {
  auto request = CommonRequest<Request>(options_, max_message_bytes_);
  request.set_key_prefix(options_.key_prefix);
  request.set_fail_on_loss(options_.fail_on_loss);
  // All namespaces without a token start alike: if one needs all of its log,
  // another that has not started gets more than requested, never less.
  bool from_earliest = options_.start == WatchStart::kEarliest;
  for (const auto& [ns, position] : positions_) {
    if (position.log_changed) from_earliest = true;
    if (position.resume_token.empty()) continue;
    request.add_resume_tokens(position.resume_token);
  }
  request.set_start(StartOf(from_earliest));
  return std::make_unique<WatchStream>(endpoint_->cache, request);
}

WatchBatch Watcher::State::Accept() {
  WatchBatch batch = stream_->Take();
  established_ = true;
  delivered_ = true;
  backoff_.Reset();
  not_owner_.Reset();
  Position& position = positions_[batch.ns];
  batch.reconnected = std::exchange(position.broken, false);
  batch.log_changed = std::exchange(position.log_changed, false);
  if (batch.log_changed) batch.missed_after = position.watermark;
  position.watermark = batch.watermark;
  position.resume_token = batch.resume_token;
  return batch;
}

void Watcher::State::HandleEnd(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    stream_.reset();
    if (cancelled_) return;
  }
  core_->endpoints.MoveOn(*endpoint_, status);
  if (BeginAnew(status)) return;
  if (!delivered_ && TriesElsewhere(status)) return;
  if (!IsBreak(status) && !TakeSmallerMessages(status)) {
    end_ =
        status.ok() ? absl::UnavailableError("the server is stopping") : status;
    return;
  }
  for (auto& [ns, position] : positions_) position.broken = established_;
  next_attempt_at_ = SteadyAfter(backoff_.Next());
  if (options_.on_break) options_.on_break(status);
}

// Whether a stream that has brought nothing is begun elsewhere: its node was
// not the owner, or the watch begins and has not tried each address yet. Of a
// stream before it the break has been reported.
bool Watcher::State::TriesElsewhere(const absl::Status& status) {
  if (IsNotOwner(status)) {
    unreached_ = 0;
    next_attempt_at_ = SteadyAfter(not_owner_.Next());
    return true;
  }
  return !established_ && !options_.wait_for_server &&
         IsConnectionLost(status) && ++unreached_ < core_->endpoints.size();
}

// Whether the server has refused the token of a namespace, whose log has
// changed, and the watch may start that one again. Each time a token is
// removed, so that this terminates.
bool Watcher::State::BeginAnew(const absl::Status& status) {
  if (options_.fail_on_loss) return false;
  if (!HasReason(status, ErrorReason::kLogChanged) &&
      !HasReason(status, ErrorReason::kResumePointAhead)) {
    return false;
  }
  const auto it =
      positions_.find(ErrorMetadata(status, "namespace").value_or(""));
  if (it == positions_.end() || it->second.resume_token.empty()) return false;
  it->second.resume_token.clear();
  it->second.log_changed = true;
  return true;
}

// Whether a message was too large for the channel, and the watch may ask for
// smaller ones: the limit of a channel of the caller is unknown.
bool Watcher::State::TakeSmallerMessages(const absl::Status& status) {
  if (!IsMessageTooLarge(status) ||
      max_message_bytes_ <= kGrpcMaxMessageBytes) {
    return false;
  }
  max_message_bytes_ = kGrpcMaxMessageBytes;
  return true;
}

// An end with a reason of the server is final, unless it is temporary. A token
// that was valid until then may have been replaced: the next stream sends the
// one that is now in the file.
bool Watcher::State::IsBreak(const absl::Status& status) const {
  if (!established_ && !options_.wait_for_server) return false;
  return status.ok() || IsConnectionLost(status) ||
         (delivered_ && absl::IsUnauthenticated(status)) ||
         HasReason(status, ErrorReason::kUnreadResponses) ||
         HasReason(status, ErrorReason::kMaxWatchers) ||
         HasReason(status, ErrorReason::kMaxExpiringWatchers);
}

Watcher::Watcher(const Client& client, WatchOptions options)
    : state_(std::make_unique<State>(client, std::move(options))) {}

Watcher::~Watcher() = default;

absl::StatusOr<WatchBatch> Watcher::Next(absl::Duration timeout) {
  return state_->Next(timeout);
}

void Watcher::Cancel() { state_->Cancel(); }

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

}  // namespace timecache
