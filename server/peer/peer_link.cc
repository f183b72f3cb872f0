#include "server/peer/peer_link.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "server/base/check.h"
#include "server/base/error.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

absl::Status TooMuch(const std::string& address) {
  return ErrorWithReason(absl::StatusCode::kResourceExhausted,
                         Reason::kMaxMemory,
                         absl::StrCat("too many calls wait for the node at ",
                                      address, ", which answers them"));
}

// Whether another attempt ends likewise, until someone changes something.
bool IsRefusal(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
         status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
}

// Of a node that was not reached.
std::string WhyNotReached(const grpc::Status& status) {
  std::string why = status.error_message();
  // All that gRPC says of a TLS alert that comes once this side is done.
  if (absl::StrContains(why, "Socket closed")) {
    absl::StrAppend(&why,
                    ": it may not trust this node's certificate, or one of the "
                    "two nodes has no TLS");
  }
  return why;
}

// This thread's.
thread_local PeerLink::Together* together = nullptr;

}  // namespace

// Keeps itself and the link until gRPC is done with it. The link calls it with its
// lock, and only while it is the link's stream; it calls the link without.
class PeerLink::Stream final
    : public grpc::ClientBidiReactor<peer::v1::ExchangeRequest,
                                     peer::v1::ExchangeResponse> {
 public:
  static std::shared_ptr<Stream> Start(std::shared_ptr<PeerLink> link,
                                       peer::v1::PeerService::Stub* stub) {
    const auto stream = std::make_shared<Stream>(std::move(link));
    stream->self_ = stream;
    const auto& authorization = stream->link_->options_.authorization;
    if (authorization) {
      const std::string value = authorization();
      if (!value.empty()) {
        stream->context_.AddMetadata("authorization", value);
      }
    }
    stub->async()->Exchange(&stream->context_, stream.get());
    stream->StartRead(&stream->response_);
    // For writes that no reaction of the stream starts: until a read fails.
    stream->AddHold();
    stream->StartCall();
    return stream;
  }
  explicit Stream(std::shared_ptr<PeerLink> link) : link_(std::move(link)) {}

  void Cancel() { context_.TryCancel(); }
  // An empty one to fill, while none is being written.
  peer::v1::ExchangeRequest* NewRequest() {
    request_.Clear();
    return &request_;
  }
  void Write() { StartWrite(&request_); }
  void EndWrites() { StartWritesDone(); }

 private:
  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) link_->OnConnected();
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      link_->OnEnding();
      RemoveHold();
      return;
    }
    if (!link_->OnMessage(&response_)) Cancel();
    StartRead(&response_);
  }
  void OnWriteDone(bool ok) override {
    // Otherwise the stream is about to end.
    if (ok) link_->OnWritten();
  }
  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<PeerLink> link = link_;
    // The link has another reference, and drops it.
    self_.reset();
    link->OnBroken(status);
  }

  const std::shared_ptr<PeerLink> link_;
  std::shared_ptr<Stream> self_;
  grpc::ClientContext context_;
  peer::v1::ExchangeRequest request_;
  peer::v1::ExchangeResponse response_;
};

PeerLink::PeerLink(Options options) : options_(std::move(options)) {}

PeerLink::~PeerLink() { TIMECACHED_CHECK(stream_ == nullptr); }

// --- Calls.

uint64_t PeerLink::Start(Call call) {
  absl::MutexLock lock(&mu_);
  const uint64_t id = next_id_;
  next_id_ += 1 + call.readers.size();
  absl::Status refusal;
  if (stopped_) {
    refusal = NotSent();
  } else if (calls_.size() >= kMaxPeerCalls ||
             call.body.size() > kMaxPeerFrameBytes ||
             unsent_bytes_ + queue_.bytes() >= kMaxPeerQueuedBytes) {
    refusal = TooMuch(options_.address);
  }
  if (!refusal.ok()) {
    options_.counts->failed_calls.fetch_add(1, std::memory_order_relaxed);
    mu_.Unlock();
    call.answered(std::move(refusal));
    mu_.Lock();
    return id;
  }
  options_.counts->calls.fetch_add(1, std::memory_order_relaxed);
  Pending& pending = calls_[id];
  pending.body = std::make_shared<const std::string>(std::move(call.body));
  pending.reads = call.reads;
  pending.readers = std::move(call.readers);
  pending.on_applied = std::move(call.on_applied);
  pending.answered = std::move(call.answered);
  const Time now = SteadyClock::now();
  NoteUnsent(&pending, now + kConnectPatience);
  if (connected_ && !leaving_) {
    pending.deadline = now + options_.call_timeout;
    Push({id, peer::v1::FRAME_KIND_CALL, pending.body});
  } else if (stream_ == nullptr && now >= next_connect_) {
    Connect();
  }
  return id;
}

