#include "server/service/scan_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/convert.h"

namespace timecache {

ScanStream* ScanStream::Start(const CallGate& gate,
                              grpc::CallbackServerContext* context,
                              Store* store, OpenStreams* streams,
                              const v1::ScanRequest& request) {
  std::shared_ptr<ScanStream> stream(
      new ScanStream(gate, context, store, streams, request));
  stream->self_ = stream;
  stream->status_ = stream->Open();
  stream->Continue();
  return stream.get();
}

absl::Status ScanStream::Open() {
  absl::Status status = call_.Authorize(v1::VERB_READ, request_.namespace_());
  if (!status.ok()) return status;
  if (request_.key_prefix().size() > kMaxKeyBytes) {
    return InvalidField(
        "key_prefix",
        absl::StrCat("must be at most ", kMaxKeyBytes, " bytes, not ",
                     request_.key_prefix().size()));
  }
  return streams_->Add(self_);
}

absl::Status ScanStream::CheckAccess() {
  absl::Status status = call_.Renew();
  if (!status.ok()) return status;
  return call_.Authorize(v1::VERB_READ, request_.namespace_());
}

void ScanStream::OnDone() {
  streams_->Remove(this);
  self_.reset();
}

void ScanStream::OnWriteDone(bool ok) {
  if (ok) {
    call_.CountSent();
  } else {
    status_ = absl::CancelledError("the reader is gone");
  }
  Continue();
}

// Goes on until a page is being written, the scan is over, or a step completes
// later.
void ScanStream::Continue() {
  while (status_.ok()) {
    if (call_.stale()) {
      status_ = CheckAccess();
      continue;
    }
    if (!found_.empty()) {
      TakePage();
      StartWrite(&page_);
      return;
    }
    if (!more_) break;
    if (context_->IsCancelled()) {
      status_ = absl::CancelledError("the reader is gone");
    } else if (!Step()) {
      return;
    }
  }
  Finish(call_.End(status_));
}

// Returns whether the step has completed; if not, its completion calls
// Continue.
bool ScanStream::Step() {
  step_ = kBegun;
  store_->Scan(
      request_.namespace_(), request_.key_prefix(), kMaxPageEntries,
      kMaxPageBytes, &place_, &more_,
      [this](absl::string_view key, absl::string_view value, uint64_t version,
             int64_t put_us, int64_t deadline_us) {
        v1::Entry& entry = found_.emplace_back();
        entry.set_key(key.data(), key.size());
        if (!request_.keys_only()) entry.set_value(value.data(), value.size());
        entry.set_version(version);
        SetTime(put_us, entry.mutable_put_time());
        SetTime(deadline_us, entry.mutable_deadline());
      },
      [this](absl::Status status) {
        status_ = std::move(status);
        if (step_.exchange(kCompleted) == kReturned) Continue();
      });
  return step_.exchange(kReturned) == kCompleted;
}

void ScanStream::TakePage() {
  page_.Clear();
  int64_t bytes = 0;
  while (!found_.empty() && page_.entries_size() < kMaxPageEntries) {
    v1::Entry& next = found_.front();
    bytes += static_cast<int64_t>(next.key().size() + next.value().size());
    if (bytes > kMaxPageBytes && page_.entries_size() > 0) break;
    page_.add_entries()->Swap(&next);
    found_.pop_front();
  }
}

}  // namespace timecache
