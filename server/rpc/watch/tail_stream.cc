#include "server/rpc/watch/tail_stream.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"
#include "server/rpc/watch/watch_source.h"

namespace timecache::server {
namespace {

// By the monotonic clock, for the rate: a virtual one may stand still.
int64_t SteadyUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const char* NameOf(OpKind kind) {
  switch (kind) {
    case OpKind::kPut:
      return "put";
    case OpKind::kGet:
      return "get";
    case OpKind::kRemove:
      return "remove";
    case OpKind::kContains:
      return "contains";
    case OpKind::kTouch:
      return "touch";
    case OpKind::kAppend:
      return "append";
    case OpKind::kCombine:
      return "combine";
    case OpKind::kGather:
      break;
  }
  return "gather";
}

// Whether a read found an entry, or a write changed one.
bool IsHit(OpKind kind, const Result& result) {
  if (!result.status.ok()) return false;
  switch (kind) {
    case OpKind::kGet:
      return result.has_entry;
    case OpKind::kRemove:
    case OpKind::kContains:
    case OpKind::kTouch:
      return result.found;
    default:
      return !result.duplicate;
  }
}

void Describe(const Operation& operation, const Result& result,
              v1::TailedCall* call) {
  call->set_operation(NameOf(operation.kind));
  call->set_key(operation.key.data(), operation.key.size());
  call->set_value_bytes(operation.value.size());
  call->set_code(absl::StatusCodeToString(result.status.code()));
  call->set_reason(std::string(ReasonNameOf(result.status)));
  call->set_hit(IsHit(operation.kind, result));
}

}  // namespace

TailStream* TailStream::Start(const CallGate& gate,
                              grpc::CallbackServerContext* context,
                              const Parts& parts,
                              const grpc::ByteBuffer& request) {
  TailStream* const stream =
      Keep(std::shared_ptr<TailStream>(new TailStream(gate, context, parts)));
  const absl::Status status = stream->Prepare(request);
  if (status.ok()) {
    stream->Follow();
  } else {
    absl::MutexLock lock(&stream->mu_);
    stream->EndCall(status);
  }
  return stream;
}

absl::Status TailStream::Prepare(const grpc::ByteBuffer& request) {
  absl::Status status = call_.Identify();
  if (status.ok()) status = TakeRequest(request, &request_);
  if (status.ok()) status = Authorize();
  if (!status.ok()) return status;
  if (request_.key_prefix().size() > kMaxKeyBytes) {
    return InvalidField(
        "key_prefix",
        absl::StrCat("must be at most ", kMaxKeyBytes, " bytes, not ",
                     request_.key_prefix().size()));
  }
  if (request_.max_per_second() > kMaxPerSecond) {
    return InvalidField("max_per_second",
                        absl::StrCat("must be 1 to ", kMaxPerSecond, ", not ",
                                     request_.max_per_second()));
  }
  limit_.emplace(request_.max_per_second() == 0 ? kDefaultPerSecond
                                                : request_.max_per_second(),
                 SteadyUs());
  status = parts_.hub->Add(self(), {.flow = request_.namespace_(),
                                    .heartbeats = 1,
                                    .heartbeat_us = kReportUs});
  // Before the confirmation: what its client does then is in the sample.
  return status.ok() ? parts_.tails->Add(this) : status;
}

// Opens the log. The store may complete on any thread, after the stream's end.
void TailStream::Follow() {
  parts_.store->OpenLogs(
      {&request_.namespace_(), 1}, LogStart::kNow, no_points_,
      [weak = std::weak_ptr<TailStream>(self())] {
        const std::shared_ptr<TailStream> stream = weak.lock();
        if (stream != nullptr) stream->WakeUp(stream);
      },
      [this, kept = self()](absl::StatusOr<Store::Readers> readers) {
        {
          absl::MutexLock lock(&mu_);
          if (ended()) return;
          if (!readers.ok()) return EndCall(readers.status());
          reader_ = std::move(readers->front());
        }
        WakeUp(kept);
      });
}

absl::Status TailStream::Authorize() {
  return call_.Authorize(config::v1::VERB_ADMIN, request_.namespace_());
}

void TailStream::WakeUp(const std::shared_ptr<TailStream>& self) {
  absl::MutexLock lock(&wake_mu_);
  if (!has_left_) parts_.hub->Notify(self);
}

void TailStream::Leave() {
  {
    absl::MutexLock lock(&wake_mu_);
    has_left_ = true;
  }
  parts_.tails->Remove(this);
  parts_.hub->Remove(self());
  std::unique_ptr<EventReader> reader;
  absl::MutexLock lock(&mu_);
  reader.swap(reader_);
}

void TailStream::OnOperations(const CallDetails& call,
                              absl::Span<const Operation> operations,
                              absl::Span<const Result> results) {
  const int64_t now_us = SteadyUs();
  std::vector<v1::TailedCall> sample;
  uint64_t skipped = 0;
  bool limited = false;
  for (size_t i = 0; i < operations.size(); ++i) {
    const absl::string_view key = operations[i].key;
    if (!absl::StartsWith(key, request_.key_prefix())) continue;
    limited = limited || limit_->Take(1, now_us) == 0;
    if (limited) {
      ++skipped;
    } else {
      Describe(operations[i], results[i], &sample.emplace_back());
    }
  }
  if (sample.empty() && skipped == 0) return;
  const std::string principal = sample.empty() ? "" : call.Principal();
  const std::string peer = sample.empty() ? "" : call.Peer();
  {
    absl::MutexLock lock(&mu_);
    if (ended()) return;
    for (v1::TailedCall& each : sample) {
      const size_t bytes = each.key().size() + principal.size() + peer.size();
      if (waiting_.calls_size() >= kMaxWaiting ||
          waiting_bytes_ + bytes > kMaxWaitingBytes) {
        ++skipped;
        continue;
      }
      SetTime(parts_.hub->clock()->NowUs(), each.mutable_time());
      each.set_principal(principal);
      each.set_peer(peer);
      waiting_bytes_ += bytes;
      *waiting_.add_calls() = std::move(each);
    }
    waiting_.set_skipped(waiting_.skipped() + skipped);
  }
  // The tails keep the stream, and this runs under their lock.
  if (!sample.empty()) WakeUp(self());
}

// A message in flight may still be read, for a while.
void TailStream::EndWithoutAccess() {
  if (ended()) return;
  const int64_t now_us = parts_.hub->clock()->NowUs();
  if (!withdrawn_.ok()) {
    if (now_us >= withdrawn_us_ + kWithdrawalGraceUs) context_->TryCancel();
    return;
  }
  absl::Status status = CheckAccess();
  if (status.ok()) return;
  if (writing_) {
    withdrawn_ = std::move(status);
    withdrawn_us_ = now_us;
    parts_.hub->SetTimer(self(), now_us + kWithdrawalGraceUs);
  } else {
    EndCall(status);
  }
}

bool TailStream::OnWake(Wake why) {
  absl::MutexLock lock(&mu_);
  if (why == Wake::kDrain) draining_ = true;
  if (ended() || reader_ == nullptr) return false;
  EndWithoutAccess();
  return Pump();
}

void TailStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  message_.Clear();
  if (ended()) return;
  if (!withdrawn_.ok()) return EndCall(withdrawn_);
  if (!ok || cancelled_) {
    return EndCall(absl::CancelledError("the reader is gone"));
  }
  call_.CountSent();
  if (Pump()) parts_.hub->Notify(self());
}