void PeerLink::NoteUnsent(Pending* pending, Time deadline) {
  pending->sent = false;
  pending->deadline = deadline;
  unsent_bytes_ += pending->body->size();
}

void PeerLink::NoteSent(uint64_t id) {
  const auto call = calls_.find(id);
  // It has ended, or this is another part of it.
  if (call == calls_.end() || call->second.sent) return;
  Pending& pending = call->second;
  unsent_bytes_ -= pending.body->size();
  pending.sent = true;
  if (++pending.sends > 1) {
    options_.counts->repeated_calls.fetch_add(1, std::memory_order_relaxed);
  }
  if (!pending.reads || pending.sends >= kMaxSends) pending.body.reset();
}

PeerLink::Calls::iterator PeerLink::End(Calls::iterator call,
                                        absl::Status status, Actions* actions) {
  Pending& pending = call->second;
  if (pending.answered) {
    options_.counts->failed_calls.fetch_add(1, std::memory_order_relaxed);
    actions->push_back([answered = std::move(pending.answered),
                        status = std::move(status)]() mutable {
      answered(std::move(status));
    });
  }
  if (!pending.sent) unsent_bytes_ -= pending.body->size();
  if (pending.sent && connected_ && !pending.readers.empty()) {
    pending.answered = nullptr;
    pending.deadline = Time::max();
    return ++call;
  }
  return calls_.erase(call);
}

absl::Status PeerLink::NotSent() const {
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, Reason::kNotOwner,
      absl::StrCat("the node at ", options_.address,
                   ", which owns, is not reached from this one",
                   why_broken_.empty() ? "" : ": ", why_broken_));
}

absl::Status PeerLink::NotAnswered(absl::string_view why) const {
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, Reason::kOwnershipLost,
      absl::StrCat("the node at ", options_.address,
                   " has not answered a call that this node sent it (", why,
                   "): what it writes may or may not be applied"));
}

// --- Readers.

void PeerLink::Send(uint64_t reader, peer::v1::FrameKind kind,
                    std::string body) {
  absl::MutexLock lock(&mu_);
  if (!readers_.contains(reader)) return;
  Push({reader, kind, std::make_shared<const std::string>(std::move(body))});
}

void PeerLink::Close(uint64_t reader) {
  // Not destroyed under the lock.
  std::shared_ptr<PeerReader> closed;
  absl::MutexLock lock(&mu_);
  const auto it = readers_.find(reader);
  if (it == readers_.end()) return;
  closed = std::move(it->second);
  readers_.erase(it);
  Push({reader, peer::v1::FRAME_KIND_CLOSE, nullptr});
}

// --- The stream.

void PeerLink::Connect() {
  if (stub_ == nullptr) {
    stub_ = peer::v1::PeerService::NewStub(options_.make_channel());
  }
  stream_ = Stream::Start(shared_from_this(), stub_.get());
}

void PeerLink::Push(PeerFrame frame) {
  if (!connected_ || leaving_) return;
  queue_.Push(std::move(frame));
  Pump();
}

bool PeerLink::Gathers() {
  if (leaving_ || queue_.bytes() >= kFullPeerMessageBytes) return false;
  if (together != nullptr) {
    auto& links = together->links_;
    const auto is_this = [this](const auto& link) {
      return link.get() == this;
    };
    if (std::none_of(links.begin(), links.end(), is_this)) {
      links.push_back(shared_from_this());
    }
    return true;
  }
  return written_ > read_ && SteadyClock::now() - last_write_ < options_.gather;
}

PeerLink::Together::Together() {
  if (together == nullptr) together = this;
}

PeerLink::Together::~Together() {
  if (together != this) return;
  together = nullptr;
  for (const auto& link : links_) {
    absl::MutexLock lock(&link->mu_);
    link->Pump();
  }
}

