#include "server/cluster/member_logic.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

constexpr int64_t kNsPerUs = 1'000;

int64_t Ns(absl::Duration duration) {
  return absl::ToInt64Nanoseconds(duration);
}

absl::Status NoSuccessor(absl::string_view why) {
  return PreconditionFailed(Reason::kNoSuccessor, why);
}

MemberOptions WithIncarnation(MemberOptions options, uint64_t incarnation) {
  options.incarnation = incarnation;
  return options;
}

}  // namespace

MemberLogic::MemberLogic(MemberOptions options, bool one_of_a_name)
    : options_(std::move(options)),
      lease_ns_(Ns(options_.lease)),
      state_(one_of_a_name) {}

MemberLogic::MemberLogic(const MemberLogic& former, uint64_t incarnation)
    : options_(WithIncarnation(former.options_, incarnation)),
      lease_ns_(former.lease_ns_),
      state_(former.state_),
      read_offset_(former.read_offset_),
      preferred_(former.preferred_),
      skews_(former.skews_),
      clock_was_right_(former.clock_was_right_),
      former_lease_end_ns_(former.former_lease_end_ns_) {}

bool MemberLogic::IsMine(const ControlRecord& record) const {
  return record.incarnation() == options_.incarnation &&
         record.node() == options_.node;
}

bool MemberLogic::IsOwner() const {
  return state_.IsOwner(options_.node, options_.incarnation);
}

MemberEvent& MemberLogic::Add(MemberEvent::Kind kind, const std::string& node) {
  MemberEvent& event = events_.emplace_back();
  event.kind = kind;
  event.node = node;
  return event;
}

// --- What was read.

void MemberLogic::OnEntry(const ControlEntry& entry, int64_t now_ns) {
  if (read_offset_ < 0) {
    // An owner that is not heard of may have sent its last record just before.
    if (entry.offset > 0) {
      former_lease_end_ns_ = now_ns + SafeLeaseNs(options_.lease);
    }
  }
  read_offset_ = entry.offset + 1;
  const std::optional<ControlState::Owner> before = state_.owner();
  state_.Apply(entry.offset, entry.append_time_ms, entry.record);
  NoteOwner(entry.record, before, now_ns);
  if (IsMine(entry.record)) NoteOwn(entry, now_ns);
  NoteVacancy(now_ns);
}

void MemberLogic::NoteOwner(const ControlRecord& record,
                            const std::optional<ControlState::Owner>& before,
                            int64_t now_ns) {
  const std::optional<ControlState::Owner> owner = state_.owner();
  const bool taken = owner && (!before || before->takeover != owner->takeover);
  const bool released =
      owner && owner->released && (taken || !before->released);
  if (taken) {
    vacant_since_ns_.reset();
    takeover_not_before_ns_ = INT64_MIN;
    back_off_ns_ = 0;
    MemberEvent& event = Add(MemberEvent::Kind::kTakeover, owner->node.name);
    if (before) {
      event.former = before->node.name;
      event.released = before->released;
      event.duration = std::max(before->node.silence, before->node.unread);
    }
  }
  if (released) {
    Add(MemberEvent::Kind::kRelease, owner->node.name).successor =
        owner->successor;
  }
  NoteFormerLease(record, owner, released, now_ns);

  const bool serves =
      role_ == MemberRole::kTakingOver || role_ == MemberRole::kOwner;
  if (owner && IsOwner() && !owner->released) {
    if (role_ == MemberRole::kStandby) role_ = MemberRole::kTakingOver;
  } else if (serves) {
    role_ = MemberRole::kEnded;
    lease_end_ns_ = INT64_MIN;
    release_read_ = IsOwner();
    if (!release_read_) {
      Add(MemberEvent::Kind::kFenced, owner ? owner->node.name : record.node());
    }
  }
}

// Every record of another owner may be the one that its lease counts from. So may be
// what says that there is one, where the log is trimmed.
void MemberLogic::NoteFormerLease(
    const ControlRecord& record,
    const std::optional<ControlState::Owner>& owner, bool released_now,
    int64_t now_ns) {
  if (IsOwner() || IsMine(record)) return;
  const bool of_owner =
      owner && state_.IsOwner(record.node(), record.incarnation());
  if (of_owner && owner->released) {
    if (released_now) former_lease_end_ns_ = INT64_MIN;
  } else if (of_owner || (!owner && state_.takeover() > 0) ||
             record.kind() == cluster::v1::CONTROL_KIND_TAKEOVER) {
    former_lease_end_ns_ =
        std::max(former_lease_end_ns_,
                 now_ns + SafeLeaseNs(absl::Microseconds(record.lease_us())));
  }
}

int64_t MemberLogic::SafeLeaseNs(absl::Duration lease) {
  return Ns(lease + lease / kDriftDivisor + kLeaseMargin);
}

