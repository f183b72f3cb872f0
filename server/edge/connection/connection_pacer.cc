#include "server/edge/connection/connection_pacer.h"

#include <algorithm>
#include <utility>

namespace timecache::server {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr seconds kSecond{1};

}  // namespace

ConnectionPacer::ConnectionPacer(int per_second)
    : token_(duration_cast<Duration>(nanoseconds(kSecond)) / per_second),
      tolerance_(token_ * (std::max(per_second / kBurstPart, 1) - 1)),
      probation_(per_second) {}

void ConnectionPacer::Use(Duration tokens, Time now, Duration max_debt,
                          Address* address) {
  const Time most = std::max(address->full_at, now + tolerance_ + max_debt);
  address->full_at = std::min(std::max(address->full_at, now) + tokens, most);
  const int64_t until =
      (address->full_at - tolerance_ / 2).time_since_epoch().count();
  if (until > busy_until_.load(std::memory_order_relaxed)) {
    busy_until_.store(until, std::memory_order_relaxed);
  }
}

void ConnectionPacer::Take(const PacedConnection& connection, Time now,
                           Address* address) {
  Use(token_, now, address->is_known ? token_ : Duration(kMaxDebt), address);
  const Time until = now + Probation::kTime;
  if (address->is_known) {
    known_until_ = until;
  } else {
    probation_.Take(connection.peer, now);
  }
  probation_until_.store(until.time_since_epoch().count(),
                         std::memory_order_relaxed);
}

ConnectionPacer::Verdict ConnectionPacer::Offer(PacedConnection connection,
                                                Time now,
                                                const IsGone& is_gone) {
  const PeerAddress from = connection.peer.address();
  if (from.empty()) return Verdict::kNow;
  absl::MutexLock lock(&mu_);
  Address& address = AddressOf(from, now);
  // Waiting connections come before new ones.
  const bool others_wait =
      !address.is_known && !due_.empty() && due_.begin()->first <= now;
  if (address.waiting.empty() && now >= TokenAt(address) && !others_wait &&
      HasRoom(address, now)) {
    Take(connection, now, &address);
    return Verdict::kNow;
  }
  last_delayed_ = from;
  if (address.waiting.size() >= kMaxWaiting &&
      now >= address.looked_at + kLookInterval) {
    address.looked_at = now;
    DropGone(is_gone, &address);
  }
  if (address.waiting.size() >= kMaxWaiting) {
    ++refused_;
    return Verdict::kRefuse;
  }
  ++delayed_;
  address.waiting.push_back(connection);
  if (!address.is_due) SetDue(&address);
  return Verdict::kWait;
}

void ConnectionPacer::SetDue(Address* address) {
  address->is_due = true;
  address->due_at = TokenAt(*address);
  (address->is_known ? known_due_ : due_).emplace(address->due_at, address);
}

// What waits there needs no token and no room any more.
void ConnectionPacer::SetKnown(Address* address) {
  if (address->is_known) return;
  if (address->is_due) {
    const auto [first, last] = due_.equal_range(address->due_at);
    due_.erase(std::find_if(first, last, [address](const auto& each) {
      return each.second == address;
    }));
  }
  address->is_known = true;
  if (address->is_due) SetDue(address);
}

void ConnectionPacer::DropGone(const IsGone& is_gone, Address* address) {
  std::deque<PacedConnection> left;
  for (const PacedConnection& each : address->waiting) {
    if (is_gone(each.fd)) {
      dropped_.push_back(each);
    } else {
      left.push_back(each);
    }
  }
  address->waiting = std::move(left);
}

ConnectionPacer::Due ConnectionPacer::TakeDue(Time now, const IsGone& is_gone) {
  absl::MutexLock lock(&mu_);
  Due due;
  due.gone = std::exchange(dropped_, {});
  TakeSome(now, is_gone, &known_due_, &due);
  TakeSome(now, is_gone, &due_, &due);
  gone_ += due.gone.size();
  return due;
}

