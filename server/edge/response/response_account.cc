#include "server/edge/response/response_account.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/edge/response/open_streams.h"

namespace timecache::server {

HeldResponse::HeldResponse(ResponseAccountRef account, int64_t bytes,
                           bool patient)
    : account_(std::move(account)),
      bytes_(bytes),
      patient_(patient),
      since_(std::chrono::steady_clock::now()) {
  account_->Charge(bytes_);
  if (patient_) account_->patient_bytes_ += bytes_;
  absl::MutexLock lock(&account_->mu_);
  (patient_ ? account_->held_patiently_ : account_->held_).insert(since_);
}

HeldResponse::~HeldResponse() {
  {
    absl::MutexLock lock(&account_->mu_);
    auto& held = patient_ ? account_->held_patiently_ : account_->held_;
    held.erase(held.find(since_));
  }
  if (patient_) account_->patient_bytes_ -= bytes_;
  account_->Charge(-bytes_);
}

int64_t ResponseAccount::impatient_bytes() const {
  return bytes() - patient_bytes_.load(std::memory_order_relaxed);
}

grpc::Slice ResponseAccount::NewSlice(size_t size, bool patient,
                                      int64_t small_bytes) {
  auto bytes = static_cast<int64_t>(size);
  if (size < kMinCountedBytes) {
    if (small_bytes == 0) return grpc::Slice(size);
    bytes = small_bytes;
  }
  struct Buffer {
    HeldResponse held;
    std::unique_ptr<uint8_t[]> bytes;
  };
  auto buffer = std::unique_ptr<Buffer>(
      new Buffer{{shared_from_this(), bytes, patient},
                 std::unique_ptr<uint8_t[]>(new uint8_t[size])});
  uint8_t* const memory = buffer->bytes.get();
  // gRPC frees it, on any of its threads and under its locks.
  return grpc::Slice(
      memory, size, [](void* held) { delete static_cast<Buffer*>(held); },
      buffer.release());
}

ResponseAccount::SteadyTime ResponseAccount::OldestSince(bool patient_too,
                                                         SteadyTime now) const {
  absl::MutexLock lock(&mu_);
  SteadyTime oldest = now;
  if (!held_.empty()) oldest = std::min(oldest, *held_.begin());
  if (patient_too && !held_patiently_.empty()) {
    oldest = std::min(oldest, *held_patiently_.begin());
  }
  return oldest;
}

void ResponseAccount::Charge(int64_t bytes) {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > 0) {
    pool_->Add(bytes);
  } else {
    pool_->Release(-bytes);
  }
}

void ResponseAccount::EndForCalls() {
  if (can_end_ && !ended_.exchange(true)) pool_->Ring();
}

void ResponseAccount::AnswerCall() {
  calls_.fetch_add(1, std::memory_order_relaxed);
  Charge(kCallBytes);
}

void ResponseAccount::EndCall(bool answered) {
  use_->EndCall();
  if (!answered) return;
  calls_.fetch_sub(1, std::memory_order_relaxed);
  calls_done_.fetch_add(1, std::memory_order_relaxed);
  Charge(-kCallBytes);
}

absl::Status ResponseAccount::Refusal() const {
  if (pool_->stopped()) return OpenStreams::DrainingError();
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kUnreadResponses,
      absl::StrCat("no room for another response: ", bytes(),
                   " bytes wait to be read on this connection, ",
                   pool_->held_bytes(),
                   " on all, under the server's limits.max_response_bytes of ",
                   pool_->max_bytes(), ": read the responses"),
      {{"max_response_bytes", absl::StrCat(pool_->max_bytes())},
       {"connection_bytes", absl::StrCat(bytes())},
       {"server_bytes", absl::StrCat(pool_->held_bytes())}});
}

absl::Status ResponseAccount::CheckShare() const {
  constexpr int64_t kShare = 8;
  const int64_t max = pool_->max_bytes();
  return max == 0 || bytes() <= max / kShare ? absl::OkStatus() : Refusal();
}

void ResponseAccount::WhenRoom(Waiter waiter, size_t request_bytes) {
  const int64_t bytes = kCallBytes + static_cast<int64_t>(request_bytes);
  {
    absl::MutexLock lock(&mu_);
    // Checked under the lock: the thread that ends it then takes all waiting
    // calls.
    if (!ended() && !pool_->stopped()) {
      pool_->AddWaiting(1, bytes);
      waiting_bytes_ += bytes;
      waiting_.push_back(
          {std::chrono::steady_clock::now(), bytes, std::move(waiter)});
      waiter = nullptr;
    }
  }
  if (waiter != nullptr) {
    waiter(Refusal());
  } else if (HasRoom()) {
    // The thread that made room did not see that this one waits.
    pool_->Ring();
  }
}

std::pair<ResponseAccount::Waiter, absl::Status> ResponseAccount::TakeWaiting(
    SteadyTime limit) {
  absl::Status status;
  absl::MutexLock lock(&mu_);
  if (waiting_.empty()) return {};
  if (!HasRoom()) {
    const bool waits_on =
        !ended() && !pool_->stopped() && waiting_.front().since >= limit;
    if (waits_on) return {};
    status = Refusal();
  }
  Waiter waiter = std::move(waiting_.front().waiter);
  waiting_bytes_ -= waiting_.front().bytes;
  pool_->AddWaiting(-1, -waiting_.front().bytes);
  waiting_.pop_front();
  return {std::move(waiter), std::move(status)};
}

ResponseAccount::WaitingCalls ResponseAccount::waiting() const {
  absl::MutexLock lock(&mu_);
  if (waiting_.empty()) return {};
  return {static_cast<int64_t>(waiting_.size()), waiting_bytes_,
          waiting_.front().since};
}

}  // namespace timecache::server
