#include "server/cluster/control_state.h"

#include <algorithm>

namespace timecache::server {
namespace {

constexpr int64_t kUsPerMs = 1'000;
// What no configuration exceeds: a record that says more is not believed.
constexpr int64_t kMaxControlTimeUs = 3'600'000'000;

int64_t BoundedUs(int64_t us) {
  return std::clamp<int64_t>(us, kUsPerMs, kMaxControlTimeUs);
}

int64_t LeaseUs(const ControlRecord& record) {
  return BoundedUs(record.lease_us());
}

int64_t FailureTimeoutUs(const ControlRecord& record) {
  return BoundedUs(record.failure_timeout_us());
}

}  // namespace

void ControlState::Count(int64_t append_time_ms, const ControlRecord& record) {
  const ControlRecord& pace = owner_ ? owner_->last.record : record;
  const int64_t step_ms =
      std::clamp<int64_t>(append_time_ms, 0, INT64_MAX / 2) - last_append_ms_;
  counted_us_ +=
      std::clamp<int64_t>(step_ms, 0, LeaseUs(pace) / 2 / kUsPerMs) * kUsPerMs;
}

void ControlState::AddMark(int64_t offset, int64_t append_time_ms) {
  if (!marks_.empty() &&
      append_time_ms / kMarkIntervalMs == last_append_ms_ / kMarkIntervalMs) {
    return;
  }
  marks_.push_back({offset, counted_us_});
  if (marks_.size() > kMaxMarks) marks_.pop_front();
}

// A version that does not say so reads.
int64_t ControlState::ReadUs(const ControlRecord& record) const {
  if (!record.has_read_offset() || marks_.empty()) return counted_us_;
  const auto after = std::partition_point(
      marks_.begin(), marks_.end(),
      [&](const Mark& mark) { return mark.offset < record.read_offset(); });
  return after == marks_.begin() ? marks_.front().counted_us
                                 : std::prev(after)->counted_us;
}

bool ControlState::ReadsInTime(const ControlRecord& record,
                               int64_t read_us) const {
  return read_us_ - read_us < LeaseUs(record);
}

void ControlState::NoteReading(Seen* seen) const {
  if (ReadsInTime(seen->record, seen->read_us)) seen->in_time_us = counted_us_;
}

bool ControlState::IsGone(const Seen& seen) const {
  const int64_t timeout_us = FailureTimeoutUs(seen.record);
  return counted_us_ - seen.heard_us >= timeout_us ||
         counted_us_ - seen.in_time_us >=
             std::max(timeout_us - LeaseUs(seen.record) / 2, timeout_us / 2);
}

bool ControlState::IsLive(const std::string& name) const {
  for (auto it = nodes_.lower_bound({name, 0});
       it != nodes_.end() && it->first.first == name; ++it) {
    if (!IsGone(it->second)) return true;
  }
  return false;
}

ControlState::Seen ControlState::Remember(const ControlRecord& record) {
  const NodeKey key(record.node(), record.incarnation());
  const auto [at, is_new] = nodes_.try_emplace(key);
  Seen& seen = at->second;
  if (is_new) seen.in_time_us = counted_us_;
  seen.record = record;
  seen.heard_us = counted_us_;
  seen.read_us = ReadUs(record);
  if (record.has_read_offset()) read_us_ = std::max(read_us_, seen.read_us);
  for (auto& [_, each] : nodes_) NoteReading(&each);
  const Seen remembered = seen;
  if (owner_ && owner_->key == key) owner_->last = remembered;
  if (owner_) NoteReading(&owner_->last);
  // A process that has ended, when another of its name lives, and who is long gone.
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    const int64_t silence_us = counted_us_ - it->second.heard_us;
    const bool replaced = it->first.first == record.node() &&
                          it->first != key &&
                          (one_of_a_name_ || IsGone(it->second));
    const bool old = silence_us >= absl::ToInt64Microseconds(kForgetAfter) &&
                     IsGone(it->second);
    it = replaced || old ? nodes_.erase(it) : std::next(it);
  }
  if (nodes_.size() > kMaxNodes) {
    nodes_.erase(std::min_element(
        nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) {
          return a.second.heard_us < b.second.heard_us;
        }));
  }
  return remembered;
}

