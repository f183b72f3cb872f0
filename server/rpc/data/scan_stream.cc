#include "server/rpc/data/scan_stream.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpc/support/time.h"
#include "server/api/wire_entry.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"

namespace timecache::server {
ScanStream* ScanStream::Start(const CallGate& gate,
                              grpc::CallbackServerContext* context,
                              Store* store, OpenStreams* streams,
                              FairExecutor* executor, const ScanTokens* tokens,
                              absl::Duration max_duration,
                              const grpc::ByteBuffer& request) {
  ScanStream* const stream = Keep(std::shared_ptr<ScanStream>(new ScanStream(
      gate, context, store, streams, executor, tokens, max_duration)));
  stream->status_ = stream->Open(request);
  if (stream->status_.ok()) {
    stream->Continue();
  } else {
    stream->TakeTurn();
  }
  return stream;
}

absl::Status ScanStream::Open(const grpc::ByteBuffer& request) {
  absl::Status status = call_.Identify();
  if (status.ok()) status = TakeRequest(request, &request_);
  if (!status.ok()) return status;
  status = Authorize();
  if (!status.ok()) return status;
  if (request_.key_prefix().size() > kMaxKeyBytes) {
    return InvalidField(
        "key_prefix",
        absl::StrCat("must be at most ", kMaxKeyBytes, " bytes, not ",
                     request_.key_prefix().size()));
  }
  const absl::StatusOr<size_t> max_bytes = ToMaxMessageBytes(request_);
  if (!max_bytes.ok()) return max_bytes.status();
  max_message_bytes_ = *max_bytes;
  if (!request_.position().empty()) {
    const absl::StatusOr<ScanPosition> position =
        tokens_.Decode(request_.position(), request_.key_prefix());
    if (!position.ok()) return position.status();
    position_ = *position;
  }
  return streams_->Add(self());
}

absl::Status ScanStream::Authorize() {
  return call_.Authorize(config::v1::VERB_READ, request_.namespace_());
}

// Each write has the whole time.
void ScanStream::BeginWrite() {
  const gpr_timespec deadline =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_micros(
                       absl::ToInt64Microseconds(max_duration_), GPR_TIMESPAN));
  absl::MutexLock lock(&mu_);
  timer_ = std::make_unique<grpc::Alarm>();
  // The timer must not keep the stream that it belongs to.
  timer_->Set(deadline, [weak = std::weak_ptr<ScanStream>(self()),
                         write = ++writes_](bool ok) {
    const std::shared_ptr<ScanStream> stream = weak.lock();
    if (ok && stream != nullptr) stream->OnTimer(write);
  });
}

void ScanStream::EndWrite() {
  absl::MutexLock lock(&mu_);
  ++writes_;
  timer_.reset();
}

void ScanStream::OnTimer(uint64_t write) {
  absl::MutexLock lock(&mu_);
  if (writes_ != write) return;
  too_slow_ = true;
  // A status that is sent in order would wait for the client, too. This one
  // passes what waits.
  grpc_call_cancel_with_status(
      context_->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED,
      std::string(TooSlow().message()).c_str(), nullptr);
}

absl::Status ScanStream::TooSlow() const {
  const std::string most = absl::FormatDuration(max_duration_);
  return ErrorWithReason(
      absl::StatusCode::kDeadlineExceeded, Reason::kMaxCallDuration,
      absl::StrCat("the client has not read a page of the scan for the "
                   "server's limits.max_call_duration of ",
                   most,
                   ": call again with the position of the last page that came, "
                   "and read before you process"),
      {{"max_call_duration", most}});
}

void ScanStream::Leave() {
  EndWrite();
  streams_->Remove(this);
}

void ScanStream::OnWriteDone(bool ok) {
  EndWrite();
  page_.Clear();
  if (ok) {
    call_.CountSent();
  } else {
    absl::MutexLock lock(&mu_);
    status_ =
        too_slow_ ? TooSlow() : absl::CancelledError("the reader is gone");
  }
  Continue();
}