void MemberLogic::NoteOwn(const ControlEntry& entry, int64_t now_ns) {
  const ControlRecord& record = entry.record;
  own_read_ns_ = now_ns;
  read_number_ = std::max(read_number_, record.number());
  if (IsOwner()) confirmed_ = std::max(confirmed_, record.number());
  NoteSkew(entry, now_ns);
  if (record.kind() == cluster::v1::CONTROL_KIND_TAKEOVER &&
      state_.takeover() != entry.offset + 1 && role_ == MemberRole::kStandby) {
    back_off_ns_ = std::clamp(back_off_ns_ * 2, Ns(kRankDelay),
                              Ns(options_.failure_timeout));
    takeover_not_before_ns_ = now_ns + back_off_ns_;
    Add(MemberEvent::Kind::kTakeoverRefused, options_.node);
  }
  if (!IsOwner() || role_ == MemberRole::kEnded || successor_) return;
  lease_end_ns_ = std::max(lease_end_ns_,
                           std::min(record.sent_boot_ns(), now_ns) + lease_ns_);
  if (late_since_ns_ && lease_end_ns_ > now_ns) {
    Add(MemberEvent::Kind::kLeaseRenewed, options_.node).duration =
        absl::Nanoseconds(now_ns - *late_since_ns_);
    late_since_ns_.reset();
  }
}

void MemberLogic::NoteSkew(const ControlEntry& entry, int64_t now_ns) {
  const int64_t round_trip_us =
      std::max<int64_t>(now_ns - entry.record.sent_boot_ns(), 0) / kNsPerUs;
  skews_.push_back({entry.record.sent_wall_us() + round_trip_us / 2 -
                        entry.append_time_ms * 1'000,
                    round_trip_us});
  if (skews_.size() > kSkewSamples) skews_.pop_front();
  if (ClockIsRight() == clock_was_right_) return;
  clock_was_right_ = !clock_was_right_;
  Add(clock_was_right_ ? MemberEvent::Kind::kClockRight
                       : MemberEvent::Kind::kClockSkewed,
      options_.node)
      .duration = absl::Microseconds(BestSkew()->skew_us);
}

const MemberLogic::SkewSample* MemberLogic::BestSkew() const {
  const auto best =
      std::min_element(skews_.begin(), skews_.end(),
                       [](const SkewSample& a, const SkewSample& b) {
                         return a.round_trip_us < b.round_trip_us;
                       });
  return best == skews_.end() ? nullptr : &*best;
}

// However the round trip is shared between the way to the log and back.
bool MemberLogic::ClockIsRight() const {
  const SkewSample* const best = BestSkew();
  return best != nullptr &&
         std::abs(best->skew_us) + best->round_trip_us / 2 <=
             absl::ToInt64Microseconds(options_.max_clock_skew);
}

void MemberLogic::NoteVacancy(int64_t now_ns) {
  ControlRecord takeover;
  takeover.set_node(options_.node);
  takeover.set_failure_timeout_us(
      absl::ToInt64Microseconds(options_.failure_timeout));
  takeover.set_takeover(state_.takeover());
  if (role_ != MemberRole::kStandby || !state_.MayTakeOver(takeover)) {
    vacant_since_ns_.reset();
  } else if (!vacant_since_ns_) {
    vacant_since_ns_ = now_ns;
  }
}

void MemberLogic::Fence(const std::string& by) {
  if (role_ != MemberRole::kTakingOver && role_ != MemberRole::kOwner) return;
  role_ = MemberRole::kEnded;
  lease_end_ns_ = INT64_MIN;
  Add(MemberEvent::Kind::kFenced, by);
}

void MemberLogic::NoteForeignLease(absl::Duration lease, int64_t now_ns) {
  if (role_ == MemberRole::kTakingOver || role_ == MemberRole::kOwner) return;
  former_lease_end_ns_ =
      std::max(former_lease_end_ns_, now_ns + SafeLeaseNs(lease));
}

void MemberLogic::OnLogLost(const absl::Status& why) {
  role_ = MemberRole::kEnded;
  lease_end_ns_ = INT64_MIN;
  Add(MemberEvent::Kind::kLogLost, options_.node).reason =
      std::string(why.message());
}

// --- What is to be appended.

std::optional<ControlRecord> MemberLogic::Next(int64_t now_ns,
                                               int64_t wall_us) {
  const std::optional<cluster::v1::ControlKind> kind = Due(now_ns);
  if (!kind) return std::nullopt;
  return Make(*kind, made_ + 1, now_ns, wall_us);
}

