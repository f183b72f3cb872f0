#include "timecache/pipeline.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "server/base/steady_cond_var.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// A request, and the callbacks of its operations.
struct Message {
  v1::ExecuteRequest request;
  std::vector<Pipeline::Done> done;  // One for each operation.
  size_t bytes = 0;                  // Of the operations.
  bool was_sent = false;  // On a stream that broke: it may have been applied.
};

constexpr size_t kMaxOperationBytes = kMaxRequestBytes - kMaxRequestHeadBytes;

PipelineOptions Checked(PipelineOptions options) {
  options.batch_operations_max = std::clamp<size_t>(
      options.batch_operations_max, 1, kMaxRequestOperations);
  options.batch_bytes_max =
      std::min(options.batch_bytes_max, kMaxOperationBytes);
  options.requests_in_flight_max =
      std::max<size_t>(options.requests_in_flight_max, 1);
  options.operations_in_flight_max =
      std::max<size_t>(options.operations_in_flight_max, 1);
  return options;
}

}  // namespace

// The stream's reactor: gRPC calls its On... functions. Reads are always under
// way, writes one at a time. A hold keeps the stream open, which gRPC could
// otherwise end between two writes; it is released with the last read.
class Pipeline::Stream final
    : public grpc::ClientBidiReactor<v1::ExecuteRequest, v1::ExecuteResponse> {
 public:
  Stream(const Client& client, const PipelineOptions& options)
      : options_(Checked(options)),
        ns_(client.options().default_namespace),
        timeout_(client.options().timeout),
        retry_(client.options().retry),
        core_(Client::Core::Of(client)),
        failure_(core_->endpoints.error()) {
    AwaitConnection();
    absl::MutexLock lock(&mu_);
    Open();
  }

  absl::StatusOr<bool> Add(Operation&& operation, Done&& done, bool wait);
  void Flush();
  absl::Status Wait();
  absl::Status Close();
  void Cancel();
  absl::Status status() const;

  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  using MessagePtr = std::shared_ptr<Message>;

  // Without a connection the stream fails with the reason.
  void AwaitConnection();
  bool IsDown() const;
  // Begins the stream, for the first time or anew, on the current endpoint.
  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After what time a stream that ended with `why` is to be opened again: what
  // has no answer was not applied, or may be repeated. Prepares that. Nothing: it
  // is not.
  std::optional<absl::Duration> PauseAfter(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether what was sent on a stream that broke is to be sent again.
  bool IsToRepeat(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const absl::Status& why);
  bool HasRoom(size_t bytes) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Append(Operation&& operation, size_t bytes, Done&& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the message that is being filled.
  void Seal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes the next message, if there is one and it may be.
  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for the condition, or else ends the stream and waits for it and that.
  void Await(absl::FunctionRef<bool()> condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the stream for a reason of the client.
  void Fail(absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Complete(Message& message, v1::ExecuteResponse& response);
  void FailAll(const absl::Status& why);

  const PipelineOptions options_;
  const std::string ns_;
  const absl::Duration timeout_;
  const RetryPolicy retry_;
  const std::shared_ptr<Client::Core> core_;
  v1::ExecuteResponse response_;  // Of the read that is under way.

  mutable absl::Mutex mu_;
  SteadyCondVar changed_;  // Any of what follows that is waited for.
  // In flight; each message is in one of the three at a time, in order.
  std::deque<MessagePtr> sent_ ABSL_GUARDED_BY(mu_);
  std::deque<MessagePtr> sealed_ ABSL_GUARDED_BY(mu_);
  MessagePtr filling_ ABSL_GUARDED_BY(mu_) = std::make_shared<Message>();
  MessagePtr writing_ ABSL_GUARDED_BY(mu_);  // Also in sent_, unless answered.
  size_t operations_in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  size_t bytes_in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  Endpoint* endpoint_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::optional<grpc::ClientContext> context_ ABSL_GUARDED_BY(mu_);
  // Until a stream that met no owner is opened again.
  std::optional<grpc::Alarm> pause_ ABSL_GUARDED_BY(mu_);
  Backoff not_owner_ ABSL_GUARDED_BY(mu_){kMinNotOwnerPause, kMaxNotOwnerPause};
  size_t unreached_ ABSL_GUARDED_BY(mu_) = 0;  // Addresses without connection.
  // Since the last answer: streams that broke, and the pauses after them.
  int broken_streams_ ABSL_GUARDED_BY(mu_) = 0;
  Backoff after_break_ ABSL_GUARDED_BY(mu_){retry_.min_pause, retry_.max_pause};
  // Of the last answer, or of the first operation after a pause.
  SteadyTime progress_at_ ABSL_GUARDED_BY(mu_);

  // The stream ended while nothing was in flight: the next operation opens one.
  bool is_down_ ABSL_GUARDED_BY(mu_) = false;
  bool has_answered_ ABSL_GUARDED_BY(mu_) = false;  // The present stream.
  bool closing_ ABSL_GUARDED_BY(mu_) = false;       // No more are added.
  bool broken_ ABSL_GUARDED_BY(mu_) = false;        // Writes fail.
  bool ending_ ABSL_GUARDED_BY(mu_) = false;        // Callbacks get the end.
  bool ended_ ABSL_GUARDED_BY(mu_) = false;         // All callbacks have run.
  absl::Status failure_ ABSL_GUARDED_BY(mu_);       // Why we end it.
  absl::Status status_ ABSL_GUARDED_BY(mu_);        // How it has ended.
};

bool Pipeline::Stream::HasRoom(size_t bytes) const {
  if (operations_in_flight_ == 0) return true;
  return operations_in_flight_ < options_.operations_in_flight_max &&
         bytes_in_flight_ + bytes <= options_.bytes_in_flight_max;
}

absl::StatusOr<bool> Pipeline::Stream::Add(Operation&& operation, Done&& done,
                                           bool wait) {
  const size_t bytes = operation.bytes();
  if (bytes > kMaxOperationBytes) {
    return NotSent(absl::InvalidArgumentError(
        absl::StrCat("the operation has ", bytes, " bytes; at most ",
                     kMaxOperationBytes, " fit into a request")));
  }
  if (wait && IsDown()) AwaitConnection();
  absl::MutexLock lock(&mu_);
  // While callbacks of operations in flight run with the stream's end, this one
  // waits for its turn.
  const auto can_go_on = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended_ || closing_ || (!ending_ && HasRoom(bytes));
  };
  if (wait) Await(can_go_on);
  if (ended_ && !status_.ok()) return NotSent(status_);
  if (ended_ || closing_) {
    return NotSent(absl::FailedPreconditionError("the pipeline is closed"));
  }
  if (ending_ || !HasRoom(bytes)) return false;
  Append(std::move(operation), bytes, std::move(done));
  return true;
}

void Pipeline::Stream::Append(Operation&& operation, size_t bytes,
                              Done&& done) {
  if (std::exchange(is_down_, false)) Open();
  if (filling_->bytes + bytes > options_.batch_bytes_max) Seal();
  if (operations_in_flight_ == 0) progress_at_ = SteadyNow();
  filling_->request.mutable_operations()->AddAllocated(
      std::move(operation).proto().release());
  filling_->done.push_back(std::move(done));
  filling_->bytes += bytes;
  ++operations_in_flight_;
  bytes_in_flight_ += bytes;
  const bool is_full = filling_->done.size() >= options_.batch_operations_max ||
                       filling_->bytes >= options_.batch_bytes_max;
  if (is_full || (sent_.empty() && sealed_.empty())) Seal();
  Send();
}

void Pipeline::Stream::Seal() {
  if (filling_->done.empty()) return;
  filling_->request.set_namespace_(ns_);
  sealed_.push_back(std::move(filling_));
  filling_ = std::make_shared<Message>();
}

void Pipeline::Stream::Send() {
  if (broken_ || writing_ || sealed_.empty() ||
      sent_.size() >= options_.requests_in_flight_max) {
    return;
  }
  writing_ = sealed_.front();
  sealed_.pop_front();
  sent_.push_back(writing_);
  StartWrite(&writing_->request);
}

void Pipeline::Stream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = nullptr;
  // A failed write is followed by a failed read.
  if (!ok) broken_ = true;
  Send();
}

void Pipeline::Stream::OnReadDone(bool ok) {
  MessagePtr message;
  {
    absl::MutexLock lock(&mu_);
    if (ok && (sent_.empty() || response_.results_size() !=
                                    sent_.front()->request.operations_size())) {
      Fail(absl::InternalError(
          "the server gave another number of results than there were "
          "operations: is it of this version?"));
      ok = false;
    }
    if (ok) {
      message = std::move(sent_.front());
      sent_.pop_front();
      has_answered_ = true;
      not_owner_.Reset();
      after_break_.Reset();
      broken_streams_ = 0;
      progress_at_ = SteadyNow();
      if (sent_.empty() && sealed_.empty()) Seal();
      Send();
    } else {
      broken_ = true;
    }
  }
  if (!ok) return RemoveHold();
  Complete(*message, response_);
  StartRead(&response_);
}

void Pipeline::Stream::Complete(Message& message,
                                v1::ExecuteResponse& response) {
  for (size_t i = 0; i < message.done.size(); ++i) {
    const int index = static_cast<int>(i);
    message.done[i](TakeResult(message.request.operations(index),
                               *response.mutable_results(index)));
  }
  absl::MutexLock lock(&mu_);
  operations_in_flight_ -= message.done.size();
  bytes_in_flight_ -= message.bytes;
  changed_.SignalAll();
}

void Pipeline::Stream::OnDone(const grpc::Status& status) {
  absl::Status why = FromGrpcStatus(status);
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) why = failure_;
    if (const auto pause = PauseAfter(why)) {
      pause_.emplace().Set(ToGrpcDeadline(SteadyAfter(*pause)), [this](bool) {
        absl::ReleasableMutexLock due(&mu_);
        if (failure_.ok()) return Open();
        const absl::Status failure = failure_;
        due.Release();
        End(failure);
      });
      return;
    }
    if (failure_.ok() && operations_in_flight_ == 0) {
      core_->endpoints.MoveOn(*endpoint_, why);
      why = absl::OkStatus();
    }
    if (why.ok() && !closing_ && operations_in_flight_ == 0) {
      broken_streams_ = 0;
      after_break_.Reset();
      is_down_ = true;
      return;
    }
    if (why.ok() && operations_in_flight_ > 0) {
      why = absl::UnavailableError(
          "the server ended the stream without an answer");
    }
    // Not where its caller has cancelled it.
    if (!why.ok() && (failure_.ok() || absl::IsDeadlineExceeded(failure_))) {
      core_->endpoints.MoveOn(*endpoint_, why);
    }
  }
  End(why);
}

