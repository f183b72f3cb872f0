#include "server/rpc/admin/backup_stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/support/time.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"

namespace timecache::server {

BackupStream* BackupStream::Start(const CallGate& gate,
                                  grpc::CallbackServerContext* context,
                                  Backups* backups, OpenStreams* streams,
                                  FairExecutor* executor,
                                  const grpc::ByteBuffer& request) {
  BackupStream* const stream = Keep(std::shared_ptr<BackupStream>(
      new BackupStream(gate, context, backups, streams, executor)));
  stream->status_ = stream->Open(request);
  if (stream->status_.ok()) {
    stream->Continue();
  } else {
    stream->TakeTurn();
  }
  return stream;
}

absl::Status BackupStream::Open(const grpc::ByteBuffer& request) {
  absl::Status status = Authorize();
  v1::BackupJournalRequest message;
  if (status.ok()) status = TakeRequest(request, &message);
  if (!status.ok()) return status;
  if (backups_.source == nullptr) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, Reason::kNoJournal,
        "the server keeps no journal, so there is nothing to back up: start it "
        "with --journal DIRECTORY and make namespaces durable, or dump a "
        "namespace (timecachectl dump)");
  }
  counted_ = true;
  if (++backups_.open > Backups::kMax) {
    return ErrorWithReason(
        absl::StatusCode::kResourceExhausted, Reason::kMaxBackups,
        absl::StrCat(Backups::kMax,
                     " backups are in progress, which is the most: wait for "
                     "one to end"));
  }
  status = streams_->Add(self());
  if (status.ok()) bytes_ = backups_.source();
  return status;
}

absl::Status BackupStream::Authorize() {
  return call_.Authorize(config::v1::VERB_ADMIN, kWholeServer);
}

void BackupStream::Leave() {
  {
    absl::MutexLock lock(&mu_);
    if (alarm_ != nullptr) alarm_->Cancel();
  }
  // Its segments are released now, even if the stream is still referenced.
  bytes_ = nullptr;
  if (counted_) --backups_.open;
  streams_->Remove(this);
}

void BackupStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    alarm_->Cancel();
  }
  message_.Clear();
  if (ok) {
    call_.CountSent();
  } else {
    status_ = absl::CancelledError("the client is gone, or does not read");
  }
  Continue();
}

bool BackupStream::OnDrain() {
  absl::MutexLock lock(&mu_);
  draining_ = true;
  // Between two pieces it checks by itself.
  if (writing_) CancelIn(kDrainTimeout);
  return true;
}

void BackupStream::Continue() {
  // It may be over by the time that this returns.
  const std::shared_ptr<BackupStream> kept = self();
  executor_->Add("", kept);
}

absl::Status BackupStream::CheckState() {
  if (context_->IsCancelled()) {
    return absl::CancelledError("the client is gone");
  }
  {
    absl::MutexLock lock(&mu_);
    if (draining_) return OpenStreams::DrainingError();
  }
  // The rules alone. Not whether the node serves: after NOT_OWNER a client would
  // repeat the call, and has a part of this one. The source ends with the
  // ownership.
  if (!call_.stale()) return absl::OkStatus();
  absl::Status status = call_.Renew();
  return status.ok() ? Authorize() : status;
}

// Writes a piece, or ends the stream. Never has more work at once.
bool BackupStream::TakeTurn() {
  if (status_.ok()) status_ = CheckState();
  if (status_.ok() && !HasRoom()) return false;
  std::string piece;
  if (status_.ok()) {
    auto read = bytes_->Read(kPieceBytes);
    status_ = read.status();
    if (read.ok()) piece = *std::move(read);
  }
  if (piece.empty()) {
    absl::MutexLock lock(&mu_);
    EndCall(status_);
  } else {
    Write(piece);
  }
  return false;
}

// If not, the stream continues once there is.
bool BackupStream::HasRoom() {
  if (account_.get() == nullptr || account_->HasRoom()) return true;
  account_->WhenRoom([this](absl::Status room) {
    status_ = std::move(room);
    Continue();
  });
  return false;
}

void BackupStream::Write(absl::string_view piece) {
  v1::BackupJournalResponse response;
  response.set_total_bytes(bytes_->total_bytes());
  response.set_data(piece.data(), piece.size());
  message_ = ToBytes(response, account_.get());
  {
    absl::MutexLock lock(&mu_);
    writing_ = true;
    ++writes_;
    CancelIn(draining_ ? kDrainTimeout : backups_.timeout);
  }
  StartWrite(&message_);
}

// Unless the write in progress is done before.
void BackupStream::CancelIn(absl::Duration time) {
  if (alarm_ != nullptr) alarm_->Cancel();
  alarm_ = std::make_unique<grpc::Alarm>();
  const gpr_timespec at = gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_micros(absl::ToInt64Microseconds(time), GPR_TIMESPAN));
  // The alarm must not keep the stream that it belongs to.
  alarm_->Set(at, [weak = std::weak_ptr<BackupStream>(self()),
                   write = writes_](bool ok) {
    const std::shared_ptr<BackupStream> stream = weak.lock();
    if (!ok || stream == nullptr) return;
    absl::MutexLock lock(&stream->mu_);
    if (stream->writing_ && stream->writes_ == write) {
      stream->context_->TryCancel();
    }
  });
}

}  // namespace timecache::server
