#include "client/cpp/src/shared/call_stream.h"

#include <algorithm>
#include <utility>

#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "client/cpp/src/shared/wait_word.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// After what time without a message a stream is looked at before it is used.
constexpr absl::Duration kIdle = absl::Milliseconds(1);

absl::Status TimeUp() {
  return absl::DeadlineExceededError("Deadline Exceeded");  // As gRPC says it.
}

}  // namespace

struct SharedMessage {
  std::vector<SharedCall*> calls;  // Null: it has left.
  size_t live = 0;                 // Of these.
  size_t bytes = 0;
  bool is_sent = false;
  SteadyTime sent_at;
  // Changes when calls end, and when a thread that waits for one may lead.
  WaitWord changes;
};

// One Pipeline. Events hold a pointer to it.
struct CallStream::Rpc {
  struct Tag final : QueueEvent {
    Tag(Rpc& of, Step what) : rpc(of), step(what) {}
    void Happened(bool ok) override { rpc.stream.Happened(rpc, step, ok); }

    Rpc& rpc;
    const Step step;
  };

  Rpc(CallStream& its_stream, Endpoint& at)
      : stream(its_stream), endpoint(at) {}

  CallStream& stream;
  Endpoint& endpoint;
  grpc::ClientContext context;
  std::unique_ptr<
      grpc::ClientAsyncReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>>
      rpc;
  v1::ExecuteRequest request;
  v1::ExecuteResponse response;
  grpc::Status status;
  QueueEvent* tag(Step step) {
    ++pending;
    return &tags[static_cast<size_t>(step)];
  }
  Tag tags[3] = {
      {*this, Step::kWritten}, {*this, Step::kRead}, {*this, Step::kFinished}};
  int pending = 0;  // Events to come.
  bool is_writing = false;
  bool is_reading = false;
  bool is_ending = false;  // Takes no more messages.
  bool has_answered = false;
};

CallStream::CallStream(Endpoints& endpoints, std::string ns,
                       StreamDriver* driver)
    : endpoints_(endpoints),
      ns_(std::move(ns)),
      driver_(driver),
      queue_(driver == nullptr ? own_queue_ : driver->queue()) {}

CallStream::~CallStream() {
  Close();
  own_queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (own_queue_.Next(&tag, &ok)) {
    static_cast<QueueEvent*>(tag)->Happened(ok);
  }
}

void CallStream::Close() {
  std::shared_ptr<CallStream> kept;  // Until the lock is released.
  absl::MutexLock lock(&mu_);
  if (rpc_) Retire();
  kept = TakeKept();
}

std::shared_ptr<CallStream> CallStream::TakeKept() {
  return !rpc_ && retired_.empty() ? std::move(keep_) : nullptr;
}

long CallStream::kept() {
  absl::MutexLock lock(&mu_);
  return keep_ ? 1 : 0;
}

SteadyTime CallStream::used_at() {
  absl::MutexLock lock(&mu_);
  return used_at_;
}

bool CallStream::IsOpen() {
  absl::ReleasableMutexLock lock(&mu_);
  const bool is_idle = rpc_ != nullptr && driver_ == nullptr && sent_.empty() &&
                       waiting_.empty() &&
                       SteadyNow() > SteadyAfter(kIdle, used_at_);
  if (!is_idle) return IsAtCurrent();
  lock.Release();
  LookAtIdleStream();
  absl::MutexLock again(&mu_);
  return IsAtCurrent();
}

bool CallStream::IsAtCurrent() const {
  return rpc_ != nullptr && &rpc_->endpoint == &endpoints_.current();
}

