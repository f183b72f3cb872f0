#include "server/engine/groups/member_scheduler.h"

#include <algorithm>
#include <utility>

namespace timecache::server {

MemberScheduler::Members& MemberScheduler::ListOf(const GroupMember* member) {
  switch (member->turn_) {
    case Turn::kAwake:
      return awake_;
    case Turn::kIdle:
      return member->responsive_ ? idle_ : idle_unresponsive_;
    case Turn::kFull:
    case Turn::kStuck:
    case Turn::kGone:
      break;
  }
  return away_;
}

void MemberScheduler::Join(GroupMember* member) {
  member->id_ = last_id_ = std::max(last_id_ + 1, member->id_);
  by_id_.emplace(member->id_, member);
  if (member->fetches_) {
    fetches_.insert(member);
  } else {
    streams_.emplace(member->id_, member);
  }
  member->position_ = away_.insert(away_.end(), member);
  member->turn_ = Turn::kStuck;
  Count(member, 1);
  Move(member, Turn::kAwake);
}

void MemberScheduler::Leave(GroupMember* member) {
  Move(member, Turn::kStuck);
  Count(member, -1);
  away_.erase(member->position_);
  member->turn_ = Turn::kGone;
  by_id_.erase(member->id_);
  streams_.erase(member->id_);
  if (member->fetches_) fetches_.erase(member);
}

// Fetches that wait are refused from then on.
void MemberScheduler::SetSingleActive(bool single_active) {
  if (std::exchange(single_active_, single_active) || !single_active) return;
  for (GroupMember* const member : fetches_) member->wake_();
}

void MemberScheduler::Count(const GroupMember* member, int change) {
  const auto add = [change](size_t* to) { *to += static_cast<size_t>(change); };
  if (member->responsive_) add(&responsive_);
  if (member->turn_ == Turn::kStuck) return;
  add(&present_);
  if (!member->responsive_) return;
  add(&present_responsive_);
  if (member->turn_ == Turn::kAwake) add(&awake_responsive_);
}

void MemberScheduler::Move(GroupMember* member, Turn turn) {
  const Turn from = member->turn_;
  if (from == turn) return;
  if (from == Turn::kAwake && !Served(member)) --unserved_;
  Members& from_list = ListOf(member);
  Count(member, -1);
  member->turn_ = turn;
  Count(member, 1);
  Members& to = ListOf(member);
  to.splice(to.end(), from_list, member->position_);
  if (turn == Turn::kIdle) member->idle_number_ = ++last_idle_;
  if (turn != Turn::kAwake) return;
  member->served_round_ = round_ - 1;
  ++unserved_;
}

uint64_t MemberScheduler::BeginTake(GroupMember* member, uint64_t available) {
  Move(member, Turn::kAwake);
  if (!Served(member)) --unserved_;
  member->served_round_ = round_;
  // As many for it as for each of those that have not called yet.
  const uint64_t share = (available + unserved_) / (unserved_ + 1);
  if (unserved_ == 0) {
    ++round_;
    unserved_ = awake_.size();
  }
  return share;
}

void MemberScheduler::EndTake(GroupMember* member) {
  Move(member, member->HasRoom() ? Turn::kIdle : Turn::kFull);
}

// What it may hold in all partitions others may have used up by now. Then it is to hear
// that from Take, which tells its reader to come again.
void MemberScheduler::OnRoom(GroupMember* member) {
  if (member->turn_ == Turn::kIdle || member->turn_ == Turn::kFull) {
    Move(member, member->HasWindow() ? Turn::kIdle : Turn::kFull);
  }
}

// --- A member's state.

void MemberScheduler::OnTimeOut(GroupMember* member) {
  if (member->turn_ == Turn::kGone) return;
  member->window_ =
      std::max(1, std::min(member->window_, member->held_.size()) / 2);
  SetResponsive(member, false);
  OnRoom(member);
}

void MemberScheduler::OnSettled(MemberId id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return;
  GroupMember* const member = it->second;
  member->window_ = std::min(member->window_ + 1, member->max_in_flight_);
  SetResponsive(member, true);
  OnRoom(member);
}

void MemberScheduler::SetResponsive(GroupMember* member, bool responsive) {
  if (member->responsive_ == responsive) return;
  Members& from = ListOf(member);
  Count(member, -1);
  member->responsive_ = responsive;
  Count(member, 1);
  Members& to = ListOf(member);
  if (&to == &from) return;
  to.splice(to.end(), from, member->position_);
  member->idle_number_ = ++last_idle_;
}

// --- Waking.

void MemberScheduler::WakeOne(GroupMember* member) {
  Move(member, Turn::kAwake);
  member->wake_();
}

bool MemberScheduler::MayRetry(const GroupMember* member,
                               const Failures& failures) const {
  // Those that are left without the late ones.
  size_t present = present_;
  size_t responsive = present_responsive_;
  for (const MemberId id : failures.late) {
    if (id == member->id_) return false;
    const auto it = by_id_.find(id);
    if (it == by_id_.end() || it->second->turn_ == Turn::kStuck) continue;
    --present;
    if (it->second->responsive_) --responsive;
  }
  if (single_active_) return true;
  if (responsive > 0 && !member->responsive_) return false;
  if (failures.rejected_by != member->id_) return true;
  return (responsive > 0 ? responsive : present) <= 1;
}

// An idle member for failed events: because no awake one may get them, or there
// are more than awake ones.
GroupMember* MemberScheduler::NextForFailed(const Supply& supply, MayGet may) {
  if (supply.failed == 0) return nullptr;
  GroupMember* next = nullptr;
  supply.ready->HasFailed([&](const Failures& failures) {
    if (supply.failed <= AwakeRetriers()) {
      for (const GroupMember* const member : awake_) {
        if (may(member, failures)) return false;
      }
    }
    for (Members* const idle : {&idle_, &idle_unresponsive_}) {
      for (GroupMember* const member : *idle) {
        if (!may(member, failures)) continue;
        next = member;
        return true;
      }
    }
    return false;
  });
  return next;
}

GroupMember* MemberScheduler::NextToWake(const Supply& supply, MayGet may) {
  if (GroupMember* const member = NextForFailed(supply, may)) return member;
  const size_t retriers = AwakeRetriers();
  if (supply.unfailed == 0 ||
      supply.unfailed + std::min<uint64_t>(supply.failed, retriers) <=
          awake_.size()) {
    return nullptr;
  }
  if (idle_.empty() || idle_unresponsive_.empty()) {
    Members& idle = idle_.empty() ? idle_unresponsive_ : idle_;
    return idle.empty() ? nullptr : idle.front();
  }
  GroupMember* const one = idle_.front();
  GroupMember* const other = idle_unresponsive_.front();
  return one->idle_number_ < other->idle_number_ ? one : other;
}

void MemberScheduler::Wake(const Supply& supply, MayGet may, int64_t now_us) {
  if (now_us >= due_us_) {
    due_us_ = kNeverUs;
    while (!awake_.empty()) Move(awake_.front(), Turn::kStuck);
  }
  if (single_active_) return WakeActive(supply, may);
  while (GroupMember* const member = NextToWake(supply, may)) {
    WakeOne(member);
  }
  const bool others = !idle_.empty() || !idle_unresponsive_.empty();
  if (supply.unfailed + supply.failed == 0 || awake_.empty() || !others) {
    due_us_ = kNeverUs;
  } else if (due_us_ == kNeverUs) {
    due_us_ = now_us + kPatienceUs;
  }
}

void MemberScheduler::WakeActive(const Supply& supply, MayGet may) {
  due_us_ = kNeverUs;
  GroupMember* const active = Active();
  if (active == nullptr || active->turn_ != Turn::kIdle) return;
  const bool available =
      supply.unfailed > 0 ||
      (supply.failed > 0 &&
       supply.ready->HasFailed(
           [&](const Failures& failures) { return may(active, failures); }));
  if (available) WakeOne(active);
}

// Without a turn: it is to find no event. Those that are awake take anyway.
size_t MemberScheduler::WakeForAllDelivered(uint64_t event) {
  size_t woken = 0;
  for (const auto& [id, member] : streams_) {
    const bool waits =
        member->turn_ == Turn::kIdle || member->turn_ == Turn::kFull;
    if (!waits || !member->wants_all_delivered_ ||
        member->seen_event_ >= event) {
      continue;
    }
    member->wake_();
    ++woken;
  }
  return woken;
}

void MemberScheduler::WakeFull() {
  if (!awake_.empty()) return;
  const auto full = std::find_if(
      away_.begin(), away_.end(),
      [](const GroupMember* member) { return member->turn_ == Turn::kFull; });
  if (full != away_.end()) WakeOne(*full);
}

void MemberScheduler::WakeAll() {
  due_us_ = kNeverUs;
  for (Members* members : {&idle_, &idle_unresponsive_, &away_}) {
    while (!members->empty()) WakeOne(members->front());
  }
}

}  // namespace timecache::server
