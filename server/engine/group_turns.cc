#include "server/engine/group_turns.h"

namespace timecache {

GroupTurns::Members& GroupTurns::ListOf(Turn turn) {
  switch (turn) {
    case Turn::kAwake:
      return awake_;
    case Turn::kIdle:
      return idle_;
    case Turn::kAway:
    case Turn::kGone:
      break;
  }
  return away_;
}

void GroupTurns::Join(GroupMember* member) {
  member->place_ = away_.insert(away_.end(), member);
  member->turn_ = Turn::kAway;
  Move(member, Turn::kAwake);
}

void GroupTurns::Leave(GroupMember* member) {
  Move(member, Turn::kAway);
  away_.erase(member->place_);
  member->turn_ = Turn::kGone;
}

void GroupTurns::Move(GroupMember* member, Turn turn) {
  const Turn from = member->turn_;
  if (from == turn) return;
  if (from == Turn::kAwake && !Served(member)) --unserved_;
  Members& to = ListOf(turn);
  to.splice(to.end(), ListOf(from), member->place_);
  member->turn_ = turn;
  if (turn != Turn::kAwake) return;
  member->served_round_ = round_ - 1;
  ++unserved_;
}

uint64_t GroupTurns::Come(GroupMember* member, uint64_t available) {
  Move(member, Turn::kAwake);
  if (!Served(member)) --unserved_;
  member->served_round_ = round_;
  // As many for it as for each of those that are still to come.
  const uint64_t share = (available + unserved_) / (unserved_ + 1);
  if (unserved_ == 0) {
    ++round_;
    unserved_ = awake_.size();
  }
  return share;
}

void GroupTurns::WakeOne(GroupMember* member) {
  Move(member, Turn::kAwake);
  member->wake_();
}

void GroupTurns::Wake(uint64_t available, int64_t now_us) {
  if (now_us >= due_us_) {
    due_us_ = kNeverUs;
    while (!awake_.empty()) Move(awake_.front(), Turn::kAway);
  }
  while (available > awake_.size() && !idle_.empty()) WakeOne(idle_.front());
  if (available == 0 || idle_.empty()) {
    due_us_ = kNeverUs;
  } else if (due_us_ == kNeverUs) {
    due_us_ = now_us + kPatienceUs;
  }
}

void GroupTurns::WakeAll() {
  due_us_ = kNeverUs;
  while (!idle_.empty()) WakeOne(idle_.front());
  while (!away_.empty()) WakeOne(away_.front());
}

}  // namespace timecache
