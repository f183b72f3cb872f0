// What operators see and do of a group.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/groups/consumer_group.h"

namespace timecache::server {
namespace {

// Of an event in a page, beside its key and value: about.
constexpr int64_t kEventBytes = 160;

int64_t BytesOf(const Delivery& delivery, const UnsettledQuery& query) {
  const auto encoded =
      static_cast<int64_t>(delivery.batch->encoded(delivery.index).size());
  if (query.include_values && encoded <= kMaxUnsettledBytes) {
    return encoded + kEventBytes;
  }
  return static_cast<int64_t>(delivery.batch->key(delivery.index).size()) +
         kEventBytes;
}

}  // namespace

UnsettledPage ConsumerGroup::List(const UnsettledQuery& query) const {
  UnsettledPage page;
  uint64_t from = query.from;
  size_t counted = 0;
  int64_t bytes = 0;
  for (int left = kMaxListed; left > 0;) {
    const int step = std::min(left, kMaxUnderLock);
    int steps = step;
    std::optional<uint64_t> next;
    {
      absl::MutexLock lock(&mu_);
      if (closed_) return page;
      next = ledger_.List(from, query, &steps, &page);
      for (size_t i = counted; i < page.events.size(); ++i) {
        page.events[i].delivery.group_id = delivery_id_;
      }
    }
    left -= step;
    for (; counted < page.events.size(); ++counted) {
      const Delivery& delivery = page.events[counted].delivery;
      bytes += BytesOf(delivery, query);
      if (bytes <= kMaxUnsettledBytes || counted == 0) continue;
      page.next = delivery.event_id;
      page.events.resize(counted);
      return page;
    }
    page.next = next;
    if (!next.has_value() ||
        static_cast<int>(page.events.size()) >= query.most) {
      break;
    }
    from = *next;
  }
  return page;
}

void ConsumerGroup::OpenTo(const Settlement& settlement, int64_t now_us) {
  for (bool more = true; more;) {
    WakingLock lock(this);
    ledger_.PassTime(now_us);
    more = !closed_ && CheckGroup(settlement).ok() &&
           ledger_.OpenTo(settlement.event_id, kMaxUnderLock);
  }
}

// Called under the log's lock, before which `schedule` may not be called: a
// member that is woken here is skipped when other work is due.
SeekResult ConsumerGroup::Seek(const LogPlace& place, bool drop,
                               const std::vector<ExpiryLog::Followed>& retained,
                               uint64_t id, int64_t now_us,
                               std::vector<std::shared_ptr<const void>>* gone) {
  Lock lock(this);
  if (closed_) return {};
  ledger_.PassTime(now_us);
  SeekResult result;
  result.dropped = ledger_.Seek(place, drop, retained, gone);
  result.unsettled = ledger_.Unsettled() - ledger_.unreported_lost();
  id_ = id;
  delivery_id_ = id_ ^ fork_;
  changes_.Append({.kind = GroupChange::Kind::kIdentity, .id = id_});
  ledger_.Trim();
  // It goes back. A lower one than a crash would leave is true, too.
  watermark_us_ = 0;
  delivered_us_ = 0;
  announced_event_ = 0;
  for (const auto& [number, member] : scheduler_.streams()) {
    member->seen_event_ = 0;
  }
  kept_.watermark_us = std::min(kept_.watermark_us, ledger_.OldestUs() - 1);
  keeping_.watermark_us = std::min(keeping_.watermark_us, kept_.watermark_us);
  WakeOthers();
  return result;
}

}  // namespace timecache::server
