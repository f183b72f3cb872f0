#include "server/service/data/pipeline_stream.h"

#include <utility>

namespace timecache::server {

PipelineStream* PipelineStream::Start(const CallGate& gate,
                                      grpc::CallbackServerContext* context,
                                      Store* store, OpenStreams* streams) {
  std::shared_ptr<PipelineStream> stream(
      new PipelineStream(gate, context, store, streams));
  stream->self_ = stream;
  absl::Status status = stream->call_.Identify();
  if (status.ok()) status = streams->Add(stream);
  absl::MutexLock lock(&stream->mu_);
  if (!status.ok()) stream->End(std::move(status));
  stream->Pump();
  return stream.get();
}

void PipelineStream::OnReadDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    input_ = Input::kIdle;
    // What comes behind the end is not run.
    if (ok && !end_.has_value()) {
      call_.CountReceived();
      CheckAccess();
    }
    if (ok && !end_.has_value()) {
      input_ = Input::kRunning;
    } else {
      // The client has sent all that it had, or is gone.
      End(absl::OkStatus());
      Pump();
      return;
    }
  }
  batch_.Run(&call_, store_, request_, account_.get(),
             [this](absl::Status status, grpc::ByteBuffer answer) {
               OnExecuted(std::move(status), std::move(answer));
             });
}

void PipelineStream::OnExecuted(absl::Status status, grpc::ByteBuffer answer) {
  absl::MutexLock lock(&mu_);
  input_ = Input::kIdle;
  if (status.ok()) {
    answer_bytes_ += answer.Length();
    answers_.push_back(std::move(answer));
  } else {
    End(std::move(status));
  }
  CheckAccess();
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
    // Nobody is there to read the others.
    answers_.clear();
    answer_bytes_ = 0;
    End(absl::CancelledError("the client is gone"));
  }
  Pump();
}

void PipelineStream::OnDrain() {
  absl::MutexLock lock(&mu_);
  End(OpenStreams::DrainingError());
  Pump();
}

void PipelineStream::OnAccessChanged() {
  absl::MutexLock lock(&mu_);
  // A run looks when it is done.
  if (input_ != Input::kRunning) CheckAccess();
  Pump();
}

void PipelineStream::OnDone() {
  streams_->Remove(this);
  // Whoever ended the call may still hold the lock.
  { absl::MutexLock lock(&mu_); }
  self_.reset();
}

void PipelineStream::CheckAccess() {
  if (finished_ || !call_.stale()) return;
  absl::Status status = call_.Renew();
  if (status.ok() && !call_.Namespace().empty()) {
    status = call_.Authorize(Verbs(), std::string(call_.Namespace()));
  }
  if (!status.ok()) End(std::move(status));
}

// The first reason stays.
void PipelineStream::End(absl::Status status) {
  if (!end_.has_value()) end_ = std::move(status);
}

// Does what can be done next.
void PipelineStream::Pump() {
  if (finished_) return;
  if (!writing_ && !answers_.empty()) {
    writing_ = true;
    StartWrite(&answers_.front());
  }
  if (input_ == Input::kRunning) return;
  if (end_.has_value()) {
    if (writing_) return;
    // A read that is in flight ends with the call.
    finished_ = true;
    Finish(call_.End(*end_));
  } else if (input_ == Input::kIdle && answers_.size() < kMaxAnswers &&
             answer_bytes_ < kMaxAnswerBytes) {
    input_ = Input::kReading;
    StartRead(&request_);
  }
}

}  // namespace timecache::server