void TailStream::OnCancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  // A write that is in flight fails now, and then ends the stream.
  if (!ended() && !writing_) {
    EndCall(absl::CancelledError("the reader is gone"));
  }
}

// Passes over what the log has, for its end. Returns whether there is more.
bool TailStream::ReadLog(int64_t now_us) {
  const EventChunk chunk = reader_->Read(now_us, kMaxEventBatchEvents,
                                         WatchSource::kMaxMessageBytes);
  if (chunk.closed && !ended()) EndCall(reader_->WhyClosed());
  return chunk.more && !chunk.closed;
}

// Writes the next message, if there is one and none is in flight. Returns
// whether there is more to do now.
bool TailStream::Pump() {
  if (writing_ || ended()) return false;
  const int64_t now_us = parts_.hub->clock()->NowUs();
  const bool more = ReadLog(now_us);
  if (ended()) return false;
  const bool report =
      waiting_.skipped() > 0 && (now_us >= report_us_ || draining_);
  if (waiting_.calls_size() > 0 || report || !confirmed_) {
    confirmed_ = true;
    report_us_ = now_us + kReportUs;
    message_ = ToBytes(waiting_, account_.get());
    waiting_.Clear();
    waiting_bytes_ = 0;
    writing_ = true;
    StartWrite(&message_);
    return false;
  }
  if (draining_) {
    EndCall(absl::OkStatus());
    return false;
  }
  parts_.hub->SetTimer(self(), now_us + kReportUs);
  return more;
}

}  // namespace timecache::server
