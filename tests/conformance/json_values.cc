#include "tests/conformance/json_values.h"

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "timecache/status.h"

namespace timecache::conformance {
namespace {

// The metadata of errors that scenarios look at.
constexpr std::array kMetadata = {"lost", "namespace", "principal", "verb"};

Json Parts(const std::optional<GatheredParts>& parts) {
  if (!parts) return nullptr;
  Json list = Json::array();
  for (const GatheredPart& part : parts->parts) {
    list.push_back(
        {{"name", ToJson(part.name)}, {"value", ToJson(part.value)}});
  }
  return {{"parts", list},
          {"expected_parts", parts->expected_parts},
          {"expected_names", ToJson(parts->expected_names)}};
}

template <typename T>
Json Plain(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename Enum>
Json Name(const std::optional<Enum>& value,
          const std::vector<std::string>& names) {
  return value ? Json(names.at(static_cast<size_t>(*value))) : Json();
}

Json Options(const NamespaceOptions& options) {
  return {
      {"ttl", ToJson(options.ttl)},
      {"num_buckets", Plain(options.num_buckets)},
      {"max_ttl", ToJson(options.max_ttl)},
      {"sliding", Plain(options.sliding)},
      {"max_entries", Plain(options.max_entries)},
      {"max_bytes", Plain(options.max_bytes)},
      {"limit_policy", Name(options.limit_policy, {"REJECT", "EVICT_OLDEST"})},
      {"max_value_bytes", Plain(options.max_value_bytes)},
      {"event_retention", ToJson(options.event_retention)},
      {"event_retention_bytes", Plain(options.event_retention_bytes)},
      {"num_shards", Plain(options.num_shards)},
      {"dead_letter_namespace", Plain(options.dead_letter_namespace)},
      {"max_operations_per_second", Plain(options.max_operations_per_second)},
      {"max_backlog_bytes", Plain(options.max_backlog_bytes)},
      {"unused_group_ttl", ToJson(options.unused_group_ttl)},
      {"durability", Name(options.durability, {"MEMORY", "ASYNC", "SYNC"})},
      {"restart_policy", Name(options.restart_policy, {"FIRE", "PAUSE"})}};
}

Json Statistics(const NamespaceStatistics& statistics) {
  return {{"entries", statistics.entries},
          {"bytes", statistics.bytes},
          {"puts", statistics.puts},
          {"hits", statistics.hits},
          {"misses", statistics.misses},
          {"expired", statistics.expired},
          {"evicted", statistics.evicted},
          {"rotated", statistics.rotated},
          {"events_retained", statistics.events_retained},
          {"watchers", statistics.watchers},
          {"watermark", ToJson(statistics.watermark)}};
}

Json Statistics(const GroupStatistics& statistics) {
  return {{"members", statistics.members},
          {"backlog", statistics.backlog},
          {"in_flight", statistics.in_flight},
          {"oldest_unsettled", ToJson(statistics.oldest_unsettled)},
          {"delivered", statistics.delivered},
          {"redelivered", statistics.redelivered},
          {"acked", statistics.acked},
          {"nacked", statistics.nacked},
          {"put_back", statistics.put_back},
          {"timed_out", statistics.timed_out},
          {"dead_lettered", statistics.dead_lettered},
          {"lost", statistics.lost},
          {"unused_since", ToJson(statistics.unused_since)}};
}

Json Use(const std::optional<LimitUse>& use) {
  if (!use) return nullptr;
  return {{"used", use->used}, {"max", use->max}};
}

std::string CauseName(ExpiryCause cause) {
  static const std::vector<std::string> names = {
      "UNKNOWN", "EXPIRED", "EVICTED", "ROTATED", "EXPIRING"};
  return names.at(static_cast<size_t>(cause));
}

}  // namespace

void Require(bool holds, const std::string& what) {
  if (!holds) throw Mismatch(what);
}

std::string Data(const Json& value) {
  if (value.is_string()) return value;
  if (value.is_binary()) {
    return {value.get_binary().begin(), value.get_binary().end()};
  }
  if (value.is_object() && value.contains("hex")) {
    return absl::HexStringToBytes(value["hex"].get<std::string>());
  }
  Require(value.is_object() && value.contains("repeat"),
          "no bytes: " + value.dump());
  const std::string unit = value["repeat"];
  std::string bytes;
  for (int64_t i = 0; i < Integer(value["times"]); ++i) bytes += unit;
  return bytes;
}

absl::Duration Seconds(const Json& value) {
  absl::Duration duration;
  Require(value.is_string() &&
              absl::ParseDuration(value.get<std::string>(), &duration),
          "no duration: " + value.dump());
  return duration;
}

int64_t Integer(const Json& value) {
  if (value.is_number()) return value;
  int64_t number = 0;
  Require(
      value.is_string() && absl::SimpleAtoi(value.get<std::string>(), &number),
      "no integer: " + value.dump());
  return number;
}

Json ToJson(const std::string& bytes) {
  return Json::binary({bytes.begin(), bytes.end()});
}

Json ToJson(absl::Duration duration) {
  return {{"$duration", absl::ToInt64Nanoseconds(duration)}};
}

Json ToJson(absl::Time time) { return {{"$time", absl::ToUnixMicros(time)}}; }

Json ToJson(const Entry& entry) {
  return {{"key", ToJson(entry.key)},
          {"value", ToJson(entry.value)},
          {"version", entry.version},
          {"put_time", ToJson(entry.put_time)},
          {"deadline", ToJson(entry.deadline)},
          {"create_time", ToJson(entry.create_time)},
          {"own_ttl", ToJson(entry.own_ttl)},
          {"parts", Parts(entry.parts)},
          {"omitted_value_bytes", entry.omitted_value_bytes}};
}

Json ToJson(const PutResult& result) {
  return {{"version", result.version}, {"previous", ToJson(result.previous)}};
}

Json ToJson(const RemoveResult& result) {
  return {{"removed", result.removed}, {"previous", ToJson(result.previous)}};
}

Json ToJson(const AppendResult& result) {
  return {{"version", result.version},
          {"value_bytes", result.value_bytes},
          {"created", result.created}};
}

Json ToJson(const CombineResult& result) {
  return {{"result", result.result},
          {"version", result.version},
          {"created", result.created},
          {"removed", result.removed}};
}

Json ToJson(const GatherResult& result) {
  return {{"parts", Parts(result.parts)},
          {"version", result.version},
          {"count", result.count},
          {"duplicate", result.duplicate}};
}

Json ToJson(const SizeResult& result) {
  return {{"entries", result.entries}, {"bytes", result.bytes}};
}

Json ToJson(const ExpiredEvent& event) {
  return {{"namespace", event.ns},
          {"key", ToJson(event.key)},
          {"value", ToJson(event.value)},
          {"version", event.version},
          {"put_time", ToJson(event.put_time)},
          {"deadline", ToJson(event.deadline)},
          {"create_time", ToJson(event.create_time)},
          {"own_ttl", ToJson(event.own_ttl)},
          {"death_time", ToJson(event.death_time)},
          {"delivered_at", ToJson(event.delivered_at)},
          {"cause", CauseName(event.cause)},
          {"event_id", event.event_id},
          {"attempt", event.attempt},
          {"parts", Parts(event.parts)},
          {"omitted_value_bytes", event.omitted_value_bytes}};
}

Json ToJson(const Namespace& ns) {
  return {{"name", ns.name},
          {"options", Options(ns.options)},
          {"bucket_width", ToJson(ns.bucket_width)},
          {"statistics", ns.statistics ? Statistics(*ns.statistics) : Json()}};
}

Json ToJson(const Group& group) {
  return {{"name", group.name},
          {"namespace", group.ns},
          {"created_by", group.created_by},
          {"options",
           {{"ack_timeout", ToJson(group.options.ack_timeout)},
            {"max_attempts", Plain(group.options.max_attempts)},
            {"max_backlog_bytes", Plain(group.options.max_backlog_bytes)},
            {"unused_ttl", ToJson(group.options.unused_ttl)}}},
          {"statistics",
           group.statistics ? Statistics(*group.statistics) : Json()}};
}

Json ToJson(const ServerInfo& server) {
  return {{"version", server.version},
          {"start_time", ToJson(server.start_time)},
          {"now", ToJson(server.now)},
          {"draining", server.draining},
          {"namespaces", Use(server.namespaces)},
          {"entries", Use(server.entries)},
          {"bytes", Use(server.bytes)},
          {"watchers", Use(server.watchers)},
          {"connections", Use(server.connections)}};
}

Json ToJson(const absl::Status& error) {
  Json metadata = Json::object();
  for (const char* name : kMetadata) {
    if (const auto value = ErrorMetadata(error, name)) metadata[name] = *value;
  }
  const std::vector<FieldViolation> violations = FieldViolations(error);
  return {{"code", absl::StatusCodeToString(error.code())},
          {"reason", Plain(ReasonName(error))},
          {"field", violations.empty() ? Json() : Json(violations[0].field)},
          {"metadata", metadata},
          {"retry_delay", ToJson(RetryAfter(error))}};
}

Json TouchJson(bool touched, uint64_t version) {
  return {{"touched", touched}, {"version", version}};
}

Json ToJson(const std::string& kind, const OperationResult& result) {
  if (!result.status.ok()) return {{"error", ToJson(result.status)}};
  Json answer;
  if (kind == "put") {
    answer = ToJson(PutResult{result.version, result.entry});
  } else if (kind == "get") {
    answer = {{"entry", ToJson(result.entry)}};
  } else if (kind == "remove") {
    answer = ToJson(RemoveResult{result.found, result.entry});
  } else if (kind == "contains") {
    answer = {{"contains", result.found}};
  } else if (kind == "touch") {
    answer = TouchJson(result.found, result.version);
  } else if (kind == "append") {
    answer = ToJson(AppendResult{
        result.version, static_cast<uint64_t>(result.number), result.created});
  } else if (kind == "combine") {
    answer = ToJson(CombineResult{result.number, result.version, result.created,
                                  result.removed});
  } else {
    answer = ToJson(GatherResult{result.parts, result.version,
                                 static_cast<uint32_t>(result.number),
                                 result.duplicate});
  }
  return {{kind, answer}};
}

}  // namespace timecache::conformance
