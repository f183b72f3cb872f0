#include "server/rpc/data/scan_stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpc/support/time.h"
#include "server/api/proto_operation.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"

namespace timecache::server {
namespace {

// The memory of an entry that is ready to be written.
int64_t CostOf(size_t payload_bytes) {
  return static_cast<int64_t>(payload_bytes + sizeof(v1::Entry));
}

// Of key and value, or parts: the message's class does not know this one field.
size_t PayloadOf(const v1::Entry& entry) {
  size_t bytes = entry.key().size() + entry.value().size();
  const auto& parts = entry.GetReflection()->GetUnknownFields(entry);
  for (int i = 0; i < parts.field_count(); ++i) {
    bytes += parts.field(i).length_delimited().size();
  }
  return bytes;
}

}  // namespace

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
  page_bytes_.Clear();
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
    page_bytes_ = ToBytes(page_, ready_.account(), kMinPageCost);
    page_ = v1::ScanResponse();
    ready_.Set(found_bytes_);
    BeginWrite();
    StartWrite(&page_bytes_);
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
      [this](const ScannedEntry& found) { Found(found); },
      [this](absl::Status status) {
        status_ = std::move(status);
        ready_.Set(found_bytes_);
        if (step_.exchange(kCompleted) == kReturned) Continue();
      });
}

void ScanStream::Found(const ScannedEntry& found) {
  v1::Entry& entry = found_.emplace_back(v1::Entry(), found.next).first;
  entry.set_key(found.key.data(), found.key.size());
  if (!request_.keys_only()) {
    const absl::string_view value = found.value;
    if (found.key.size() + value.size() + kMaxEntryOverhead >
        max_message_bytes_) {
      entry.set_omitted_value_bytes(value.size());
    } else if (found.parts) {
      SetParts(value, v1::Entry::kPartsFieldNumber, &entry);
    } else {
      entry.set_value(value.data(), value.size());
    }
  }
  entry.set_version(found.version);
  SetTime(found.put_us, entry.mutable_put_time());
  SetTime(found.deadline_us, entry.mutable_deadline());
  SetTime(found.create_us, entry.mutable_create_time());
  if (found.own_ttl_us != 0) {
    SetDuration(found.own_ttl_us, entry.mutable_own_ttl());
  }
  found_bytes_ += CostOf(PayloadOf(entry));
}

void ScanStream::TakePage() {
  page_.Clear();
  int64_t bytes = 0;
  ScanPosition behind;
  while (!found_.empty()) {
    auto& [next, behind_next] = found_.front();
    const size_t size = PayloadOf(next);
    bytes += static_cast<int64_t>(size);
    const bool full =
        bytes > kMaxPageBytes || page_.entries_size() >= kMaxPageEntries;
    if (full && page_.entries_size() > 0 && behind != behind_next) break;
    behind = behind_next;
    found_bytes_ -= CostOf(size);
    page_.add_entries()->Swap(&next);
    found_.pop_front();
  }
  // Behind the step, where the page has all of it: it may have searched on.
  page_.set_position(tokens_.Encode(found_.empty() ? position_ : behind,
                                    request_.key_prefix()));
}

}  // namespace timecache::server