void Pipeline::Stream::AwaitConnection() {
  Connect(*core_->endpoints.current().channel,
          SteadyAfter(std::min(timeout_, kConnectPatience)),
          core_->endpoints.size() > 1);
}

bool Pipeline::Stream::IsDown() const {
  absl::MutexLock lock(&mu_);
  return is_down_;
}

void Pipeline::Stream::Open() {
  endpoint_ = &core_->endpoints.current();
  endpoint_->connection.IsUp();
  context_.emplace();
  endpoint_->cache.async()->Pipeline(&*context_, this);
  AddHold();
  StartRead(&response_);
  StartCall();
  broken_ = false;
  has_answered_ = false;
  if (!failure_.ok()) context_->TryCancel();
  Send();
}

bool Pipeline::Stream::IsToRepeat(const absl::Status& why) {
  // It ended before what was added last could be sent.
  if (sent_.empty()) return has_answered_ && operations_in_flight_ > 0;
  // The first stream of all has already waited for a connection.
  if (IsNotConnected(why) && broken_streams_ == 0) return false;
  const auto is_safe = [](const MessagePtr& message) {
    return RepeatOf(message->request) == Repeat::kSafe;
  };
  return IsConnectionLost(why) && broken_streams_ + 1 < retry_.max_attempts &&
         std::all_of(sent_.begin(), sent_.end(), is_safe);
}

