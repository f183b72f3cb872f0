#include "server/rpc/data/pipeline_stream.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/rpc/call/server_limits.h"

namespace timecache::server {

PipelineStream* PipelineStream::Start(const CallGate& gate,
                                      grpc::CallbackServerContext* context,
                                      const Batch::Parts& parts,
                                      OpenStreams* streams,
                                      absl::Duration max_connection_age) {
  PipelineStream* const stream = Keep(std::shared_ptr<PipelineStream>(
      new PipelineStream(gate, context, parts, streams, max_connection_age)));
  absl::Status status = stream->call_.Identify();
  if (status.ok()) status = streams->Add(stream->self());
  absl::MutexLock lock(&stream->mu_);
  if (!status.ok()) stream->End(std::move(status));
  stream->Pump();
  return stream;
}

void PipelineStream::OnReadDone(bool ok) {
  Answer* next = nullptr;
  {
    absl::MutexLock lock(&mu_);
    input_ = Input::kIdle;
    // Requests after the end are not run.
    if (ok && !end_.has_value()) {
      call_.CountReceived();
      input_ = Input::kHeld;
    } else {
      // The client has sent all requests, or is gone.
      End(absl::OkStatus());
    }
    next = Pump();
  }
  if (next != nullptr) Run(next);
}

void PipelineStream::Run(Answer* answer) {
  answer->batch->Run(&call_, parts_, request_, account_.get(),
                     [this, answer](const absl::Status& status,
                                    const grpc::ByteBuffer& bytes) {
                       OnExecuted(answer, status, bytes);
                     });
}

std::unique_ptr<Batch> PipelineStream::TakeBatch() {
  if (spare_ != nullptr) return std::move(spare_);
  auto batch = std::make_unique<Batch>();
  batch->set_small_bytes(kMinAnswerCost);
  batch->set_answers_independent(true);
  batch->set_on_applied([this] { OnApplied(); });
  return batch;
}

// The one that is being applied needs no more of request_ and call_.
void PipelineStream::Applied(const Batch& batch) {
  input_ = Input::kIdle;
  // It may be long until the next one comes in its place.
  request_.Clear();
  independent_ = batch.ran_independent();
  has_batches_ = has_batches_ || !independent_;
}

void PipelineStream::OnApplied() {
  absl::MutexLock lock(&mu_);
  Applied(*answers_.back().batch);
  Pump();
}

void PipelineStream::OnExecuted(Answer* answer, const absl::Status& status,
                                const grpc::ByteBuffer& bytes) {
  Answer* next = nullptr;
  {
    absl::MutexLock lock(&mu_);
    if (input_ == Input::kApplying && answer == &answers_.back()) {
      Applied(*answer->batch);
    }
    spare_ = std::move(answer->batch);
    --running_;
    if (status.ok()) {
      answer_bytes_ += bytes.Length();
      answer->bytes = bytes;
    } else {
      // It was not applied, so that none is behind it.
      answers_.pop_back();
      End(status);
    }
    EndWithoutAccess();
    if (IsOld()) End(OpenStreams::DrainingError());
    next = Pump();
  }
  if (next != nullptr) Run(next);
}

bool PipelineStream::IsOld() const {
  if (max_connection_age_ <= absl::ZeroDuration() || !account_) return false;
  return std::chrono::steady_clock::now() >
         OldAt(account_->use().opened_at(), max_connection_age_);
}

void PipelineStream::PopAnswer() {
  answer_bytes_ -= answers_.front().bytes.Length();
  answers_.pop_front();
}

void PipelineStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  PopAnswer();
  if (ok) {
    call_.CountSent();
  } else {
    gone_ = true;
    End(absl::CancelledError("the client is gone"));
  }
  Pump();
}

bool PipelineStream::OnDrain() {
  // Of a node of a cluster it ends with NOT_OWNER, by which the client goes on at
  // the owner; but not while a batch runs, which may end with another error.
  const bool serves = call_.CheckService().ok();
  if (!serves) OnAccessChanged();
  absl::MutexLock lock(&mu_);
  if (serves) {
    End(OpenStreams::DrainingError());
    Pump();
  }
  return has_batches_;
}

void PipelineStream::OnAccessChanged() {
  absl::MutexLock lock(&mu_);
  // Runs check when they are done.
  if (running_ == 0) EndWithoutAccess();
  Pump();
}

absl::Status PipelineStream::Authorize() {
  if (call_.Namespace().empty() || independent_) return absl::OkStatus();
  return call_.Authorize(Verbs(), std::string(call_.Namespace()));
}

// Batches that run have the caller as it was found.
void PipelineStream::EndWithoutAccess() {
  if (ended()) return;
  absl::Status status = running_ > 0 ? call_.CheckService() : CheckAccess();
  if (!status.ok()) End(std::move(status));
}

// The first error stays.
void PipelineStream::End(absl::Status status) {
  if (!end_.has_value()) end_ = std::move(status);
}

// Does what can be done next. Returns what to Run, or null.
PipelineStream::Answer* PipelineStream::Pump() {
  if (ended()) return nullptr;
  while (!writing_ && !answers_.empty() && answers_.front().batch == nullptr) {
    if (gone_) {
      PopAnswer();
    } else {
      writing_ = true;
      StartWrite(&answers_.front().bytes);
    }
  }
  if (input_ == Input::kApplying) return nullptr;
  if (input_ == Input::kHeld) {
    // By the rules of now.
    if (running_ > 0 && call_.stale()) return nullptr;
    EndWithoutAccess();
  }
  if (end_.has_value()) {
    if (answers_.empty()) EndCall(*end_);
    return nullptr;
  }
  if (input_ == Input::kHeld) {
    input_ = Input::kApplying;
    answers_.push_back({TakeBatch(), {}});
    ++running_;
    return &answers_.back();
  }
  if (input_ == Input::kIdle && running_ < kMaxRunning &&
      answers_.size() < kMaxAnswers && answer_bytes_ < kMaxAnswerBytes) {
    input_ = Input::kReading;
    StartRead(&request_);
  }
  return nullptr;
}

}  // namespace timecache::server
