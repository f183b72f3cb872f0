#include "tests/conformance/json_values.h"

#include <array>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/admin/fields.h"
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

std::string NameOf(LimitPolicy policy) {
  return policy == LimitPolicy::kReject ? "REJECT" : "EVICT_OLDEST";
}
std::string NameOf(RestartPolicy policy) {
  return policy == RestartPolicy::kFire ? "FIRE" : "PAUSE";
}
std::string NameOf(Durability durability) {
  return durability == Durability::kMemory  ? "MEMORY"
         : durability == Durability::kAsync ? "ASYNC"
                                            : "SYNC";
}
// Of no scenario.
Json NameOf(CheckpointState) { return nullptr; }

// The fields of a struct, by their names in the messages.
template <typename Struct>
Json Fields(const Struct& fields);

template <typename T>
Json Field(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return NameOf(value);
  } else if constexpr (std::is_arithmetic_v<T> ||
                       std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, absl::Time> ||
                       std::is_same_v<T, absl::Duration>) {
    return ToJson(value);
  } else {
    return Fields(value);
  }
}
Json Field(const std::vector<absl::Duration>& values) { return ToJson(values); }
template <typename T>
Json Field(const std::optional<T>& value) {
  return value ? Field(*value) : Json();
}

template <typename Struct>
Json Fields(const Struct& fields) {
  Json object = Json::object();
  ForEachField(fields, [&object](const char* name, const auto& field) {
    object[name] = Field(field);
  });
  return object;
}

std::string StateName(UnsettledState state) {
  static const std::vector<std::string> names = {
      "UNKNOWN",   "READY",   "BLOCKED_BY_KEY",
      "IN_FLIGHT", "DELAYED", "DEAD_LETTERING"};
  return names.at(static_cast<size_t>(state));
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
  const int64_t times = Integer(value["times"]);
  std::string bytes;
  for (int64_t i = 0; i < times; ++i) bytes += unit;
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

Json ToJson(const UnsettledEvent& event) {
  return {{"event", ToJson(event.event)},
          {"state", StateName(event.state)},
          {"member_id", event.member_id},
          {"since", ToJson(event.since)},
          {"due", ToJson(event.due)}};
}

Json ToJson(const DeadLetter& letter) {
  static const std::vector<std::string> reasons = {"UNSPECIFIED", "NACKED",
                                                   "TIMED_OUT", "TERMINATED"};
  Json event = ToJson(letter.event);
  event["dead_letter"] = {
      {"group", letter.group},
      {"attempts", letter.attempts},
      {"reason", reasons.at(static_cast<size_t>(letter.reason))},
      {"time", ToJson(letter.time)},
      {"reason_text", letter.reason_text}};
  return event;
}

Json ToJson(const SeekResult& result) {
  return {{"unsettled", result.unsettled}, {"dropped", result.dropped}};
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
          {"returns", event.returns},
          {"delivery_token", ToJson(event.delivery_token)},
          {"last_reason", event.last_reason},
          {"traceparent", event.traceparent},
          {"parts", Parts(event.parts)},
          {"omitted_value_bytes", event.omitted_value_bytes}};
}

Json ToJson(const ChangeEvent& change) {
  static constexpr const char* kKinds[] = {"UNKNOWN", "PUT", "RENEWED",
                                           "REMOVED"};
  return {{"kind", kKinds[static_cast<size_t>(change.kind)]},
          {"key", ToJson(change.key)},
          {"value", ToJson(change.value)},
          {"parts", Parts(change.parts)},
          {"version", change.version},
          {"deadline", change.deadline ? ToJson(*change.deadline) : Json()},
          {"time", ToJson(change.time)},
          {"omitted_value_bytes", change.omitted_value_bytes}};
}

Json ToJson(const Namespace& ns) { return Fields(ns); }
Json ToJson(const Group& group) { return Fields(group); }
Json ToJson(const GroupMember& member) { return Fields(member); }
Json ToJson(const DeathBar& bar) {
  return {{"begin", ToJson(bar.begin)},
          {"end", ToJson(bar.end)},
          {"entries", bar.entries},
          {"bytes", bar.bytes}};
}
Json ToJson(const DeathsAhead& deaths) {
  return {{"server_time", ToJson(deaths.server_time)},
          {"bars", ToJson(deaths.bars)},
          {"later_entries", deaths.later_entries},
          {"later_bytes", deaths.later_bytes}};
}
Json ToJson(const HotKey& key) {
  return {{"key", ToJson(key.key)},
          {"reads_per_second", key.reads_per_second},
          {"writes_per_second", key.writes_per_second},
          {"value_bytes", key.value_bytes}};
}
Json ToJson(const HotKeys& hot) {
  return {{"keys", ToJson(hot.keys)},
          {"window", ToJson(hot.window)},
          {"sampled", hot.sampled},
          {"operations_per_second", hot.operations_per_second}};
}
Json ToJson(const ServerInfo& server) { return Fields(server); }

Json ToJson(const absl::Status& error) {
  Json metadata = Json::object();
  for (const char* name : kMetadata) {
    if (const auto value = ErrorMetadata(error, name)) metadata[name] = *value;
  }
  const std::vector<FieldViolation> violations = FieldViolations(error);
  return {{"code", absl::StatusCodeToString(error.code())},
          {"reason", Field(ReasonName(error))},
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