std::optional<absl::Duration> Pipeline::Stream::PauseAfter(
    const absl::Status& why) {
  if (!failure_.ok()) return std::nullopt;
  // A node that loses the ownership answers what it has read, and runs no more.
  const bool is_refused = IsNotOwner(why);
  const bool is_unreached =
      IsNotConnected(why) && ++unreached_ < core_->endpoints.size();
  const bool is_broken = !is_refused && !is_unreached;
  if (is_broken && !IsToRepeat(why)) return std::nullopt;
  core_->endpoints.MoveOn(*endpoint_, why);
  if (is_refused) unreached_ = 0;
  if (is_broken) {
    ++broken_streams_;
    for (const MessagePtr& message : sent_) message->was_sent = true;
  }
  sealed_.insert(sealed_.begin(), sent_.begin(), sent_.end());
  sent_.clear();
  if (is_broken) return after_break_.Next();
  return is_refused ? not_owner_.Next() : absl::ZeroDuration();
}

void Pipeline::Stream::End(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
  }
  FailAll(why);
  // Last: from here on the stream may be destroyed.
  absl::MutexLock lock(&mu_);
  operations_in_flight_ = 0;
  bytes_in_flight_ = 0;
  status_ = why;
  ended_ = true;
  changed_.SignalAll();
}

