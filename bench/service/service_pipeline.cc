#include "bench/service/service_pipeline.h"

#include <algorithm>
#include <cstring>

#include "timecache/v1/data.pb.h"

namespace timecache::bench {
namespace {

constexpr char kMethod[] = "/timecache.v1.TimeCacheService/Pipeline";

// Of each get's answer: a time that is a round number takes less than others.
constexpr size_t kMaxSlackBytes = 4 * kOperations;

// Of this answer all is looked at.
void CheckAll(const grpc::ByteBuffer& answer, bool is_put) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!answer.Dump(&slices).ok()) Fail("an answer cannot be read");
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  v1::ExecuteResponse response;
  if (!response.ParseFromString(bytes) ||
      response.results_size() != static_cast<int>(kOperations)) {
    Fail("an answer is none to the message");
  }
  for (const v1::OperationResult& result : response.results()) {
    const bool whole = is_put
                           ? result.put().version() != 0
                           : result.get().entry().value().size() == kValueBytes;
    if (!whole) Fail("an answer is not whole: " + result.ShortDebugString());
  }
}

}  // namespace

PipelineMessage::PipelineMessage(bool is_put) {
  v1::ExecuteRequest request;
  request.set_namespace_("bench");
  const std::string key(kKeyBytes, '\xff');  // found again below
  for (size_t i = 0; i < kOperations; ++i) {
    v1::Operation* const operation = request.add_operations();
    if (is_put) {
      operation->mutable_put()->set_key(key);
      operation->mutable_put()->set_value(std::string(kValueBytes, 'v'));
    } else {
      operation->mutable_get()->set_key(key);
    }
  }
  bytes_ = request.SerializeAsString();
  for (size_t at = bytes_.find(key); at != std::string::npos;
       at = bytes_.find(key, at + kKeyBytes)) {
    keys_.push_back(bytes_.data() + at);
  }
  const grpc::Slice slice(bytes_.data(), bytes_.size(),
                          grpc::Slice::STATIC_SLICE);
  buffer_ = grpc::ByteBuffer(&slice, 1);
}

PipelineCaller::PipelineCaller(Turn* turn, uint64_t seed,
                               grpc::GenericStub* stub, bool is_put,
                               int in_flight)
    : Caller(turn, seed), stub_(stub), is_put_(is_put) {
  for (int i = 0; i < in_flight; ++i) {
    slots_.push_back(std::make_unique<Slot>(is_put));
  }
}

void PipelineCaller::Start() {
  stub_->PrepareBidiStreamingCall(&context_, kMethod, grpc::StubOptions(),
                                  this);
  StartRead(&response_);
  {
    absl::MutexLock lock(&mu_);
    Pump();
  }
  StartCall();
}

void PipelineCaller::OnReadDone(bool ok) {
  if (!ok) return;  // OnDone tells why.
  Check();
  {
    absl::MutexLock lock(&mu_);
    AddLatency(slots_[answered_ % slots_.size()]->began);
    ++answered_;
    Pump();
  }
  StartRead(&response_);
}

void PipelineCaller::OnWriteDone(bool ok) {
  if (!ok) return;
  absl::MutexLock lock(&mu_);
  writing_ = false;
  Pump();
}

void PipelineCaller::OnDone(const grpc::Status& status) {
  if (!status.ok()) Fail("a stream failed: " + status.error_message());
  {
    absl::MutexLock lock(&mu_);
    if (!closed_) Fail("a stream ended by itself");
  }
  End();
}

// Does what can be done next.
void PipelineCaller::Pump() {
  if (writing_ || closed_) return;
  if (stopped()) {
    if (sent_ > answered_) return;
    closed_ = true;
    StartWritesDone();
  } else if (sent_ - answered_ < slots_.size()) {
    Slot& slot = *slots_[sent_ % slots_.size()];
    for (char* const key : slot.message.keys()) {
      std::memcpy(key, NextKey().data(), kKeyBytes);
    }
    ++sent_;
    writing_ = true;
    slot.began = Clock::now();
    StartWrite(&slot.message.buffer());
  }
}

// The first one in whole, the others by their length: a failure or a miss is of
// another one, and looking closer would take the client longer than sending.
void PipelineCaller::Check() {
  const size_t bytes = response_.Length();
  if (!first_bytes_.has_value()) {
    CheckAll(response_, is_put_);
    first_bytes_ = bytes;
  }
  const size_t more = std::max(bytes, *first_bytes_);
  const size_t less = std::min(bytes, *first_bytes_);
  if (more - less > kMaxSlackBytes) Fail("an answer is not whole");
}

}  // namespace timecache::bench
