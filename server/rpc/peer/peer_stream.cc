#include "server/rpc/peer/peer_stream.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"
#include "server/rpc/call/server_limits.h"
#include "server/rpc/peer/hosted_call.h"

namespace timecache::server {

PeerStream::PeerStream(const CallGate& gate,
                       grpc::CallbackServerContext* context, const Parts* parts)
    : StreamReactor(context),
      gate_(gate),
      parts_(*parts),
      call_(gate, methods::kExchange, context) {}

PeerStream* PeerStream::Start(const CallGate& gate,
                              grpc::CallbackServerContext* context,
                              const Parts* parts) {
  PeerStream* const stream =
      Keep(std::shared_ptr<PeerStream>(new PeerStream(gate, context, parts)));
  absl::Status status = stream->Authorize();
  if (status.ok()) status = parts->streams->Add(stream->self());
  absl::MutexLock lock(&stream->mu_);
  if (status.ok()) {
    // So that the other node knows that what it sends is read.
    stream->StartSendInitialMetadata();
    stream->LeaveOnceOld();
  } else {
    stream->gone_ = true;
    stream->End(std::move(status));
  }
  stream->Pump();
  return stream;
}

absl::Status PeerStream::Authorize() {
  absl::Status status = call_.Identify();
  if (!status.ok() || !call_.has_rules()) return status;
  const std::string caller = call_.Principal();
  if (!parts_.principal.empty() && caller == parts_.principal) return status;
  // Reported as any other.
  static_cast<void>(call_.Deny(Verbs(), kWholeServer));
  return ErrorWithReason(
      absl::StatusCode::kPermissionDenied, Reason::kAccessDenied,
      absl::StrCat(
          "principal \"", caller,
          "\" is not cluster.peer_principal: only nodes of the cluster "
          "may call this"),
      {{"principal", caller}});
}

// --- What the other node sends.

void PeerStream::OnReadDone(bool ok) {
  peer::v1::ExchangeRequest request;
  absl::Status status;
  if (ok) {
    status = TakeRequest(request_, &request);
    request_.Clear();
  }
  if (ok && status.ok()) {
    call_.CountReceived();
    {
      absl::MutexLock lock(&mu_);
      making_ = true;
    }
    NoteDelay(request.sent_us());
    for (peer::v1::Frame& frame : *request.mutable_frames()) {
      const FrameJoiner::Joined joined = joiner_.Join(&frame);
      if (joined == FrameJoiner::Joined::kWhole) Receive(&frame);
      if (joined == FrameJoiner::Joined::kTooLarge) {
        status =
            ErrorWithReason(absl::StatusCode::kInvalidArgument,
                            Reason::kRequestTooLarge, "a frame is too large");
        break;
      }
    }
  }
  absl::MutexLock lock(&mu_);
  reading_ = false;
  making_ = false;
  if (ok) ++read_;
  if (!status.ok()) {
    gone_ = true;
    End(std::move(status));
  } else if (!ok) {
    // It has sent all that it will; or it is gone, and a write fails.
    gone_ = !leaving_;
    End(leaving_ ? OpenStreams::DrainingError()
                 : absl::CancelledError("the other node is gone"));
  }
  Pump();
}

void PeerStream::NoteDelay(int64_t sent_us) {
  const int64_t delay_us =
      absl::ToInt64Microseconds(absl::FromChrono(
          std::chrono::steady_clock::now().time_since_epoch())) -
      sent_us;
  least_delay_us_ = std::min(least_delay_us_, delay_us);
  late_ = delay_us - least_delay_us_ > kMaxPeerDelayUs;
}

absl::Status PeerStream::CheckCall() const {
  if (!late_) return CheckService();
  return ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kNotOwner,
                         "the call was on its way between two nodes for too "
                         "long: it was not made");
}

void PeerStream::Receive(peer::v1::Frame* frame) {
  if (frame->kind() != peer::v1::FRAME_KIND_CALL) return ToReader(*frame);
  {
    absl::MutexLock lock(&mu_);
    ++calls_;
  }
  HostedCall::Start(self(), frame->id(), std::move(*frame->mutable_body()));
}

void PeerStream::ToReader(const peer::v1::Frame& frame) {
  std::shared_ptr<HostedReader> reader;
  {
    absl::MutexLock lock(&mu_);
    const auto it = readers_.find(frame.id());
    if (it == readers_.end()) return;
    reader = it->second;
    if (frame.kind() == peer::v1::FRAME_KIND_CLOSE) readers_.erase(it);
  }
  reader->OnFrame(frame.kind(), frame.body());
}