bool CallStream::Run(SharedCall& call, const std::stop_token& cancellation) {
  if (SteadyNow() >= call.deadline) {
    call.end = SharedCall::End::kFailed;
    call.status = NotSent(TimeUp());
    return true;
  }
  std::shared_ptr<SharedMessage> message;
  {
    absl::MutexLock lock(&mu_);
    if (!HasRoom(call)) return false;
    message = Add(call);
    if (HasLeader()) Send();
  }
  std::optional<std::stop_callback<std::function<void()>>> wake;
  if (cancellation.stop_possible()) {
    wake.emplace(cancellation, [this, &message] {
      message->changes.ChangeForAll();
      QueueWake::Send(queue_);
    });
  }
  bool in_time = true;
  while (true) {
    const uint32_t seen = message->changes.Read();
    if (call.has_ended.load(std::memory_order_acquire)) return true;
    if (!in_time || cancellation.stop_requested()) break;
    if (is_led_.exchange(true, std::memory_order_acq_rel)) {
      in_time = message->changes.Wait(seen, call.deadline);
    } else {
      in_time = Lead(call, cancellation);
    }
  }
  Ended ended;
  {
    absl::MutexLock lock(&mu_);
    if (!call.has_ended.load(std::memory_order_acquire)) {
      Leave(call, in_time ? CancelledByCaller() : TimeUp(), ended);
      if (!in_time) GiveUpIfSilent(ended);
    }
    if (!is_led_.load(std::memory_order_acquire)) Offer();
  }
  Tell(ended);
  return true;
}

bool CallStream::Lead(SharedCall& call, const std::stop_token& cancellation) {
  {
    absl::MutexLock lock(&mu_);
    leading_ = &call;
    Send();
  }
  const gpr_timespec deadline = ToGrpcDeadline(call.deadline);
  bool in_time = true;
  while (in_time && !call.has_ended.load(std::memory_order_acquire) &&
         !cancellation.stop_requested()) {
    in_time = Poll(deadline);
  }
  absl::MutexLock lock(&mu_);
  leading_ = nullptr;
  is_led_.store(false, std::memory_order_release);
  Offer();
  return in_time;
}

bool CallStream::Poll(gpr_timespec deadline) {
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, deadline) !=
      grpc::CompletionQueue::GOT_EVENT) {
    return false;
  }
  static_cast<QueueEvent*>(tag)->Happened(ok);
  return true;
}

void CallStream::LookAtIdleStream() {
  if (is_led_.exchange(true, std::memory_order_acq_rel)) return;
  while (Poll(gpr_time_0(GPR_CLOCK_MONOTONIC))) {
  }
  absl::MutexLock lock(&mu_);
  is_led_.store(false, std::memory_order_release);
  Offer();
}

bool CallStream::HasLeader() const {
  return leading_ != nullptr &&
         !leading_->has_ended.load(std::memory_order_relaxed);
}

void CallStream::Offer() {
  for (const Messages* messages : {&sent_, &waiting_}) {
    for (const auto& message : *messages) {
      if (message->live > 0) return message->changes.ChangeForOne();
    }
  }
}

bool CallStream::Start(SharedCall& call) {
  SteadyTime deadline = call.deadline;
  {
    absl::MutexLock lock(&mu_);
    if (!HasRoom(call)) return false;
    Add(call);
    if (call.is_cancelled) deadline = SteadyTime();
    expire_at_ = std::min(expire_at_, deadline);
    if (!is_telling_) Send();
  }
  driver_->ExpireAt(deadline);
  return true;
}

void CallStream::Cancel(SharedCall& call) {
  {
    absl::MutexLock lock(&mu_);
    call.is_cancelled = true;
    expire_at_ = SteadyTime();
  }
  driver_->ExpireAt(SteadyTime());
}

SteadyTime CallStream::Expire() {
  Ended ended;
  SteadyTime next = kSteadyNever;
  {
    absl::MutexLock lock(&mu_);
    const SteadyTime now = SteadyNow();
    if (expire_at_ > now) return expire_at_;
    bool is_late = false;
    for (const Messages* messages : {&sent_, &waiting_}) {
      for (const auto& message : *messages) {
        for (SharedCall* call : message->calls) {
          if (call == nullptr) continue;
          if (call->is_cancelled) {
            Leave(*call, CancelledByCaller(), ended);
          } else if (call->deadline <= now) {
            is_late = true;
            Leave(*call, TimeUp(), ended);
          } else {
            next = std::min(next, call->deadline);
          }
        }
      }
    }
    expire_at_ = next;
    if (is_late) GiveUpIfSilent(ended);
  }
  Tell(ended);
  return next;
}

bool CallStream::HasRoom(const SharedCall& call) const {
  return calls_waiting_ < kSharedCallsMax &&
         bytes_waiting_ + call.bytes <= kSharedBytesMax;
}

