#include "server/edge/response/response_ledger.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"

namespace timecache::server {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// Beyond this part of the bound waiting calls are a reason to end others.
constexpr int64_t kBusyShare = 2;
// Room is made for more than the next response.
constexpr int64_t kRoomShare = 4;

// Of a connection, before it is ended: a call counts until after its client
// knows of its end.
int MaxOpenCalls(int max_calls_per_connection) {
  return max_calls_per_connection == 0 ? std::numeric_limits<int>::max()
                                       : 2 * max_calls_per_connection;
}

bool HasAddress(absl::string_view peer) {
  return absl::StartsWith(peer, "ipv4:") || absl::StartsWith(peer, "ipv6:");
}

}  // namespace

ResponseLedger::ResponseLedger(Options options)
    : options_(std::move(options)),
      pool_(std::make_shared<ResponsePool>(
          options_.max_bytes,
          MaxOpenCalls(options_.max_calls_per_connection))) {}

ResponseLedger::~ResponseLedger() { Stop(); }

ResponseAccountRef ResponseLedger::Find(absl::string_view peer) {
  Shard& shard = shards_[absl::HashOf(peer) % kShards];
  absl::MutexLock lock(&shard.mu);
  const auto it = shard.accounts.find(peer);
  if (it != shard.accounts.end()) {
    it->second.looked_at = false;
    return it->second.account;
  }
  std::string name(peer);
  std::shared_ptr<ConnectionUse> use;
  if (options_.use_of != nullptr) use = options_.use_of(name);
  const auto account = std::make_shared<ResponseAccount>(
      pool_, std::move(name), HasAddress(peer), std::move(use));
  shard.accounts.emplace(account->peer(), Entry{.account = account});
  return account;
}

void ResponseLedger::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ResponseLedger::Stop() {
  pool_->Stop();
  pool_->Ring();
  if (thread_.joinable()) thread_.join();
  // No more arrive, and a look may leave some to the next one.
  do {
    Look(std::chrono::steady_clock::now());
  } while (pool_->waiting() > 0);
}

void ResponseLedger::Run() {
  while (!pool_->stopped()) {
    const bool busy =
        pool_->waiting() > 0 ||
        (options_.max_bytes > 0 && pool_->held_bytes() > options_.max_bytes);
    pool_->WaitForBell(busy ? kBusyInterval : kInterval);
    Look(std::chrono::steady_clock::now());
    std::this_thread::sleep_for(kMinInterval);
  }
}

void ResponseLedger::Look(SteadyTime now) {
  const std::vector<Seen> accounts = LookAtAccounts(now);
  EndStalled(accounts, now);
  EndForRoom(accounts, now);
  ServeWaiting(accounts, now);
}

// Removes accounts that have been unreferenced since the last time, and without
// waiting calls.
std::vector<ResponseLedger::Seen> ResponseLedger::LookAtAccounts(
    SteadyTime now) {
  std::vector<Seen> seen;
  for (Shard& shard : shards_) {
    absl::MutexLock lock(&shard.mu);
    absl::erase_if(shard.accounts, [](const auto& item) {
      const ResponseAccountRef& account = item.second.account;
      // Others get it from here alone, under this lock.
      return item.second.looked_at && account.use_count() == 1 &&
             account->waiting().calls == 0;
    });
    for (auto& [peer, entry] : shard.accounts) {
      const ResponseAccountRef& account = entry.account;
      account->use().Look(now);
      const ResponseAccount::WaitingCalls waiting =
          pool_->waiting() > 0 ? account->waiting()
                               : ResponseAccount::WaitingCalls();
      const uint64_t done = account->calls_done();
      const bool answered = account->calls() > 0;
      if (done != entry.calls_done || (!answered && waiting.calls == 0) ||
          entry.call_done_at == SteadyTime()) {
        entry.call_done_at = now;
      }
      entry.calls_done = done;
      entry.looked_at = true;
      const int64_t bytes = account->bytes();
      if (bytes == 0 && waiting.calls == 0 && account->open_calls() == 0 &&
          !account->ended()) {
        continue;
      }
      // A connection with waiting and no answered calls may have been idle
      // before.
      const SteadyTime stalled_since =
          answered ? entry.call_done_at
                   : std::max(entry.call_done_at, waiting.since);
      const auto calls_stalled = now - std::min(stalled_since, now);
      const SteadyTime oldest = account->OldestSince(true, now);
      seen.push_back({.account = account,
                      .bytes = bytes,
                      .waiting_bytes = waiting.bytes,
                      .calls_stalled = calls_stalled,
                      .stalled = std::max(calls_stalled, now - oldest),
                      .waiting_since = waiting.since});
    }
  }
  return seen;
}