// --- What it is sent.

void PeerStream::Send(PeerFrame frame) {
  absl::MutexLock lock(&mu_);
  Push(std::move(frame));
  Pump();
}

void PeerStream::Push(PeerFrame frame) {
  if (!ended() && !gone_) queue_.Push(std::move(frame));
}

void PeerStream::Answer(PeerFrame frame) {
  absl::MutexLock lock(&mu_);
  Push(std::move(frame));
  --calls_;
  Pump();
}

void PeerStream::EndCall() {
  absl::MutexLock lock(&mu_);
  --calls_;
  Pump();
}

bool PeerStream::AddReaders(
    std::vector<std::shared_ptr<HostedReader>> readers) {
  {
    absl::MutexLock lock(&mu_);
    if (!ended() && !gone_) {
      for (auto& reader : readers) readers_.emplace(reader->id(), reader);
      return true;
    }
  }
  for (const auto& reader : readers) reader->Close();
  return false;
}

void PeerStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  message_.Clear();
  if (ok) {
    call_.CountSent();
  } else {
    gone_ = true;
    End(absl::CancelledError("the other node is gone"));
  }
  Pump();
}

// Does what can be done next.
void PeerStream::Pump() {
  if (ended()) return;
  const bool gathers = making_ && queue_.bytes() < kFullPeerMessageBytes;
  if (!writing_ && !gone_ && !gathers && (!queue_.empty() || told_ < read_)) {
    peer::v1::ExchangeResponse response;
    queue_.Take(response.mutable_frames());
    response.set_messages_read(read_);
    told_ = read_;
    message_ = ToBytes(response);
    writing_ = true;
    StartWrite(&message_);
  }
  if (end_.has_value()) {
    if (writing_ || calls_ > 0) return;
    Finish(call_.End(*end_));
    return;
  }
  if (!reading_ && calls_ < kMaxPeerCalls &&
      queue_.bytes() < kMaxPeerAnswerBytes) {
    reading_ = true;
    StartRead(&request_);
  }
}

// --- Its end.

// The first status stays.
void PeerStream::End(absl::Status status) {
  if (!end_.has_value()) end_ = std::move(status);
}

// The other node sends no more calls, and then it ends, with its readers.
void PeerStream::AskToLeave() {
  leaving_ = true;
  queue_.Push({0, peer::v1::FRAME_KIND_GO_AWAY, nullptr});
  Pump();
}

void PeerStream::LeaveOnceOld() {
  if (parts_.max_connection_age <= absl::ZeroDuration()) return;
  const ResponseAccountRef account = gate_.AccountOf(context_->peer());
  if (!account) return;
  const auto at = OldAt(account->use().opened_at(), parts_.max_connection_age);
  const auto in = std::chrono::duration_cast<std::chrono::microseconds>(
      at - std::chrono::steady_clock::now());
  // The alarm must not keep the stream that it belongs to.
  old_.Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_micros(in.count(), GPR_TIMESPAN)),
           [weak = std::weak_ptr<PeerStream>(self())](bool ok) {
             const std::shared_ptr<PeerStream> stream = weak.lock();
             if (!ok || stream == nullptr) return;
             absl::MutexLock lock(&stream->mu_);
             if (!stream->ended() && !stream->gone_) stream->AskToLeave();
           });
}

// Its readers end by the hub.
bool PeerStream::OnDrain() {
  absl::MutexLock lock(&mu_);
  if (ended() || gone_) return false;
  AskToLeave();
  return true;
}

void PeerStream::OnAccessChanged() {
  absl::MutexLock lock(&mu_);
  if (ended() || !call_.stale()) return;
  absl::Status status = call_.Renew();
  if (status.ok()) status = Authorize();
  if (status.ok()) return;
  gone_ = true;
  End(std::move(status));
  Pump();
}

void PeerStream::Leave() {
  parts_.streams->Remove(this);
  absl::flat_hash_map<uint64_t, std::shared_ptr<HostedReader>> readers;
  {
    absl::MutexLock lock(&mu_);
    gone_ = true;
    readers.swap(readers_);
  }
  for (const auto& [id, reader] : readers) reader->Close();
}

}  // namespace timecache::server