void ScanStream::Continue() {
  // It may be over by the time that this returns.
  const std::shared_ptr<ScanStream> kept = self();
  executor_->Add(request_.namespace_(), kept);
}

// Starts a write, ends the scan, or takes a step. Returns whether to run again:
// not if OnWriteDone or the step's completion calls Continue.
bool ScanStream::TakeTurn() {
  if (status_.ok()) status_ = CheckAccess();
  if (status_.ok() && !found_.empty()) {
    TakePage();
    ready_.Set(found_bytes_);
    BeginWrite();
    StartWrite(&page_);
    return false;
  }
  if (status_.ok() && more_ && context_->IsCancelled()) {
    status_ = absl::CancelledError("the reader is gone");
  }
  if (!status_.ok() || !more_) {
    absl::MutexLock lock(&mu_);
    EndCall(status_);
    return false;
  }
  if (!HasRoom()) return false;
  Step();
  return step_.exchange(kReturned) == kCompleted;
}

// If not, the scan continues once there is.
bool ScanStream::HasRoom() {
  if (ready_.account() == nullptr || ready_.account()->HasRoom()) return true;
  // When its turn comes others may have taken the room: then it waits again.
  ready_.account()->WhenRoom([this](absl::Status room) {
    status_ = std::move(room);
    Continue();
  });
  return false;
}

void ScanStream::Step() {
  step_ = kBegun;
  store_->Scan(
      request_.namespace_(), request_.key_prefix(), kMaxPageEntries,
      kMaxPageBytes, &position_, &more_,
      [this](const ScannedEntry& entry) { Add(entry); },
      [this](absl::Status status) {
        status_ = std::move(status);
        ready_.Set(found_bytes_);
        if (step_.exchange(kCompleted) == kReturned) Continue();
      });
}

// Under a lock: the value is copied once.
void ScanStream::Add(const ScannedEntry& entry) {
  constexpr uint8_t kEntries =
      WireTag(v1::ScanResponse::kEntriesFieldNumber, kLengthDelimited);
  EntryView written = entry;
  if (request_.keys_only()) written.value = {};
  const size_t payload = written.key.size() + written.value.size();
  const size_t rest = wire::kMaxEntryBytes +
                      (written.trace.empty() ? 0 : wire::kTraceFieldBytes);
  const bool omitted =
      !written.value.empty() && payload + rest > max_message_bytes_;
  const size_t size =
      wire::kSlack + rest + (omitted ? written.key.size() : payload);
  Found found = {std::unique_ptr<char[]>(new char[size]), 0, size, entry.next};
  char* const buffer = found.buffer.get();
  found.begin = static_cast<size_t>(
      wire::WriteEntry(kEntries, written, omitted, buffer + size) - buffer);
  found_bytes_ += found.Cost();
  found_.push_back(std::move(found));
}

void ScanStream::TakePage() {
  size_t bytes = 0;
  size_t entries = 0;
  // Behind the step, where the page has all of it: it may have searched on.
  ScanPosition behind = position_;
  for (; entries < found_.size(); ++entries) {
    const Found& next = found_[entries];
    const bool full = bytes + next.bytes().size() > kMaxPageBytes ||
                      entries >= kMaxPageEntries;
    if (full && entries > 0 && found_[entries - 1].next != next.next) {
      behind = found_[entries - 1].next;
      break;
    }
    bytes += next.bytes().size();
  }
  const std::string position = tokens_.Encode(behind, request_.key_prefix());
  v1::ScanResponse rest;
  rest.set_position(position);
  const grpc::Slice slice =
      NewSlice(ready_.account(), bytes + rest.ByteSizeLong(), kMinPageCost);
  // No other thread has it yet.
  auto* at = const_cast<uint8_t*>(slice.begin());
  for (; entries > 0; --entries) {
    const Found& next = found_.front();
    std::memcpy(at, next.bytes().data(), next.bytes().size());
    at += next.bytes().size();
    found_bytes_ -= next.Cost();
    found_.pop_front();
  }
  rest.SerializeWithCachedSizesToArray(at);
  page_ = grpc::ByteBuffer(&slice, 1);
}

}  // namespace timecache::server