void ControlState::Apply(int64_t offset, int64_t append_time_ms,
                         const ControlRecord& record) {
  if (first_offset_) {
    Count(append_time_ms, record);
  } else {
    first_offset_ = offset;
  }
  AddMark(offset, append_time_ms);
  last_append_ms_ = std::clamp<int64_t>(append_time_ms, 0, INT64_MAX / 2);
  if (record.node().empty()) return;
  const Seen seen = Remember(record);

  LearnTakeover(offset, seen);
  const NodeKey key(record.node(), record.incarnation());
  if (record.kind() == cluster::v1::CONTROL_KIND_TAKEOVER &&
      MayTakeOver(record)) {
    takeover_ = offset + 1;
    owner_ = {key, seen, append_time_ms, false, ""};
  }
  if (record.journal_id() != 0 &&
      (journal_id_ == 0 || (owner_ && owner_->key == key))) {
    journal_id_ = record.journal_id();
  }
  if (record.kind() == cluster::v1::CONTROL_KIND_RELEASE && record.owns() &&
      owner_ && owner_->key == key && record.takeover() == takeover_) {
    owner_->released = true;
    owner_->successor = record.successor();
  }
}

// Who has read the log from its beginning learns nothing here.
void ControlState::LearnTakeover(int64_t offset, const Seen& seen) {
  const ControlRecord& record = seen.record;
  const int64_t takeover = record.takeover();
  // None is after the record that repeats it.
  if (takeover > offset || takeover < takeover_ || takeover == 0) return;
  if (record.owns()) {
    if (takeover == takeover_ && owner_) return;
    owner_ = {{record.node(), record.incarnation()},
              seen,
              record.owner_since_ms(),
              false,
              ""};
  } else if (takeover > takeover_) {
    owner_.reset();
    unknown_since_us_ = counted_us_;
  }
  takeover_ = takeover;
}

bool ControlState::IsOwner(const std::string& name,
                           uint64_t incarnation) const {
  return owner_ && owner_->key == NodeKey(name, incarnation);
}

const ControlRecord* ControlState::live_owner() const {
  return owner_ && !owner_->released && !IsGone(owner_->last)
             ? &owner_->last.record
             : nullptr;
}

bool ControlState::MayTakeOver(const ControlRecord& record) const {
  if (closed_ || record.takeover() != takeover_ ||
      !ReadsInTime(record, ReadUs(record))) {
    return false;
  }
  if (!owner_) {
    return (first_offset_.value_or(0) == 0 && takeover_ == 0) ||
           counted_us_ - unknown_since_us_ >= FailureTimeoutUs(record);
  }
  if (IsGone(owner_->last)) return true;
  return owner_->released &&
         (owner_->successor.empty() || owner_->successor == record.node() ||
          !IsLive(owner_->successor));
}

ControlState::Node ControlState::Describe(const Seen& seen) const {
  Node node;
  node.name = seen.record.node();
  node.incarnation = seen.record.incarnation();
  node.address = seen.record.address();
  node.version = seen.record.version();
  node.lease = absl::Microseconds(LeaseUs(seen.record));
  node.failure_timeout = absl::Microseconds(FailureTimeoutUs(seen.record));
  if (seen.record.has_lag_messages()) {
    node.lag_messages = seen.record.lag_messages();
  }
  if (seen.record.has_lag_age_us()) {
    node.lag_age =
        absl::Microseconds(std::max<int64_t>(seen.record.lag_age_us(), 0));
  }
  node.ready = seen.record.ready();
  node.silence = absl::Microseconds(counted_us_ - seen.heard_us);
  node.unread =
      absl::Microseconds(std::max<int64_t>(read_us_ - seen.read_us, 0));
  node.gone = IsGone(seen);
  return node;
}

std::optional<ControlState::Owner> ControlState::owner() const {
  if (!owner_) return std::nullopt;
  return Owner{Describe(owner_->last), takeover_,
               absl::FromUnixMillis(owner_->since_ms), owner_->released,
               owner_->successor};
}

ControlState::View ControlState::view() const {
  View view;
  view.owner = owner();
  view.nodes.reserve(nodes_.size());
  for (const auto& [key, seen] : nodes_) view.nodes.push_back(Describe(seen));
  return view;
}

}  // namespace timecache::server