void PeerLink::Pump() {
  if (!connected_ || writing_ || queue_.empty() || Gathers()) return;
  peer::v1::ExchangeRequest* const request = stream_->NewRequest();
  queue_.Take(request->mutable_frames());
  last_write_ = SteadyClock::now();
  request->set_sent_us(absl::ToInt64Microseconds(
      absl::FromChrono(last_write_.time_since_epoch())));
  for (const peer::v1::Frame& frame : request->frames()) {
    if (frame.kind() == peer::v1::FRAME_KIND_CALL) NoteSent(frame.id());
  }
  options_.counts->messages_sent.fetch_add(1, std::memory_order_relaxed);
  options_.counts->bytes_sent.fetch_add(request->ByteSizeLong(),
                                        std::memory_order_relaxed);
  ++written_;
  writing_ = true;
  stream_->Write();
}

void PeerLink::OnConnected() {
  absl::MutexLock lock(&mu_);
  // gRPC may say first that there is nothing more to read.
  if (stopped_ || ending_) return;
  connected_ = true;
  reached_ = true;
  back_off_ = kMinBackOff;
  why_broken_.clear();
  logged_.clear();
  options_.counts->open.fetch_add(1, std::memory_order_relaxed);
  const Time deadline = SteadyClock::now() + options_.call_timeout;
  for (auto& [id, pending] : calls_) {
    pending.deadline = deadline;
    queue_.Push({id, peer::v1::FRAME_KIND_CALL, pending.body});
  }
  Pump();
}

void PeerLink::OnWritten() {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  if (connected_ && leaving_ && queue_.empty()) return stream_->EndWrites();
  Pump();
}

bool PeerLink::OnMessage(peer::v1::ExchangeResponse* message) {
  Actions actions;
  bool good = true;
  {
    absl::MutexLock lock(&mu_);
    if (!connected_) return false;
    options_.counts->messages_received.fetch_add(1, std::memory_order_relaxed);
    options_.counts->bytes_received.fetch_add(message->ByteSizeLong(),
                                              std::memory_order_relaxed);
    for (peer::v1::Frame& frame : *message->mutable_frames()) {
      const FrameJoiner::Joined joined = joiner_.Join(&frame);
      good = joined != FrameJoiner::Joined::kTooLarge;
      if (!good) break;
      if (joined == FrameJoiner::Joined::kWhole) Receive(&frame, &actions);
    }
    read_ = message->messages_read();
    // Before the answers are passed on: the other node goes on meanwhile.
    Pump();
  }
  Run(std::move(actions));
  return good;
}

void PeerLink::Receive(peer::v1::Frame* frame, Actions* actions) {
  const uint64_t id = frame->id();
  switch (frame->kind()) {
    case peer::v1::FRAME_KIND_ANSWER:
      return ReceiveAnswer(id, std::move(*frame->mutable_body()), actions);
    case peer::v1::FRAME_KIND_APPLIED: {
      const auto call = calls_.find(id);
      if (call == calls_.end()) return;
      call->second.applied = true;
      if (!call->second.on_applied) return;
      actions->push_back(std::exchange(call->second.on_applied, nullptr));
      return;
    }
    case peer::v1::FRAME_KIND_CHUNK: {
      const auto reader = readers_.find(id);
      if (reader == readers_.end()) return;
      actions->push_back(
          [reader = reader->second, body = std::move(*frame->mutable_body())] {
            reader->OnChunk(body);
          });
      return;
    }
    case peer::v1::FRAME_KIND_GO_AWAY:
      return GoAway();
    default:
      return;
  }
}

// What was not sent is sent on the next stream, or to another node.
void PeerLink::GoAway() {
  if (leaving_) return;
  leaving_ = true;
  queue_.DropUnbegun();
  const Time deadline = SteadyClock::now() + kConnectPatience;
  for (auto& [id, pending] : calls_) {
    if (!pending.sent) pending.deadline = std::min(pending.deadline, deadline);
  }
  if (!writing_) stream_->EndWrites();
}

