#include "timecache/recipes/lock.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/recipes/lock_lease.h"
#include "client/cpp/src/recipes/random_id.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "timecache/status.h"
#include "timecache/watcher.h"

namespace timecache {
namespace {

// The value of a lock that was released.
constexpr char kFree[] = "";
constexpr absl::Duration kShortestTtl = absl::Milliseconds(1);

// A lock that changes hands this often while it is asked for is taken.
constexpr int kMaxLockTries = 4;

bool IsPreconditionFailed(const absl::Status& status) {
  return HasReason(status, ErrorReason::kKeyExists) ||
         HasReason(status, ErrorReason::kKeyNotFound) ||
         HasReason(status, ErrorReason::kVersionMismatch);
}

absl::Duration LeftUntil(SteadyTime time) {
  return time == kSteadyNever ? absl::InfiniteDuration()
                              : absl::FromChrono(time - SteadyNow());
}

}  // namespace

Lock::Lock(const Client& client, std::string key, LockOptions options)
    : client_(client),
      key_(std::move(key)),
      options_(std::move(options)),
      mark_(absl::StrCat(options_.owner, options_.owner.empty() ? "" : " ",
                         absl::Hex(RandomId(), absl::kZeroPad16),
                         absl::Hex(RandomId(), absl::kZeroPad16))),
      lease_(std::make_unique<Lease>(options_.on_lost)) {}

Lock::~Lock() = default;

absl::StatusOr<std::optional<uint64_t>> Lock::TryAcquire() {
  for (int i = 0; i < kMaxLockTries; ++i) {
    auto token = Put(std::nullopt);
    if (!token.ok() || *token) return token;
    const auto entry = client_.Get(key_);
    if (!entry.ok()) return entry.status();
    if (!*entry) continue;
    if ((*entry)->value == mark_) {
      token = TakeOver((*entry)->version);
    } else if ((*entry)->value == kFree) {
      token = Put((*entry)->version);
    } else {
      break;
    }
    if (!token.ok() || *token) return token;
  }
  lease_->End();
  return std::nullopt;
}

absl::StatusOr<std::optional<uint64_t>> Lock::Acquire(absl::Duration timeout) {
  const SteadyTime give_up_at = SteadyAfter(timeout);
  auto token = TryAcquire();
  if (!token.ok() || *token) return token;

  Watcher watcher(client_, {.key_prefix = key_, .keys_only = true});
  // A lock that ends before the watch is established has no event: so its first
  // batch is a reason to try.
  bool stands = false;
  SteadyTime recheck_at = SteadyAfter(options_.recheck);
  while (SteadyNow() < give_up_at) {
    const auto batch =
        watcher.Next(std::min(LeftUntil(give_up_at), LeftUntil(recheck_at)));
    bool may_be_free = SteadyNow() >= recheck_at;
    if (batch.ok()) {
      may_be_free |= !stands || batch->lost > 0 || batch->log_changed ||
                     std::any_of(batch->events.begin(), batch->events.end(),
                                 [this](const ExpiredEvent& event) {
                                   return event.key == key_;
                                 });
      stands = true;
    } else if (!absl::IsDeadlineExceeded(batch.status())) {
      return batch.status();
    }
    if (!may_be_free) continue;
    token = TryAcquire();
    if (!token.ok() || *token) return token;
    recheck_at = SteadyAfter(options_.recheck);
  }
  return std::nullopt;
}

absl::StatusOr<bool> Lock::Renew() {
  const auto token = lease_->token();
  if (!token) return false;
  const auto safe_until = Touch(*token);
  if (!safe_until.ok()) return safe_until.status();
  return *safe_until && lease_->Extend(**safe_until);
}

absl::StatusOr<bool> Lock::Release() {
  const auto token = lease_->token();
  if (!token) return false;
  lease_->GiveUp();
  const auto put =
      client_.Put(key_, kFree, {.ttl = kShortestTtl, .if_version = *token});
  const bool unmet = IsPreconditionFailed(put.status());
  if (!put.ok() && !unmet) return put.status();
  lease_->End();
  return !unmet;
}

std::optional<uint64_t> Lock::token() const { return lease_->token(); }

absl::Duration Lock::remaining() const { return lease_->remaining(); }

// nullopt: the key is there, or not with this version.
absl::StatusOr<std::optional<uint64_t>> Lock::Put(
    std::optional<uint64_t> if_version) {
  const SteadyTime safe_until = SteadyAfter(options_.ttl);
  const auto put = client_.Put(key_, mark_,
                               {.ttl = options_.ttl,
                                .condition = PutCondition::kIfAbsent,
                                .if_version = if_version});
  if (IsPreconditionFailed(put.status())) return std::nullopt;
  if (!put.ok()) return put.status();
  lease_->Begin(put->version, safe_until);
  return put->version;
}

// The entry is this Lock's, of this lease or of an acquisition that was not
// answered. The renewal says from when on its time counts.
absl::StatusOr<std::optional<uint64_t>> Lock::TakeOver(uint64_t version) {
  const auto safe_until = Touch(version);
  if (!safe_until.ok()) return safe_until.status();
  if (!*safe_until) return std::nullopt;
  lease_->Begin(version, **safe_until);
  return version;
}

absl::StatusOr<std::optional<SteadyTime>> Lock::Touch(uint64_t version) {
  const SteadyTime safe_until = SteadyAfter(options_.ttl);
  const auto touched = client_.Touch(key_, {.if_version = version});
  if (IsPreconditionFailed(touched.status())) {
    lease_->End();
    return std::nullopt;
  }
  if (!touched.ok()) return touched.status();
  return safe_until;
}

}  // namespace timecache
