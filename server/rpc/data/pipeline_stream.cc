#include "server/rpc/data/pipeline_stream.h"

#include <memory>
#include <string>
#include <utility>

namespace timecache::server {

PipelineStream* PipelineStream::Start(const CallGate& gate,
                                      grpc::CallbackServerContext* context,
                                      const Batch::Parts& parts,
                                      OpenStreams* streams) {
  PipelineStream* const stream = Keep(std::shared_ptr<PipelineStream>(
      new PipelineStream(gate, context, parts, streams)));
  absl::Status status = stream->call_.Identify();
  if (status.ok()) status = streams->Add(stream->self());
  absl::MutexLock lock(&stream->mu_);
  if (!status.ok()) stream->End(std::move(status));
  stream->Pump();
  return stream;
}

void PipelineStream::OnReadDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    input_ = Input::kIdle;
    // Requests after the end are not run.
    if (ok && !end_.has_value()) {
      call_.CountReceived();
      EndWithoutAccess();
    }
    if (ok && !end_.has_value()) {
      input_ = Input::kRunning;
    } else {
      // The client has sent all requests, or is gone.
      End(absl::OkStatus());
      Pump();
      return;
    }
  }
  batch_.Run(
      &call_, parts_, request_, account_.get(),
      [this](const absl::Status& status, const grpc::ByteBuffer& answer) {
        OnExecuted(status, answer);
      });
}

void PipelineStream::OnExecuted(const absl::Status& status,
                                const grpc::ByteBuffer& answer) {
  absl::MutexLock lock(&mu_);
  input_ = Input::kIdle;
  // It may be long until the next one comes in its place.
  request_.Clear();
  if (status.ok()) {
    answer_bytes_ += answer.Length();
    answers_.push_back(answer);
  } else {
    End(status);
  }
  EndWithoutAccess();
  Pump();
}

void PipelineStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  answer_bytes_ -= answers_.front().Length();
  answers_.pop_front();
  if (ok) {
    call_.CountSent();
  } else {
    // The client is gone and cannot read the others.
    answers_.clear();
    answer_bytes_ = 0;
    End(absl::CancelledError("the client is gone"));
  }
  Pump();
}

void PipelineStream::OnDrain() {
  // Of a node of a cluster it ends with NOT_OWNER, by which the client goes on at
  // the owner; but not while a batch runs, which may end with another error.
  if (!call_.CheckService().ok()) return OnAccessChanged();
  absl::MutexLock lock(&mu_);
  End(OpenStreams::DrainingError());
  Pump();
}

void PipelineStream::OnAccessChanged() {
  absl::MutexLock lock(&mu_);
  // A run checks when it is done.
  if (input_ != Input::kRunning) EndWithoutAccess();
  Pump();
}

absl::Status PipelineStream::Authorize() {
  if (call_.Namespace().empty()) return absl::OkStatus();
  return call_.Authorize(Verbs(), std::string(call_.Namespace()));
}

void PipelineStream::EndWithoutAccess() {
  if (ended()) return;
  absl::Status status = CheckAccess();
  if (!status.ok()) End(std::move(status));
}

// The first error stays.
void PipelineStream::End(absl::Status status) {
  if (!end_.has_value()) end_ = std::move(status);
}

// Does what can be done next.
void PipelineStream::Pump() {
  if (ended()) return;
  if (!writing_ && !answers_.empty()) {
    writing_ = true;
    StartWrite(&answers_.front());
  }
  if (input_ == Input::kRunning) return;
  if (end_.has_value()) {
    if (!writing_) EndCall(*end_);
  } else if (input_ == Input::kIdle && answers_.size() < kMaxAnswers &&
             answer_bytes_ < kMaxAnswerBytes) {
    input_ = Input::kReading;
    StartRead(&request_);
  }
}

}  // namespace timecache::server