std::shared_ptr<SharedMessage> CallStream::Add(SharedCall& call) {
  call.has_ended.store(false, std::memory_order_relaxed);
  if (waiting_.empty() ||
      waiting_.back()->calls.size() == kSharedMessageCallsMax ||
      waiting_.back()->bytes + call.bytes > kSharedMessageBytesMax) {
    waiting_.push_back(std::make_shared<SharedMessage>());
  }
  const auto& message = waiting_.back();
  call.message = message.get();
  call.index = message->calls.size();
  message->calls.push_back(&call);
  message->bytes += call.bytes;
  ++message->live;
  ++calls_waiting_;
  bytes_waiting_ += call.bytes;
  return message;
}

void CallStream::Send() {
  while (!waiting_.empty() && sent_.size() < window_.messages()) {
    if (rpc_ && sent_.empty() && &rpc_->endpoint != &endpoints_.current()) {
      Retire();
    }
    if (!rpc_) Open();
    if (rpc_->is_ending || rpc_->is_writing) return;
    std::shared_ptr<SharedMessage> message = std::move(waiting_.front());
    waiting_.pop_front();
    if (message->live == 0) continue;
    Write(*message);
    sent_.push_back(std::move(message));
  }
}

void CallStream::Open() {
  rpc_ = std::make_unique<Rpc>(*this, endpoints_.current());
  rpc_->endpoint.connection.IsUp();
  // With the first message, which saves a packet and an event.
  rpc_->context.set_initial_metadata_corked(true);
  rpc_->rpc =
      rpc_->endpoint.cache.AsyncPipeline(&rpc_->context, &queue_, nullptr);
  if (driver_ != nullptr) keep_ = shared_from_this();
}

void CallStream::Write(SharedMessage& message) {
  if (message.live < message.calls.size()) {
    std::erase(message.calls, nullptr);
    for (size_t i = 0; i < message.calls.size(); ++i) {
      message.calls[i]->index = i;
    }
  }
  auto& operations = *rpc_->request.mutable_operations();
  for (SharedCall* call : message.calls) {
    --calls_waiting_;
    bytes_waiting_ -= call->bytes;
    operations.UnsafeArenaAddAllocated(call->operation.release());
  }
  rpc_->request.set_namespace_(ns_);
  rpc_->request.set_independent(true);
  message.is_sent = true;
  used_at_ = message.sent_at = SteadyNow();
  rpc_->is_writing = true;
  rpc_->rpc->Write(rpc_->request, rpc_->tag(Step::kWritten));
  if (!std::exchange(rpc_->is_reading, true)) {
    rpc_->rpc->Read(&rpc_->response, rpc_->tag(Step::kRead));
  }
  // It is serialized: each operation goes back to its caller, who may have to
  // repeat it.
  for (size_t i = message.calls.size(); i > 0; --i) {
    message.calls[i - 1]->operation.reset(operations.UnsafeArenaReleaseLast());
  }
}

void CallStream::Happened(Rpc& rpc, Step step, bool ok) {
  Ended ended;
  std::shared_ptr<CallStream> kept;
  {
    absl::MutexLock lock(&mu_);
    --rpc.pending;
    if (&rpc != rpc_.get()) {
      if (rpc.pending > 0) return;
      std::erase_if(retired_, [&](const auto& it) { return it.get() == &rpc; });
      kept = TakeKept();
      return;
    }
    switch (step) {
      case Step::kWritten:
        rpc.is_writing = false;
        break;
      case Step::kRead:
        OnRead(rpc, ok, ended);
        break;
      case Step::kFinished:
        Fail(FromGrpcStatus(rpc.status), ended);
        break;
    }
    if (rpc_.get() == &rpc && rpc.is_ending && rpc.pending == 0) {
      rpc.rpc->Finish(&rpc.status, rpc.tag(Step::kFinished));
    }
    is_telling_ = !ended.calls.empty();
    // The thread whose call has ended leaves that to the next leader: until it
    // runs, calls gather.
    if (HasLeader() || (driver_ != nullptr && !is_telling_)) Send();
    kept = TakeKept();
  }
  Tell(ended);
  if (ended.calls.empty()) return;
  absl::MutexLock lock(&mu_);
  is_telling_ = false;
  Send();
}