void Pipeline::Stream::FailAll(const absl::Status& why) {
  std::deque<MessagePtr> sent;
  std::deque<MessagePtr> not_sent;
  {
    absl::MutexLock lock(&mu_);
    Seal();
    sent.swap(sent_);
    not_sent.swap(sealed_);
  }
  const auto fail = [&why](const std::deque<MessagePtr>& messages,
                           const OperationResult& result) {
    const OperationResult maybe = {.status = MaybeSent(why)};
    for (const MessagePtr& message : messages) {
      for (const Done& done : message->done) {
        done(message->was_sent ? maybe : result);
      }
    }
  };
  // An answer to the stream is none to its operations.
  fail(sent, {.status = ReasonName(why) ? MaybeSent(why) : why});
  fail(not_sent, {.status = NotSent(why)});
}

void Pipeline::Stream::Await(absl::FunctionRef<bool()> condition) {
  const SteadyTime begin = SteadyNow();
  while (!condition()) {
    // A response in the meantime extends the time.
    const SteadyTime until = SteadyAfter(
        timeout_, operations_in_flight_ == 0 ? std::max(begin, progress_at_)
                                             : progress_at_);
    if (SteadyNow() >= until) {
      Fail(absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(timeout_))));
      break;
    }
    changed_.WaitUntil(&mu_, until);
  }
  while (!condition()) changed_.Wait(&mu_);
}

void Pipeline::Stream::Fail(absl::Status why) {
  if (failure_.ok()) failure_ = std::move(why);
  if (is_down_) {
    ended_ = true;
    status_ = failure_;
    changed_.SignalAll();
    return;
  }
  context_->TryCancel();
  if (pause_) pause_->Cancel();
}

void Pipeline::Stream::Flush() {
  absl::MutexLock lock(&mu_);
  Seal();
  Send();
}

absl::Status Pipeline::Stream::Wait() {
  absl::MutexLock lock(&mu_);
  Seal();
  Send();
  const auto is_done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended_ || (!ending_ && operations_in_flight_ == 0);
  };
  Await(is_done);
  return status_;
}

absl::Status Pipeline::Stream::Close() {
  {
    absl::MutexLock lock(&mu_);
    if (std::exchange(closing_, true)) {
      mu_.Await(absl::Condition(&ended_));
      return status_;
    }
    changed_.SignalAll();
  }
  if (absl::Status status = Wait(); !status.ok()) return status;
  const auto has_ended = [this]()
                             ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ended_; };
  absl::MutexLock lock(&mu_);
  if (std::exchange(is_down_, false)) ended_ = true;
  if (!std::exchange(broken_, true)) StartWritesDone();
  progress_at_ = SteadyNow();
  Await(has_ended);
  return status_;
}

void Pipeline::Stream::Cancel() {
  absl::MutexLock lock(&mu_);
  if (!ended_) Fail(absl::CancelledError("the pipeline was cancelled"));
}

absl::Status Pipeline::Stream::status() const {
  absl::MutexLock lock(&mu_);
  return status_;
}

Pipeline::Pipeline(const Client& client, const PipelineOptions& options)
    : stream_(std::make_unique<Stream>(client, options)) {}

Pipeline::~Pipeline() { stream_->Close().IgnoreError(); }

absl::Status Pipeline::Add(Operation operation, Done done) {
  return stream_->Add(std::move(operation), std::move(done), true).status();
}

absl::StatusOr<bool> Pipeline::TryAdd(Operation&& operation, Done&& done) {
  return stream_->Add(std::move(operation), std::move(done), false);
}

void Pipeline::Flush() { stream_->Flush(); }
absl::Status Pipeline::Wait() { return stream_->Wait(); }
absl::Status Pipeline::Close() { return stream_->Close(); }
void Pipeline::Cancel() { stream_->Cancel(); }
absl::Status Pipeline::status() const { return stream_->status(); }

}  // namespace timecache