std::optional<cluster::v1::ControlKind> MemberLogic::Due(int64_t now_ns) {
  NoteLease(now_ns);
  if (role_ == MemberRole::kEnded) return std::nullopt;
  if (successor_) {
    if (now_ns < ReleaseNs()) return std::nullopt;
    return cluster::v1::CONTROL_KIND_RELEASE;
  }
  if (const std::optional<int64_t> takeover_ns = TakeoverNs(nullptr);
      takeover_ns && *takeover_ns <= now_ns) {
    return cluster::v1::CONTROL_KIND_TAKEOVER;
  }
  if (heartbeat_due_ns_ > now_ns && wanted_ <= sent_) return std::nullopt;
  return cluster::v1::CONTROL_KIND_HEARTBEAT;
}

void MemberLogic::OnSent(cluster::v1::ControlKind kind, uint64_t number,
                         int64_t now_ns) {
  sent_ = number;
  heartbeat_due_ns_ = now_ns + HeartbeatNs();
  if (kind == cluster::v1::CONTROL_KIND_TAKEOVER) {
    takeover_not_before_ns_ = now_ns + HeartbeatNs();
  }
  if (kind == cluster::v1::CONTROL_KIND_RELEASE) {
    release_due_ns_ = now_ns + HeartbeatNs();
  }
}

int64_t MemberLogic::NextNs() const {
  if (role_ == MemberRole::kEnded) return INT64_MAX;
  if (successor_) return ReleaseNs();
  if (wanted_ > sent_) return INT64_MIN;
  return std::min(heartbeat_due_ns_, TakeoverNs(nullptr).value_or(INT64_MAX));
}

int64_t MemberLogic::ReleaseNs() const {
  return std::max(release_due_ns_, former_lease_end_ns_);
}

ControlRecord MemberLogic::Make(cluster::v1::ControlKind kind, uint64_t number,
                                int64_t now_ns, int64_t wall_us) {
  made_ = number;
  ControlRecord record;
  record.set_number(number);
  record.set_kind(kind);
  record.set_node(options_.node);
  record.set_incarnation(options_.incarnation);
  record.set_address(options_.address);
  record.set_version(options_.version);
  record.set_lease_us(absl::ToInt64Microseconds(options_.lease));
  record.set_failure_timeout_us(
      absl::ToInt64Microseconds(options_.failure_timeout));
  if (lag_messages_) record.set_lag_messages(*lag_messages_);
  if (lag_messages_ == 0) {
    record.set_lag_age_us(0);
  } else if (behind_since_ns_) {
    record.set_lag_age_us((now_ns - *behind_since_ns_) / kNsPerUs);
  }
  record.set_ready(IsReady());
  if (own_read_ns_) record.set_read_offset(read_offset_);
  record.set_sent_wall_us(wall_us);
  record.set_sent_boot_ns(now_ns);
  record.set_takeover(state_.takeover());
  if (IsOwner()) {
    record.set_owns(true);
    record.set_owner_since_ms(absl::ToUnixMillis(state_.owner()->since));
  }
  record.set_journal_id(IsOwner() && journal_id_ != 0 ? journal_id_
                                                      : state_.journal_id());
  if (successor_) record.set_successor(*successor_);
  return record;
}

void MemberLogic::NoteLease(int64_t now_ns) {
  if (role_ != MemberRole::kOwner || successor_ || late_since_ns_ ||
      lease_end_ns_ > now_ns) {
    return;
  }
  late_since_ns_ = lease_end_ns_;
  Add(MemberEvent::Kind::kLeaseLate, options_.node);
}

bool MemberLogic::IsReady() const {
  return role_ == MemberRole::kStandby && !yields_ && ClockIsRight() &&
         lag_messages_ && *lag_messages_ <= kCaughtUpMessages &&
         HasTheJournal();
}

std::optional<int64_t> MemberLogic::TakeoverNs(std::string* why) const {
  std::string none;
  if (why == nullptr) why = &none;
  if (role_ != MemberRole::kStandby) return std::nullopt;
  if (!own_read_ns_) {
    *why = "no heartbeat of its own has come back from the control log";
    return std::nullopt;
  }
  if (!lag_messages_) {
    *why = "it does not replay the journal yet";
    return std::nullopt;
  }
  if (!ClockIsRight()) {
    *why = absl::StrCat(
        "its clock differs from the brokers' by ",
        absl::FormatDuration(absl::Microseconds(BestSkew()->skew_us)),
        ", as far as a round trip of ",
        absl::FormatDuration(absl::Microseconds(BestSkew()->round_trip_us)),
        " shows");
    return std::nullopt;
  }
  if (!HasTheJournal()) {
    *why =
        "the journal's topic was made anew, and lacks what the cluster held: "
        "bring the topic back; or, to begin with an empty journal, make the "
        "control topic anew, too, and start the nodes again";
    return std::nullopt;
  }
  if (*lag_messages_ > kCaughtUpMessages) {
    *why = absl::StrCat("it has still to replay ", *lag_messages_,
                        " messages of the journal");
  }
  if (!vacant_since_ns_) return std::nullopt;
  return std::max(*vacant_since_ns_ + CandidateDelayNs(),
                  takeover_not_before_ns_);
}

