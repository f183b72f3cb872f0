// The fields of a Store's arguments and results, but for events (event_fields.h).

#ifndef TIMECACHED_SERVER_PEER_STORE_FIELDS_H_
#define TIMECACHED_SERVER_PEER_STORE_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/store.h"
#include "server/peer/field_coder.h"
#include "server/peer/status_fields.h"

namespace timecache::server {

// --- Entries.

// Batches have many of these, and most of their fields are seldom set: others are not
// there.

// Without its gathering: see WriteOperations.
template <typename Coder, Is<Operation> T>
void CodeFields(Coder& code, T& op) {
  bool conditional = op.condition != Condition::kNone;
  bool named = op.id_bytes > 0 || op.trace_bytes > 0;
  code(op.kind);
  code.Flags(op.touch, op.never_touch, op.return_previous, op.has_ttl,
             op.keep_deadline, conditional, named, op.has_expire_at,
             op.allow_past, op.namespace_ttl, op.remove_if_zero, op.parts,
             op.letter);
  code(op.key, op.value);
  if (op.has_ttl) code(op.ttl_us);
  if (op.has_expire_at) code(op.expire_at_us);
  if (conditional) code(op.condition, op.if_version);
  if (op.kind == OpKind::kCombine) code(op.combination, op.operand, op.initial);
  if (!named) return;
  absl::string_view id = op.id();
  absl::string_view trace = op.trace();
  code(id, trace);
  if constexpr (Coder::kReads) {
    op.SetId(id);
    op.SetTrace(trace);
  }
}

template <typename Coder, Is<Entry> T>
void CodeFields(Coder& code, T& entry) {
  // As it was put first, or again.
  bool renewed = entry.create_us != entry.put_us;
  bool owns_ttl = entry.own_ttl_us != 0;
  uint64_t life_us = static_cast<uint64_t>(entry.deadline_us) -
                     static_cast<uint64_t>(entry.put_us);
  code.Flags(entry.parts, renewed, owns_ttl);
  code(entry.value, entry.version, entry.put_us, life_us);
  if constexpr (Coder::kReads) {
    entry.deadline_us =
        static_cast<int64_t>(static_cast<uint64_t>(entry.put_us) + life_us);
    entry.create_us = entry.put_us;
    entry.own_ttl_us = 0;
  }
  if (renewed) code(entry.create_us);
  if (owns_ttl) code(entry.own_ttl_us);
}

// Of one that is answered.
template <typename Coder, Is<Result> T>
void CodeFields(Coder& code, T& result) {
  bool failed = !result.status.ok();
  bool has_entry = result.has_entry;
  bool has_number = result.number != 0;
  code.Flags(failed, result.found, result.removed, result.duplicate, has_entry,
             has_number);
  code(result.version);
  if (has_number) code(result.number);
  if (failed) code(result.status);
  if (has_entry) code(result.entry);
  if constexpr (Coder::kReads) result.has_entry = has_entry;
}

// About what one takes, beside its key and its value.
inline constexpr size_t kBytesOfOperation = 24;
inline constexpr size_t kBytesOfResult = 48;

// Operations with what their Gatherings are.
void WriteOperations(absl::Span<const Operation> operations, FieldWriter* to);
// The results of a batch, which their reader knows the number of.
void WriteResults(absl::Span<const Result> results, FieldWriter* to);

// Operations that were read, whose views are into what they were read from.
struct ReadOperations {
  std::vector<Operation> operations;
  // Of those that gather. They stay where they are.
  std::deque<Gathering> gatherings;