void CallStream::OnRead(Rpc& rpc, bool ok, Ended& ended) {
  if (!ok) {
    rpc.is_ending = true;
    return;
  }
  const std::shared_ptr<SharedMessage> message =
      sent_.empty() ? nullptr : sent_.front();
  if (message == nullptr || static_cast<size_t>(rpc.response.results_size()) !=
                                message->calls.size()) {
    return Fail(absl::InternalError(
                    "the server gave another number of results than there were "
                    "operations: is it of this version?"),
                ended);
  }
  sent_.pop_front();
  rpc.has_answered = true;
  used_at_ = SteadyNow();
  window_.CountAnswer(used_at_ - message->sent_at);
  for (size_t i = 0; i < message->calls.size(); ++i) {
    SharedCall* const call = message->calls[i];
    if (call == nullptr) continue;
    call->end = SharedCall::End::kAnswered;
    call->endpoint = &rpc.endpoint;
    call->answer.Swap(rpc.response.mutable_results(static_cast<int>(i)));
    End(*call, message, ended);
  }
  rpc.rpc->Read(&rpc.response, rpc.tag(Step::kRead));
}

void CallStream::Retire() {
  rpc_->context.TryCancel();
  if (rpc_->pending > 0) {
    retired_.push_back(std::move(rpc_));
  } else {
    rpc_.reset();
  }
}

void CallStream::Fail(const absl::Status& why, Ended& ended) {
  const bool has_answered = rpc_->has_answered;
  endpoints_.MoveOn(rpc_->endpoint, why);
  absl::Status status = why.ok() ? absl::UnavailableError(
                                       "the server ended the stream without an "
                                       "answer")
                                 : why;
  // The server says that it has applied none of what it has not answered, as it
  // is stopping, its connection is old or the token has expired: another stream
  // may do, elsewhere or with a fresh token.
  const bool is_unapplied = has_answered && !MaybeApplied(why);
  const auto fail =
      [&](const Messages& messages, bool is_anew, const absl::Status& with)
          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
            for (const auto& message : messages) {
              for (SharedCall* call : message->calls) {
                if (call == nullptr) continue;
                call->end = is_anew ? SharedCall::End::kAgain
                                    : SharedCall::End::kFailed;
                call->status = with;
                End(*call, message, ended);
              }
            }
          };
  Messages sent = std::exchange(sent_, {});
  Messages waiting = std::exchange(waiting_, {});
  calls_waiting_ = bytes_waiting_ = 0;
  fail(sent, is_unapplied, status);
  fail(waiting, has_answered, NotSent(status));
  Retire();
}

void CallStream::Leave(SharedCall& call, absl::Status why, Ended& ended) {
  SharedMessage& message = *call.message;
  if (!message.is_sent) {
    --calls_waiting_;
    bytes_waiting_ -= call.bytes;
    why = NotSent(std::move(why));
  }
  message.calls[call.index] = nullptr;
  call.end = SharedCall::End::kFailed;
  call.status = std::move(why);
  --message.live;
  if (call.done) ended.calls.push_back(&call);
  call.has_ended.store(true, std::memory_order_release);
}

void CallStream::GiveUpIfSilent(Ended& ended) {
  const auto is_awaited = [](const auto& message) { return message->live > 0; };
  if (rpc_ == nullptr || sent_.empty() ||
      std::ranges::any_of(sent_, is_awaited)) {
    return;
  }
  // Waiting calls go on with the next stream.
  rpc_->has_answered = true;
  Fail(TimeUp(), ended);
}

void CallStream::End(SharedCall& call,
                     const std::shared_ptr<SharedMessage>& message,
                     Ended& ended) {
  --message->live;
  if (call.done) {
    ended.calls.push_back(&call);
  } else if (&call != leading_ &&
             (ended.messages.empty() || ended.messages.back() != message)) {
    ended.messages.push_back(message);
  }
  // From here on a thread that waits for it may destroy it.
  call.has_ended.store(true, std::memory_order_release);
}

void CallStream::Tell(const Ended& ended) {
  for (const auto& message : ended.messages) message->changes.ChangeForAll();
  for (SharedCall* call : ended.calls) std::exchange(call->done, nullptr)();
}

}  // namespace timecache
