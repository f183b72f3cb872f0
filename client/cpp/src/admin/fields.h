// The fields of the structs that describe namespaces, groups and the server,
// each once, by its name in the messages. Internal to the client and its tools.

#ifndef TIMECACHED_CLIENT_CPP_SRC_ADMIN_FIELDS_H_
#define TIMECACHED_CLIENT_CPP_SRC_ADMIN_FIELDS_H_

#include <concepts>
#include <type_traits>

#include "timecache/group_types.h"
#include "timecache/namespace_types.h"
#include "timecache/server_types.h"

namespace timecache {

template <typename T, typename Struct>
concept FieldsOf = std::same_as<std::remove_const_t<T>, Struct>;

// Each calls visit("name", field) for all fields.
void ForEachField(FieldsOf<NamespaceOptions> auto& o, auto visit) {
  visit("ttl", o.ttl);
  visit("num_buckets", o.num_buckets);
  visit("max_ttl", o.max_ttl);
  visit("sliding", o.sliding);
  visit("max_entries", o.max_entries);
  visit("max_bytes", o.max_bytes);
  visit("limit_policy", o.limit_policy);
  visit("max_value_bytes", o.max_value_bytes);
  visit("event_retention", o.event_retention);
  visit("event_retention_bytes", o.event_retention_bytes);
  visit("num_shards", o.num_shards);
  visit("dead_letter_namespace", o.dead_letter_namespace);
  visit("max_operations_per_second", o.max_operations_per_second);
  visit("max_backlog_bytes", o.max_backlog_bytes);
  visit("unused_group_ttl", o.unused_group_ttl);
  visit("durability", o.durability);
  visit("restart_policy", o.restart_policy);
  visit("max_life", o.max_life);
  visit("idempotency_window", o.idempotency_window);
  visit("idempotency_max_ids", o.idempotency_max_ids);
  visit("change_retention", o.change_retention);
  visit("change_retention_bytes", o.change_retention_bytes);
  visit("num_partitions", o.num_partitions);
}

void ForEachField(FieldsOf<NamespaceStatistics> auto& s, auto visit) {
  visit("entries", s.entries);
  visit("bytes", s.bytes);
  visit("memory_bytes", s.memory_bytes);
  visit("live_buckets", s.live_buckets);
  visit("expired", s.expired);
  visit("evicted", s.evicted);
  visit("rotated", s.rotated);
  visit("events_retained", s.events_retained);
  visit("events_retained_bytes", s.events_retained_bytes);
  visit("watchers", s.watchers);
  visit("watermark", s.watermark);
  visit("lateness_p50", s.lateness_p50);
  visit("lateness_p99", s.lateness_p99);
  visit("lateness_max", s.lateness_max);
  visit("bound_violations", s.bound_violations);
  visit("expired_while_down", s.expired_while_down);
  visit("puts", s.puts);
  visit("hits", s.hits);
  visit("misses", s.misses);
  visit("appends", s.appends);
  visit("combines", s.combines);
  visit("gathers", s.gathers);
  visit("rate_limited", s.rate_limited);
  visit("events_reclaimed", s.events_reclaimed);
  visit("backlog_bytes", s.backlog_bytes);
  visit("backlog_limit_bytes", s.backlog_limit_bytes);
  visit("groups_expired", s.groups_expired);
  visit("changes_retained", s.changes_retained);
  visit("changes_retained_bytes", s.changes_retained_bytes);
}

void ForEachField(FieldsOf<Namespace> auto& ns, auto visit) {
  visit("name", ns.name);
  visit("options", ns.options);
  visit("bucket_width", ns.bucket_width);
  visit("statistics", ns.statistics);
}

void ForEachField(FieldsOf<GroupOptions> auto& o, auto visit) {
  visit("ack_timeout", o.ack_timeout);
  visit("max_attempts", o.max_attempts);
  visit("max_backlog_bytes", o.max_backlog_bytes);
  visit("unused_ttl", o.unused_ttl);
  visit("retry_delay", o.retry_delay);
  visit("retry_multiplier", o.retry_multiplier);
  visit("max_retry_delay", o.max_retry_delay);
  visit("retry_jitter_percent", o.retry_jitter_percent);
  visit("paused", o.paused);
  visit("single_active", o.single_active);
  visit("key_prefix", o.key_prefix);
  visit("retry_delays", o.retry_delays);
}

void ForEachField(FieldsOf<GroupStatistics> auto& s, auto visit) {
  visit("members", s.members);
  visit("unresponsive_members", s.unresponsive_members);
  visit("backlog", s.backlog);
  visit("backlog_bytes", s.backlog_bytes);
  visit("in_flight", s.in_flight);
  visit("fetched", s.fetched);
  visit("in_flight_bytes", s.in_flight_bytes);
  visit("oldest_unsettled", s.oldest_unsettled);
  visit("delivered", s.delivered);
  visit("redelivered", s.redelivered);
  visit("acked", s.acked);
  visit("nacked", s.nacked);
  visit("put_back", s.put_back);
  visit("terminated", s.terminated);
  visit("timed_out", s.timed_out);
  visit("returned", s.returned);
  visit("extended", s.extended);
  visit("suspects", s.suspects);
  visit("dead_lettered", s.dead_lettered);
  visit("dead_letter_failures", s.dead_letter_failures);
  visit("dead_letters_denied", s.dead_letters_denied);
  visit("dead_letters_dropped", s.dead_letters_dropped);
  visit("lost", s.lost);
  visit("unused_since", s.unused_since);
}

void ForEachField(FieldsOf<GroupMember> auto& member, auto visit) {
  visit("id", member.id);
  visit("principal", member.principal);
  visit("peer", member.peer);
  visit("since", member.since);
  visit("in_flight", member.in_flight);
  visit("max_in_flight", member.max_in_flight);
  visit("window", member.window);
  visit("unresponsive", member.unresponsive);
  visit("active", member.active);
}

void ForEachField(FieldsOf<Group> auto& group, auto visit) {
  visit("name", group.name);
  visit("namespace", group.ns);
  visit("options", group.options);
  visit("created_by", group.created_by);
  visit("statistics", group.statistics);
}

void ForEachField(FieldsOf<LimitUse> auto& use, auto visit) {
  visit("used", use.used);
  visit("max", use.max);
}

void ForEachField(FieldsOf<MemoryShares> auto& shares, auto visit) {
  visit("entries_bytes", shares.entries_bytes);
  visit("retained_bytes", shares.retained_bytes);
  visit("backlog_bytes", shares.backlog_bytes);
}

void ForEachField(FieldsOf<JournalStatus> auto& journal, auto visit) {
  visit("directory", journal.directory);
  visit("disk_bytes", journal.disk_bytes);
  visit("disk_full", journal.disk_full);
  visit("waiting_bytes", journal.waiting_bytes);
  visit("commits", journal.commits);
  visit("appends", journal.appends);
  visit("written_bytes", journal.written_bytes);
  visit("commit_time", journal.commit_time);
  visit("commit_p99", journal.commit_p99);
  visit("checkpoints", journal.checkpoints);
  visit("checkpoint_state", journal.checkpoint_state);
}

void ForEachField(FieldsOf<ServerInfo> auto& server, auto visit) {
  visit("version", server.version);
  visit("start_time", server.start_time);
  visit("now", server.now);
  visit("clock_offset", server.clock_offset);
  visit("draining", server.draining);
  visit("namespaces", server.namespaces);
  visit("entries", server.entries);
  visit("bytes", server.bytes);
  visit("watchers", server.watchers);
  visit("memory_bytes", server.memory_bytes);
  visit("connections", server.connections);
  visit("memory_shares", server.memory_shares);
  visit("journal", server.journal);
}

// A message's value of an enum that has no kUnknown, less the struct's: 0 is
// UNSPECIFIED.
template <typename Enum>
inline constexpr int kEnumOffset = requires {
  Enum::kUnknown;
}
? 0 : 1;

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_ADMIN_FIELDS_H_
