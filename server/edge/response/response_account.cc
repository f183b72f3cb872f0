#include "server/edge/response/response_account.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/edge/response/open_streams.h"

namespace timecache::server {

// Stands in front of the bytes that it counts.
struct alignas(std::max_align_t) ResponseAccount::Buffer {
  ResponseAccountRef account;
  Holding holding;
};

void ResponseAccount::HoldingList::PushBack(Holding* holding) {
  holding->before = last;
  holding->after = nullptr;
  (last != nullptr ? last->after : first) = holding;
  last = holding;
}

void ResponseAccount::HoldingList::Remove(Holding* holding) {
  (holding->before != nullptr ? holding->before->after : first) =
      holding->after;
  (holding->after != nullptr ? holding->after->before : last) = holding->before;
}

int64_t ResponseAccount::bytes() const {
  return response_bytes_.load(std::memory_order_relaxed) + calls() * kCallBytes;
}

int64_t ResponseAccount::impatient_bytes() const {
  return bytes() - patient_bytes_.load(std::memory_order_relaxed);
}

int64_t ResponseAccount::uncounted_bytes() const {
  return std::min(calls(), kUncountedCalls) * kCallBytes;
}

grpc::Slice ResponseAccount::NewSlice(size_t size, bool patient,
                                      int64_t small_bytes) {
  auto bytes = static_cast<int64_t>(size);
  if (size < kMinCountedBytes) {
    if (small_bytes == 0) return grpc::Slice(size);
    bytes = small_bytes;
  }
  void* const memory = ::operator new(sizeof(Buffer) + size);
  auto* const buffer =
      new (memory) Buffer{ResponseAccountRef(this), {bytes, patient}};
  Hold(&buffer->holding);
  return grpc::Slice(buffer + 1, size, &FreeBuffer, buffer);
}

// gRPC's, on any of its threads and under its locks.
void ResponseAccount::FreeBuffer(void* memory) {
  auto* const buffer = static_cast<Buffer*>(memory);
  const ResponseAccountRef account = std::move(buffer->account);
  account->Drop(&buffer->holding);
  buffer->~Buffer();
  ::operator delete(memory);
}

void ResponseAccount::Hold(Holding* holding) {
  holding->since = std::chrono::steady_clock::now();
  response_bytes_.fetch_add(holding->bytes, std::memory_order_relaxed);
  pool_->Add(holding->bytes);
  if (holding->patient) {
    patient_bytes_.fetch_add(holding->bytes, std::memory_order_relaxed);
  }
  absl::MutexLock lock(&mu_);
  (holding->patient ? held_patiently_ : held_).PushBack(holding);
}

void ResponseAccount::Drop(Holding* holding) {
  {
    absl::MutexLock lock(&mu_);
    (holding->patient ? held_patiently_ : held_).Remove(holding);
  }
  response_bytes_.fetch_sub(holding->bytes, std::memory_order_relaxed);
  if (holding->patient) {
    patient_bytes_.fetch_sub(holding->bytes, std::memory_order_relaxed);
  }
  pool_->Release(holding->bytes);
}

ResponseAccount::SteadyTime ResponseAccount::OldestSince(bool patient_too,
                                                         SteadyTime now) const {
  absl::MutexLock lock(&mu_);
  SteadyTime oldest = now;
  if (held_.first != nullptr) oldest = held_.first->since;
  if (patient_too && held_patiently_.first != nullptr) {
    oldest = std::min(oldest, held_patiently_.first->since);
  }
  return std::min(oldest, now);
}

void ResponseAccount::Charge(int64_t bytes) {
  response_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > 0) {
    pool_->Add(bytes);
  } else {
    pool_->Release(-bytes);
  }
}

void ResponseAccount::EndForCalls() {
  if (can_end_ && !ended_.exchange(true)) pool_->Ring();
}

bool ResponseAccount::AnswerCall() {
  if (calls_.fetch_add(1, std::memory_order_relaxed) < kUncountedCalls) {
    return false;
  }
  pool_->Add(kCallBytes);
  return true;
}

void ResponseAccount::EndCall(std::optional<bool> answered) {
  open_calls_.fetch_sub(1, std::memory_order_relaxed);
  if (!answered.has_value()) return;
  calls_.fetch_sub(1, std::memory_order_relaxed);
  calls_done_.fetch_add(1, std::memory_order_relaxed);
  if (*answered) pool_->Release(kCallBytes);
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