  // False: not what WriteOperations writes.
  bool Read(FieldReader* from);
  void Clear() {
    operations.clear();
    gatherings.clear();
  }
};

template <typename Coder, Is<NamespaceSize> T>
void CodeFields(Coder& code, T& size) {
  code(size.entries, size.bytes);
}

template <typename Coder, Is<ScanPosition> T>
void CodeFields(Coder& code, T& position) {
  code(position.shard, position.tag, position.rest, position.map,
       position.begun, position.partition);
}

template <typename Coder, Is<ScannedEntry> T>
void CodeFields(Coder& code, T& entry) {
  code(entry.key, entry.value, entry.version, entry.put_us, entry.deadline_us,
       entry.parts, entry.create_us, entry.own_ttl_us, entry.trace,
       entry.change, entry.next);
}

// --- Namespaces.

// By name, so that an option may stand anywhere in VisitOptions.
template <typename Options>
void WriteOptions(const Options& options, FieldWriter* to) {
  std::map<std::string, std::string> values;
  VisitOptions(&options, [&](const char* name, const auto* field,
                             const OptionRange& /*range*/) {
    FieldWriter value;
    value(*field);
    values.emplace(name, value.Take());
  });
  (*to)(values);
}
template <typename Options>
void ReadOptions(FieldReader* from, Options* options) {
  std::map<std::string, absl::string_view> values;
  (*from)(values);
  VisitOptions(options, [&](const char* name, auto* field,
                            const OptionRange& /*range*/) {
    const auto value = values.find(name);
    if (value == values.end()) return;
    FieldReader reader(value->second);
    reader(*field);
  });
}

template <typename Coder, Is<NamespaceOptions> T>
void CodeFields(Coder& code, T& options) {
  if constexpr (Coder::kReads) {
    ReadOptions(&code, &options);
  } else {
    WriteOptions(options, &code);
  }
}

template <typename Coder, Is<DurationHistogram> T>
void CodeFields(Coder& code, T& histogram) {
  DurationHistogram::CodeFields(code, histogram);
}

template <typename Coder, Is<OperationCounts> T>
void CodeFields(Coder& code, T& counts) {
  code(counts.puts, counts.hits, counts.misses, counts.removals, counts.appends,
       counts.combines, counts.gathers);
}

template <typename Coder, Is<NamespaceStatistics> T>
void CodeFields(Coder& code, T& s) {
  code(s.entries, s.bytes, s.memory_bytes, s.live_buckets, s.expired, s.evicted,
       s.rotated, s.events_retained, s.events_retained_bytes,
       s.events_reclaimed, s.oldest_retained_us, s.watchers, s.changes_retained,
       s.changes_retained_bytes, s.watch_owed, s.watch_delivered, s.watch_lost,
       s.watch_left, s.watch_pending, s.watch_lag, s.oldest_unread_us,
       s.watermark_us, s.bucket_width_us, s.lateness, s.delivery_lateness,
       s.bound_violations, s.expired_while_down, s.operations, s.refused,
       s.rate_limited, s.backlog_bytes, s.backlog_limit_bytes,
       s.groups_expired);
}

template <typename Coder, Is<NamespaceInfo> T>
void CodeFields(Coder& code, T& info) {
  code(info.name, info.options, info.statistics, info.warnings);
}

// Without `visible`.
template <typename Coder, Is<ListQuery> T>
void CodeFields(Coder& code, T& query) {
  code(query.after, query.most, query.include_statistics, query.namespaces_only,
       query.slots);
}

template <typename Coder, typename T>
requires Is<T, Page<NamespaceInfo>> || Is<T, Page<GroupInfo>>
void CodeFields(Coder& code, T& page) { code(page.items, page.more); }

template <typename Coder, Is<DeathsQuery> T>
void CodeFields(Coder& code, T& query) {
  code(query.max_bars, query.within_us, query.begin_us, query.end_us);
}

template <typename Coder, Is<DeathsAhead::Amount> T>
void CodeFields(Coder& code, T& amount) {
  code(amount.entries, amount.bytes);
}

template <typename Coder, Is<DeathsAhead> T>
void CodeFields(Coder& code, T& deaths) {
  code(deaths.now_us, deaths.begin_us, deaths.bar_us, deaths.bars,
       deaths.later);
}

template <typename Coder, Is<HotKeys::Key> T>
void CodeFields(Coder& code, T& key) {
  code(key.key, key.reads_per_second, key.writes_per_second, key.value_bytes);
}

template <typename Coder, Is<HotKeys> T>
void CodeFields(Coder& code, T& keys) {
  code(keys.keys, keys.window_us, keys.sampled, keys.operations_per_second);
}

// --- Groups.

template <typename Coder, Is<LogPoint> T>
void CodeFields(Coder& code, T& point) {
  code(point.log_id, point.next_event, point.watermark_us);
}

template <typename Coder, Is<LogPosition> T>
void CodeFields(Coder& code, T& position) {
  code(position.kind, position.start, position.time_us, position.point,
       position.points);
}

template <typename Coder, Is<GroupOptions> T>
void CodeFields(Coder& code, T& options) {
  if constexpr (Coder::kReads) {
    ReadOptions(&code, &options);
  } else {
    WriteOptions(options, &code);
  }
  code(options.key_prefix, options.retry_delays_us);
}

template <typename Coder, Is<GroupStatistics> T>
void CodeFields(Coder& code, T& s) {
  code(s.members, s.events, s.unresponsive_members, s.backlog, s.backlog_bytes,
       s.in_flight, s.in_flight_bytes, s.unused_since_us, s.oldest_unsettled_us,
       s.delivered, s.redelivered, s.acked, s.nacked, s.put_back, s.timed_out,
       s.dead_lettered, s.dead_letter_failures, s.dead_letters_denied,
       s.dead_letters_dropped, s.lost, s.returned, s.extended, s.suspects,
       s.terminated, s.fetched, s.moved, s.skipped);
}

template <typename Coder, Is<GroupInfo> T>
void CodeFields(Coder& code, T& info) {
  code(info.namespace_name, info.name, info.options, info.created_by,
       info.statistics);
}

template <typename Coder, Is<GroupName> T>
void CodeFields(Coder& code, T& name) {
  code(name.namespace_name, name.name);
}

template <typename Coder, Is<NewGroup> T>
void CodeFields(Coder& code, T& group) {
  code(group.options, group.start, group.created_by);
}

template <typename Coder, Is<MemberOrigin> T>
void CodeFields(Coder& code, T& origin) {
  code(origin.principal, origin.peer, origin.since_us);
}

template <typename Coder, Is<MemberInfo> T>
void CodeFields(Coder& code, T& info) {
  code(info.id, info.origin, info.in_flight, info.max_in_flight, info.window,
       info.unresponsive, info.active);
}

template <typename Coder, Is<SeekResult> T>
void CodeFields(Coder& code, T& result) {
  code(result.unsettled, result.dropped);
}

template <typename Coder, Is<UnsettledQuery> T>
void CodeFields(Coder& code, T& query) {
  code(query.from, query.key_prefix, query.most, query.include_values,
       query.partition);
}

template <typename Coder, Is<Settlement> T>
void CodeFields(Coder& code, T& s) {
  code(s.event_id, s.attempt, s.action, s.delay_us, s.ttl_us, s.returns,
       s.group_id, s.expire_at_us, s.allow_past, s.reason, s.by_operator,
       s.partition);
}

template <typename Coder, Is<SettleResult> T>
void CodeFields(Coder& code, T& result) {
  code(result.status, result.version);
}

// --- Readers.

// Without `in_flight`, which this side keeps: see PeerGrant.
template <typename Coder, Is<Membership> T>
void CodeFields(Coder& code, T& membership) {
  code(membership.group, membership.max_in_flight, membership.start,
       membership.created_by, membership.peer, membership.fetches,
       membership.waits, membership.member_id);
}

template <typename Coder, Is<ExpiringOptions> T>
void CodeFields(Coder& code, T& options) {
  code(options.lead_us, options.key_prefix, options.keys_only);
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_STORE_FIELDS_H_
