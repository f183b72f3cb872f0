// What a consumer group knows of its members beside their events: fetches, who
// is a member, and what all of them have had.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/engine/groups/consumer_group.h"

namespace timecache::server {

std::vector<MemberInfo> ConsumerGroup::ListMembers() const {
  std::vector<MemberInfo> members;
  absl::MutexLock lock(&mu_);
  members.reserve(scheduler_.streams().size());
  for (const auto& [id, member] : scheduler_.streams()) {
    members.push_back({.id = id,
                       .origin = member->origin_,
                       .in_flight = member->held_.size(),
                       .max_in_flight = member->max_in_flight_,
                       .window = member->window_,
                       .unresponsive = !member->responsive_,
                       .active = scheduler_.IsActive(member)});
  }
  return members;
}

// --- Fetches.

void GroupMember::StopTaking() { group_->StopTaking(this); }

void ConsumerGroup::StopTaking(Member* member) {
  WakingLock lock(this);
  if (member->turn_ != Member::Turn::kGone) scheduler_.Leave(member);
}

// What it took is the group's own until here: settled and timed out as any.
void ConsumerGroup::EndFetch(Member* member, int64_t now_us, StreamEnd end) {
  StopTaking(member);
  {
    WakingLock lock(this);
    ledger_.AdvanceTo(now_us);
    NoteUse(now_us);
    if (end == StreamEnd::kAnswered) return;
    ledger_.ReportAgain(std::exchange(member->fetched_lost_, 0));
  }
  const auto& fetched = member->fetched_;
  for (size_t i = 0; i < fetched.size();) {
    WakingLock lock(this);
    if (closed_) return;
    const size_t end_at = std::min(fetched.size(), i + kMaxUnderLock);
    for (; i < end_at; ++i) ledger_.GiveBack(fetched_, fetched[i]);
  }
}

// A group that only fetches use is not recorded at each of them.
void ConsumerGroup::NoteUse(int64_t now_us) {
  if (unused_since_us_ == kNeverUs) return;
  unused_since_us_ = std::max(unused_since_us_, now_us);
  const int64_t ttl_us = ledger_.options().unused_ttl_us;
  if (ttl_us > 0 &&
      unused_since_us_ - recorded_unused_us_ >= ttl_us / kRecordedUses) {
    RecordUnused();
  }
}

// --- What all members have had.

void ConsumerGroup::PassDelivered(Member* member, int64_t log_us,
                                  Chunk* chunk) {
  const GroupLedger::Awaiting next = ledger_.FirstAwaitingDelivery();
  delivered_us_ = std::max(delivered_us_, std::min(log_us, next.death_us - 1));
  chunk->delivered_us = delivered_us_;
  chunk->arrived_us = log_us;
  if (next.death_us != kNeverUs || chunk->more) return;
  chunk->all_delivered = member->seen_event_ < next.event;
  member->seen_event_ = next.event;
}

// Once no event awaits its first delivery, those that wait get the watermark,
// without waiting for a heartbeat: but for many members, or very often, only so
// often.
void ConsumerGroup::AnnounceAllDelivered() {
  news_due_us_ = kNeverUs;
  // Quickly, for OnAppend.
  if (ledger_.HasFresh()) return;
  const GroupLedger::Awaiting next = ledger_.FirstAwaitingDelivery();
  if (next.death_us != kNeverUs) return;
  constexpr int64_t kNewsUs = kMicrosPerSecond / kMaxNewsPerSecond;
  const auto streams = static_cast<int64_t>(scheduler_.streams().size());
  const int64_t ahead_us = kMaxNewsAtOnce * streams * kNewsUs;
  const int64_t now_us = ledger_.now_us();
  if (news_us_ > now_us + ahead_us) {
    news_due_us_ = news_us_ - ahead_us;
    return;
  }
  announced_event_ = next.event;
  const size_t woken = scheduler_.WakeForAllDelivered(next.event);
  news_us_ = std::max(news_us_, now_us) + static_cast<int64_t>(woken) * kNewsUs;
}

}  // namespace timecache::server