void ConnectionPacer::TakeSome(Time now, const IsGone& is_gone,
                               DueAddresses* from, Due* due) {
  while (!from->empty() && from->begin()->first <= now &&
         HasRoom(*from->begin()->second, now)) {
    Address* const address = from->begin()->second;
    from->erase(from->begin());
    address->is_due = false;
    while (!address->waiting.empty() && TokenAt(*address) <= now &&
           HasRoom(*address, now)) {
      const PacedConnection next = address->waiting.front();
      address->waiting.pop_front();
      if (is_gone(next.fd)) {
        due->gone.push_back(next);
      } else {
        due->taken.push_back(next);
        Take(next, now, address);
      }
    }
    if (!address->waiting.empty()) SetDue(address);
  }
}

std::optional<ConnectionPacer::Time> ConnectionPacer::NextDue() const {
  absl::MutexLock lock(&mu_);
  std::optional<Time> next;
  if (!due_.empty()) {
    next = std::max(due_.begin()->first, probation_.RoomAt());
  }
  if (!known_due_.empty()) {
    const Time known = known_due_.begin()->first;
    next = next.has_value() ? std::min(*next, known) : known;
  }
  return next;
}

std::vector<PacedConnection> ConnectionPacer::TakeAll() {
  absl::MutexLock lock(&mu_);
  std::vector<PacedConnection> all = std::exchange(dropped_, {});
  for (auto& [from, address] : addresses_) {
    all.insert(all.end(), address.waiting.begin(), address.waiting.end());
    address.waiting.clear();
    address.is_due = false;
  }
  due_.clear();
  known_due_.clear();
  return all;
}

bool ConnectionPacer::Charge(const PeerAddress& from, double connections,
                             Time now) {
  if (from.empty()) return true;
  absl::MutexLock lock(&mu_);
  return ChargeLocked(from, connections, now);
}

bool ConnectionPacer::CountAnonymousCalls(const PeerAddress& from, double calls,
                                          Time now) {
  if (from.empty()) return true;
  absl::MutexLock lock(&mu_);
  // An address beyond its own rate waits for that.
  if (TokenAt(AddressOf(from, now)) <= now) {
    probation_.CountAnonymousCalls(calls, now);
  }
  return ChargeLocked(from, calls * kCallCost, now);
}

bool ConnectionPacer::Prove(const PeerEndpoint& peer, bool known) {
  absl::MutexLock lock(&mu_);
  const auto it = addresses_.find(peer.address());
  if (known && it != addresses_.end()) SetKnown(&it->second);
  const bool proved = probation_.Prove(peer);
  if (probation_.size() == 0) {
    probation_until_.store(known_until_.time_since_epoch().count(),
                           std::memory_order_relaxed);
  }
  return proved && (!due_.empty() || !known_due_.empty());
}

bool ConnectionPacer::ChargeLocked(const PeerAddress& from, double connections,
                                   Time now) {
  Address& address = AddressOf(from, now);
  const bool had_most = address.full_at >= now + tolerance_ + kMaxDebt - token_;
  Use(duration_cast<Duration>(token_ * connections), now, kMaxDebt, &address);
  return !had_most;
}

bool ConnectionPacer::IsBusy(const PeerAddress& from, Time now) const {
  absl::MutexLock lock(&mu_);
  const auto it = addresses_.find(from);
  return it != addresses_.end() && it->second.full_at > now + tolerance_ / 2;
}

ConnectionPacer::Address& ConnectionPacer::AddressOf(const PeerAddress& from,
                                                     Time now) {
  const auto known = addresses_.find(from);
  if (known != addresses_.end()) return known->second;
  if (addresses_.size() >= sweep_at_) {
    absl::erase_if(addresses_, [now](const auto& each) {
      return !each.second.is_due && each.second.full_at <= now;
    });
    sweep_at_ = std::clamp<size_t>(2 * addresses_.size(), 64, kMaxAddresses);
  }
  // Without an address: the shared one of all addresses that are not
  // remembered.
  return addresses_[addresses_.size() < kMaxAddresses ? from : PeerAddress()];
}

PeerAddress ConnectionPacer::last_delayed() const {
  absl::MutexLock lock(&mu_);
  return last_delayed_;
}

uint64_t ConnectionPacer::delayed() const {
  absl::MutexLock lock(&mu_);
  return delayed_;
}

uint64_t ConnectionPacer::gone() const {
  absl::MutexLock lock(&mu_);
  return gone_;
}

uint64_t ConnectionPacer::refused() const {
  absl::MutexLock lock(&mu_);
  return refused_;
}

}  // namespace timecache::server