void PeerLink::ReceiveAnswer(uint64_t id, std::string body, Actions* actions) {
  const auto call = calls_.find(id);
  if (call == calls_.end()) return;
  Pending pending = std::move(call->second);
  calls_.erase(call);
  for (size_t i = 0; i < pending.readers.size(); ++i) {
    const uint64_t reader = id + 1 + i;
    if (pending.answered) {
      readers_.emplace(reader, std::move(pending.readers[i]));
    } else {
      Push({reader, peer::v1::FRAME_KIND_CLOSE, nullptr});
    }
  }
  if (!pending.answered) return;
  actions->push_back(
      [answered = std::move(pending.answered),
       body = std::move(body)]() mutable { answered(std::move(body)); });
}

void PeerLink::OnEnding() {
  absl::MutexLock lock(&mu_);
  ending_ = true;
  if (!connected_) return;
  connected_ = false;
  options_.counts->open.fetch_sub(1, std::memory_order_relaxed);
}

void PeerLink::EndSent(Actions* actions) {
  queue_ = FrameQueue();
  joiner_ = FrameJoiner();
  written_ = 0;
  read_ = 0;
  const Time deadline = SteadyClock::now() + kConnectPatience;
  for (auto call = calls_.begin(); call != calls_.end();) {
    Pending& pending = call->second;
    if (!pending.sent) {
      pending.deadline = std::min(pending.deadline, deadline);
      ++call;
    } else if (pending.answered && pending.body != nullptr &&
               !pending.applied) {
      NoteUnsent(&pending, deadline);
      ++call;
    } else {
      call = End(call, NotAnswered(why_broken_), actions);
    }
  }
  for (auto& [id, reader] : readers_) {
    actions->push_back([reader = std::move(reader)] { reader->OnBroken(); });
  }
  readers_.clear();
}

void PeerLink::OnBroken(const grpc::Status& status) {
  Actions actions;
  bool logs = false;
  std::string why;
  {
    absl::MutexLock lock(&mu_);
    const bool reached = std::exchange(reached_, false);
    if (status.ok()) {
      why_broken_ = "it has ended the stream";
    } else {
      why_broken_ = reached ? status.error_message() : WhyNotReached(status);
    }
    why = why_broken_;
    writing_ = false;
    leaving_ = false;
    ending_ = false;
    // It is tried again and again.
    logs = !reached && !stopped_ && logged_ != why;
    if (logs) logged_ = why;
    EndSent(&actions);
  }
  if (logs) {
    Log(LogLevel::kWarning,
        IsRefusal(status) ? "peer_refused" : "peer_unreached",
        {{"address", options_.address}, {"why", why}});
  }
  Run(std::move(actions));
  absl::MutexLock lock(&mu_);
  // Destroys it, before Stop knows: its context has the channel, which must not be
  // destroyed last by this thread.
  stream_.reset();
  if (IsRefusal(status)) stub_.reset();
  next_connect_ = SteadyClock::now() + back_off_;
  back_off_ = std::min<Duration>(2 * back_off_, kMaxBackOff);
}

void PeerLink::Look() {
  Actions actions;
  {
    absl::MutexLock lock(&mu_);
    const Time now = SteadyClock::now();
    for (auto call = calls_.begin(); call != calls_.end();) {
      if (now < call->second.deadline) {
        ++call;
        continue;
      }
      absl::Status status =
          call->second.sent ? NotAnswered("in time") : NotSent();
      call = End(call, std::move(status), &actions);
    }
    Pump();
    if (stream_ == nullptr && !stopped_ && !calls_.empty() &&
        now >= next_connect_) {
      Connect();
    }
  }
  Run(std::move(actions));
}

void PeerLink::Stop() {
  // The channel ends here. gRPC 1.51 ends its threads with the last of all channels and
  // servers, and aborts where that is destroyed by one of them.
  std::unique_ptr<peer::v1::PeerService::Stub> stub;
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  if (stream_ != nullptr) stream_->Cancel();
  const auto is_over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stream_ == nullptr;
  };
  mu_.Await(absl::Condition(&is_over));
  stub = std::move(stub_);
  Actions actions;
  for (auto call = calls_.begin(); call != calls_.end();) {
    call = End(call, NotSent(), &actions);
  }
  mu_.Unlock();
  Run(std::move(actions));
  mu_.Lock();
}

void PeerLink::Run(Actions actions) {
  for (auto& action : actions) action();
}

}  // namespace timecache::server