void ResponseLedger::ServeWaiting(const std::vector<Seen>& accounts,
                                  SteadyTime now) {
  if (pool_->waiting() == 0) return;
  // One response each, repeatedly, while any of them continues.
  const SteadyTime until = std::chrono::steady_clock::now() + kServeTime;
  for (bool served = true; served;) {
    served = false;
    if (std::chrono::steady_clock::now() > until) return pool_->Ring();
    for (const Seen& each : accounts) {
      auto [waiter, status] = each.account->TakeWaiting(now - options_.timeout);
      if (waiter == nullptr) continue;
      (status.ok() ? waited_ : refused_).fetch_add(1);
      waiter(std::move(status));
      served = true;
    }
  }
}

void ResponseLedger::EndStalled(const std::vector<Seen>& accounts,
                                SteadyTime now) {
  for (const Seen& each : accounts) {
    // It may have ended itself.
    const bool ended = each.account->ended();
    const int64_t bytes = each.account->impatient_bytes();
    const auto patience =
        options_.timeout + milliseconds(1'000 * bytes / kMinBytesPerSecond);
    const auto stalled = std::max(each.calls_stalled,
                                  now - each.account->OldestSince(false, now));
    if (ended || (bytes > 0 && stalled > patience)) End(each.account.get());
  }
}

void ResponseLedger::EndForRoom(std::vector<Seen> accounts, SteadyTime now) {
  const int64_t max = options_.max_bytes;
  if (max == 0) return;
  // Of the accounts seen: by now there may be more, which must not end
  // connections. Connections ended before are still closing.
  int64_t held = 0;
  int64_t waiting = 0;
  for (const Seen& each : accounts) {
    if (each.account->ended()) continue;
    held += each.bytes;
    waiting += each.waiting_bytes;
  }
  const bool waited_for =
      pool_->held_bytes() > max / kBusyShare &&
      std::any_of(accounts.begin(), accounts.end(), [&](const Seen& each) {
        return each.waiting_since <= now - kBusyInterval;
      });
  if (held + waiting <= max && !waited_for) return;
  // By the bytes that it has held, and for how long; a new one by those that it
  // holds.
  const auto cost = [](const Seen& each) {
    return (each.bytes + each.waiting_bytes) *
           (duration_cast<milliseconds>(each.stalled).count() + 1);
  };
  std::sort(accounts.begin(), accounts.end(),
            [&](const Seen& a, const Seen& b) { return cost(a) > cost(b); });
  for (const Seen& each : accounts) {
    const int64_t enough = max - max / kRoomShare;
    if (held + waiting <= enough) return;
    if (each.account->ended() || !each.account->can_end()) continue;
    const Milliseconds stall = held > 2 * max  ? kBusyInterval
                               : held > enough ? kMinStall
                                               : kWaitingStall;
    if (each.stalled < stall) continue;
    End(each.account.get());
    held -= each.bytes;
    waiting -= each.waiting_bytes;
  }
}

void ResponseLedger::End(ResponseAccount* account) {
  if (!account->can_end() || !account->End()) return;
  ended_.fetch_add(1);
  if (options_.end_connection != nullptr) {
    options_.end_connection(account->peer());
  }
}

ResponseLedger::Statistics ResponseLedger::GetStatistics() const {
  return {.bytes = pool_->held_bytes(),
          .max = options_.max_bytes,
          .waiting = pool_->waiting(),
          .waited = waited_,
          .refused = refused_,
          .ended_connections = ended_};
}

}  // namespace timecache::server