std::pair<size_t, std::string> MemberLogic::Precedence(
    const std::string& node) const {
  const auto found = std::find(preferred_.begin(), preferred_.end(), node);
  return {static_cast<size_t>(found - preferred_.begin()), node};
}

int64_t MemberLogic::CandidateDelayNs() const {
  const std::optional<ControlState::Owner> owner = state_.owner();
  if (owner && owner->released && owner->successor == options_.node) return 0;
  const bool ready = IsReady();
  const auto mine = Precedence(options_.node);
  bool others_ready = false;
  int64_t rank = 0;
  state_.VisitLive([&](const ControlRecord& other) {
    if (IsMine(other) || state_.IsOwner(other.node(), other.incarnation())) {
      return;
    }
    others_ready = others_ready || other.ready();
    if (other.ready() == ready && Precedence(other.node()) < mine) ++rank;
  });
  const int64_t yield_ns =
      !ready && others_ready ? Ns(options_.failure_timeout) : 0;
  return yield_ns + rank * Ns(kRankDelay);
}

// --- What the node asks.

void MemberLogic::SetLag(uint64_t messages, absl::Duration age,
                         int64_t now_ns) {
  lag_messages_ = messages;
  behind_since_ns_.reset();
  if (age < absl::InfiniteDuration()) behind_since_ns_ = now_ns - Ns(age);
}

void MemberLogic::BeginService(int64_t now_ns) {
  if (role_ != MemberRole::kTakingOver) return;
  role_ = MemberRole::kOwner;
  NoteLease(now_ns);
}

absl::Status MemberLogic::CheckSuccessor(const std::string& to) const {
  bool found = false;
  bool ready = false;
  state_.VisitLive([&](const ControlRecord& other) {
    if (IsMine(other) || (!to.empty() && other.node() != to)) return;
    found = true;
    ready = ready || other.ready();
  });
  if (ready) return absl::OkStatus();
  if (to.empty()) return NoSuccessor("no standby would take over at once");
  if (!found) return NoSuccessor(absl::StrCat("no node ", to, " lives"));
  return NoSuccessor(absl::StrCat(
      "node ", to,
      " would not take over: it has not caught up, or its clock is wrong"));
}

absl::Status MemberLogic::BeginRelease(const std::string& to) {
  if (role_ != MemberRole::kTakingOver && role_ != MemberRole::kOwner) {
    return NoSuccessor("this node is not the owner");
  }
  if (!to.empty()) {
    if (absl::Status status = CheckSuccessor(to); !status.ok()) return status;
  }
  successor_ = to.empty() ? FurthestStandby() : to;
  lease_end_ns_ = INT64_MIN;
  return absl::OkStatus();
}

std::string MemberLogic::OwnerAddress() const {
  const std::optional<ControlState::Owner> owner = state_.owner();
  if (!owner || role_ == MemberRole::kTakingOver) return "";
  std::string name = owner->successor;
  if (!owner->released) {
    if (!IsOwner()) return owner->node.gone ? "" : owner->node.address;
    name = successor_ ? *successor_ : FurthestStandby();
  }
  std::string address;
  state_.VisitLive([&](const ControlRecord& other) {
    if (other.node() != name || IsMine(other)) return;
    if (address.empty() || other.ready()) address = other.address();
  });
  return address;
}

std::string MemberLogic::FurthestStandby() const {
  std::string furthest;
  uint64_t least_lag = UINT64_MAX;
  state_.VisitLive([&](const ControlRecord& other) {
    if (IsMine(other) || !other.ready() || other.lag_messages() >= least_lag) {
      return;
    }
    least_lag = other.lag_messages();
    furthest = other.node();
  });
  return furthest;
}

MemberStatus MemberLogic::Status(int64_t now_ns) const {
  MemberStatus status;
  status.view = state_.view();
  status.role = role_;
  if (lease_end_ns_ != INT64_MIN) {
    status.lease_left = absl::Nanoseconds(lease_end_ns_ - now_ns);
  }
  if (const SkewSample* const best = BestSkew(); best != nullptr) {
    status.clock_skew = absl::Microseconds(best->skew_us);
  }
  if (own_read_ns_) {
    status.since_heartbeat = absl::Nanoseconds(now_ns - *own_read_ns_);
  }
  TakeoverNs(&status.waits_for);
  status.successor = successor_ ? *successor_ : FurthestStandby();
  return status;
}

std::vector<MemberEvent> MemberLogic::TakeEvents() {
  return std::exchange(events_, {});
}

}  // namespace timecache::server
