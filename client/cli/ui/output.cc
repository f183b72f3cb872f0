#include "client/cli/ui/output.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/ui/units.h"
#include "server/base/utf8.h"

namespace timecache::cli {
namespace {

// Whole milliseconds as an integer, parts of one as a fraction.
Json Milliseconds(absl::Duration duration) {
  const double milliseconds = absl::ToDoubleMilliseconds(duration);
  if (milliseconds == std::floor(milliseconds)) {
    return static_cast<int64_t>(milliseconds);
  }
  return milliseconds;
}

// The fields that a server of this version always sends.
template <typename T>
T Required(const std::optional<T>& option) {
  return option.value_or(T{});
}

std::string_view PolicyName(LimitPolicy policy) {
  return policy == LimitPolicy::kEvictOldest ? "evict-oldest" : "reject";
}

std::string_view RestartPolicyName(RestartPolicy policy) {
  return policy == RestartPolicy::kPause ? "pause" : "fire";
}

Json StatisticsToJson(const NamespaceStatistics& statistics) {
  return {{"entries", statistics.entries},
          {"bytes", statistics.bytes},
          {"memory_bytes", statistics.memory_bytes},
          {"live_buckets", statistics.live_buckets},
          {"expired", statistics.expired},
          {"evicted", statistics.evicted},
          {"rotated", statistics.rotated},
          {"events_retained", statistics.events_retained},
          {"events_retained_bytes", statistics.events_retained_bytes},
          {"watchers", statistics.watchers},
          {"watermark", ExactTimeText(statistics.watermark)},
          {"lateness_p50_ms", Milliseconds(statistics.lateness_p50)},
          {"lateness_p99_ms", Milliseconds(statistics.lateness_p99)},
          {"lateness_max_ms", Milliseconds(statistics.lateness_max)},
          {"bound_violations", statistics.bound_violations},
          {"expired_while_down", statistics.expired_while_down},
          {"puts", statistics.puts},
          {"hits", statistics.hits},
          {"misses", statistics.misses},
          {"appends", statistics.appends},
          {"combines", statistics.combines},
          {"gathers", statistics.gathers},
          {"rate_limited", statistics.rate_limited},
          {"backlog_bytes", statistics.backlog_bytes},
          {"backlog_limit_bytes", statistics.backlog_limit_bytes},
          {"groups_expired", statistics.groups_expired}};
}

Json StatisticsToJson(const GroupStatistics& statistics) {
  Json object = {{"members", statistics.members},
                 {"unresponsive_members", statistics.unresponsive_members},
                 {"backlog", statistics.backlog},
                 {"backlog_bytes", statistics.backlog_bytes},
                 {"in_flight", statistics.in_flight},
                 {"in_flight_bytes", statistics.in_flight_bytes},
                 {"oldest_unsettled", nullptr},
                 {"delivered", statistics.delivered},
                 {"redelivered", statistics.redelivered},
                 {"acked", statistics.acked},
                 {"nacked", statistics.nacked},
                 {"put_back", statistics.put_back},
                 {"timed_out", statistics.timed_out},
                 {"returned", statistics.returned},
                 {"extended", statistics.extended},
                 {"suspects", statistics.suspects},
                 {"dead_lettered", statistics.dead_lettered},
                 {"dead_letter_failures", statistics.dead_letter_failures},
                 {"dead_letters_denied", statistics.dead_letters_denied},
                 {"dead_letters_dropped", statistics.dead_letters_dropped},
                 {"lost", statistics.lost},
                 {"unused_since", nullptr}};
  if (statistics.unused_since) {
    object["unused_since"] = ExactTimeText(*statistics.unused_since);
  }
  if (statistics.oldest_unsettled) {
    object["oldest_unsettled"] = ExactTimeText(*statistics.oldest_unsettled);
  }
  return object;
}

// Kept, because by the time that it is asked for other calls have set errno.
int write_error = 0;

bool Wrote(bool ok) {
  if (!ok && write_error == 0) write_error = errno;
  return ok;
}

using Fields = std::vector<std::pair<std::string, std::string>>;

void Append(const Fields& more, Fields* fields) {
  fields->insert(fields->end(), more.begin(), more.end());
}

// Names in a column, values behind it.
std::string Columns(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    absl::StrAppendFormat(&text, "%-17s %s\n", name, value);
  }
  text.pop_back();
  return text;
}

Fields StatisticsFields(const NamespaceStatistics& s) {
  return {
      {"entries", absl::StrCat(s.entries, ", ", SizeText(s.bytes), ", in ",
                               s.live_buckets, " buckets")},
      {"memory", SizeText(s.memory_bytes)},
      {"operations",
       absl::StrCat(s.puts, " puts, ", s.hits, " hits, ", s.misses, " misses, ",
                    s.rate_limited, " rate limited")},
      {"died", absl::StrCat(s.expired, " expired, ", s.evicted, " evicted, ",
                            s.rotated, " rotated")},
      {"events retained", absl::StrCat(s.events_retained, ", ",
                                       SizeText(s.events_retained_bytes))},
      {"groups' backlog", absl::StrCat(SizeText(s.backlog_bytes), ", at most ",
                                       SizeText(s.backlog_limit_bytes))},
      {"groups gone", absl::StrCat(s.groups_expired)},
      {"watchers", absl::StrCat(s.watchers)},
      {"watermark", TimeText(s.watermark)},
      {"lateness", absl::StrCat("median ", DurationText(s.lateness_p50),
                                ", 99% ", DurationText(s.lateness_p99),
                                ", largest ", DurationText(s.lateness_max))},
      {"bound violations", absl::StrCat(s.bound_violations)},
      {"died while down", absl::StrCat(s.expired_while_down)}};
}

Fields StatisticsFields(const GroupStatistics& s) {
  return {
      {"members", s.unused_since
                      ? "none since " + TimeText(*s.unused_since)
                      : absl::StrCat(s.members, ", of these ",
                                     s.unresponsive_members, " unresponsive")},
      {"unsettled", absl::StrCat(s.backlog, " waiting, ", s.in_flight,
                                 " in flight, ", SizeText(s.backlog_bytes))},
      {"oldest", s.oldest_unsettled ? TimeText(*s.oldest_unsettled) : "none"},
      {"delivered",
       absl::StrCat(s.delivered, ", of these ", s.redelivered, " again")},
      {"settled", absl::StrCat(s.acked, " acked, ", s.put_back, " put back")},
      {"not settled",
       absl::StrCat(s.nacked, " nacked, ", s.timed_out, " timed out, ",
                    s.returned, " returned by the end of a stream")},
      {"extended", absl::StrCat(s.extended)},
      {"suspects", absl::StrCat(s.suspects)},
      {"dead letters",
       absl::StrCat(s.dead_lettered, ", ", s.dead_letter_failures,
                    " failures, of these ", s.dead_letters_denied, " denied, ",
                    s.dead_letters_dropped, " dropped")},
      {"lost", absl::StrCat(s.lost)}};
}

}  // namespace

void SetBytes(Json& object, const std::string& name, std::string_view bytes,
              Encoding encoding) {
  const absl::string_view view(bytes.data(), bytes.size());
  if (encoding == Encoding::kText &&
      FindInvalidUtf8(view) != absl::string_view::npos) {
    encoding = Encoding::kBase64;
  }
  switch (encoding) {
    case Encoding::kText:
      object[name] = std::string(bytes);
      break;
    case Encoding::kHex:
      object[name + "_hex"] = Encode(bytes, encoding);
      break;
    case Encoding::kBase64:
      object[name + "_base64"] = Encode(bytes, encoding);
      break;
  }
}

void SetParts(Json& object, const GatheredParts& parts,
              const Encodings& encodings) {
  Json list = Json::array();
  for (const GatheredPart& part : parts.parts) {
    Json& each = list.emplace_back(Json::object());
    SetBytes(each, "name", part.name, Encoding::kText);
    SetBytes(each, "value", part.value, encodings.value);
  }
  object["parts"] = std::move(list);
  if (parts.expected_names.empty()) {
    object["expected_parts"] = parts.expected_parts;
    return;
  }
  Json names = Json::array();
  for (const std::string& name : parts.expected_names) {
    SetBytes(names.emplace_back(Json::object()), "name", name, Encoding::kText);
  }
  object["expected_names"] = std::move(names);
}

std::string PartsText(const GatheredParts& parts, Encoding encoding,
                      std::string_view separator) {
  std::string text;
  for (const GatheredPart& part : parts.parts) {
    if (!text.empty()) text.append(separator);
    absl::StrAppend(&text, Encode(part.name, Encoding::kText), "=",
                    Encode(part.value, encoding));
  }
  return text;
}

Json ToJson(const Entry& entry, const Encodings& encodings, bool keys_only) {
  Json object;
  SetBytes(object, "key", entry.key, encodings.key);
  if (entry.parts) {
    SetParts(object, *entry.parts, encodings);
  } else if (!keys_only) {
    SetBytes(object, "value", entry.value, encodings.value);
  }
  object["version"] = entry.version;
  object["put_time"] = ExactTimeText(entry.put_time);
  object["deadline"] = ExactTimeText(entry.deadline);
  object["create_time"] = ExactTimeText(entry.create_time);
  if (entry.own_ttl) object["own_ttl"] = DurationText(*entry.own_ttl);
  return object;
}

Json ToJson(const ExpiredEvent& event, const Encodings& encodings,
            bool keys_only) {
  const bool alive = event.cause == ExpiryCause::kExpiring;
  Json object = {{"type", alive ? "expiring" : "expired"},
                 {"namespace", event.ns},
                 {"cause", CauseName(event.cause)}};
  SetBytes(object, "key", event.key, encodings.key);
  if (event.omitted_value_bytes > 0) {
    object["omitted_value_bytes"] = event.omitted_value_bytes;
  } else if (event.parts) {
    SetParts(object, *event.parts, encodings);
  } else if (!keys_only) {
    SetBytes(object, "value", event.value, encodings.value);
  }
  object["version"] = event.version;
  object["put_time"] = ExactTimeText(event.put_time);
  object["deadline"] = ExactTimeText(event.deadline);
  object["death_time"] = ExactTimeText(event.death_time);
  object["delivered_at"] = ExactTimeText(event.delivered_at);
  object["create_time"] = ExactTimeText(event.create_time);
  if (event.own_ttl) object["own_ttl"] = DurationText(*event.own_ttl);
  const absl::Duration late = event.delivered_at - event.death_time;
  if (alive) {
    object["left_ms"] = Milliseconds(-late);
  } else {
    object["late_ms"] = Milliseconds(late);
  }
  if (event.attempt > 0) {
    object["event_id"] = event.event_id;
    object["attempt"] = event.attempt;
    object["returns"] = event.returns;
  }
  return object;
}

Json ToJson(const Namespace& ns) {
  const NamespaceOptions& options = ns.options;
  Json object = {
      {"name", ns.name},
      {"options",
       {{"ttl_ms", Milliseconds(Required(options.ttl))},
        {"num_buckets", Required(options.num_buckets)},
        {"max_ttl_ms", Milliseconds(Required(options.max_ttl))},
        {"sliding", Required(options.sliding)},
        {"max_entries", Required(options.max_entries)},
        {"max_bytes", Required(options.max_bytes)},
        {"limit_policy", PolicyName(Required(options.limit_policy))},
        {"max_value_bytes", Required(options.max_value_bytes)},
        {"event_retention_ms", Milliseconds(Required(options.event_retention))},
        {"event_retention_bytes", Required(options.event_retention_bytes)},
        {"num_shards", Required(options.num_shards)},
        {"dead_letter_namespace", Required(options.dead_letter_namespace)},
        {"max_operations_per_second",
         Required(options.max_operations_per_second)},
        {"max_backlog_bytes", Required(options.max_backlog_bytes)},
        {"unused_group_ttl_ms",
         Milliseconds(Required(options.unused_group_ttl))},
        {"durability", DurabilityName(Required(options.durability))},
        {"restart_policy",
         RestartPolicyName(Required(options.restart_policy))}}},
      {"bucket_width_ms", Milliseconds(ns.bucket_width)}};
  if (ns.statistics) {
    object["statistics"] = StatisticsToJson(*ns.statistics);
  }
  if (!ns.warnings.empty()) object["warnings"] = ns.warnings;
  return object;
}

std::string Describe(const Namespace& ns) {
  const auto limit = [](uint64_t number, const std::string& shown) {
    return number == 0 ? "none" : shown;
  };
  const NamespaceOptions& o = ns.options;
  Fields fields = {
      {"name", ns.name},
      {"ttl", absl::StrCat(DurationText(Required(o.ttl)), ", at most ",
                           DurationText(ns.bucket_width), " longer")},
      {"buckets", absl::StrCat(Required(o.num_buckets))},
      {"max ttl", DurationText(Required(o.max_ttl))},
      {"sliding", Required(o.sliding) ? "yes" : "no"},
      {"max entries",
       limit(Required(o.max_entries), absl::StrCat(Required(o.max_entries)))},
      {"max bytes",
       limit(Required(o.max_bytes), SizeText(Required(o.max_bytes)))},
      {"max operations",
       limit(Required(o.max_operations_per_second),
             absl::StrCat(Required(o.max_operations_per_second), " a second"))},
      {"limit policy", std::string(PolicyName(Required(o.limit_policy)))},
      {"max value", SizeText(Required(o.max_value_bytes))},
      {"event retention",
       absl::StrCat(DurationText(Required(o.event_retention)), ", ",
                    SizeText(Required(o.event_retention_bytes)))},
      {"shards", absl::StrCat(Required(o.num_shards))},
      {"durability", std::string(DurabilityName(Required(o.durability)))},
      {"restart policy",
       std::string(RestartPolicyName(Required(o.restart_policy)))},
      {"dead letters", Required(o.dead_letter_namespace).empty()
                           ? "none"
                           : Required(o.dead_letter_namespace)},
      {"max backlog", Required(o.max_backlog_bytes) == 0
                          ? "default"
                          : SizeText(Required(o.max_backlog_bytes))},
      {"unused groups",
       Required(o.unused_group_ttl) < absl::Seconds(1)
           ? "stay"
           : "go after " + DurationText(Required(o.unused_group_ttl))},
  };
  if (ns.statistics) Append(StatisticsFields(*ns.statistics), &fields);
  return Columns(fields);
}

Json ToJson(const Group& group) {
  const GroupOptions& options = group.options;
  Json object = {
      {"name", group.name},
      {"namespace", group.ns},
      {"options",
       {{"ack_timeout_ms",
         Milliseconds(options.ack_timeout.value_or(absl::ZeroDuration()))},
        {"max_attempts", options.max_attempts.value_or(0)},
        {"max_backlog_bytes", options.max_backlog_bytes.value_or(0)},
        {"unused_ttl_ms",
         Milliseconds(options.unused_ttl.value_or(absl::ZeroDuration()))}}},
      {"created_by", group.created_by}};
  if (group.statistics) {
    object["statistics"] = StatisticsToJson(*group.statistics);
  }
  return object;
}

std::string Describe(const Group& group) {
  const GroupOptions& o = group.options;
  Fields fields = {
      {"name", group.name},
      {"namespace", group.ns},
      {"created by", group.created_by},
      {"ack timeout",
       DurationText(o.ack_timeout.value_or(absl::ZeroDuration()))},
      {"max attempts", absl::StrCat(o.max_attempts.value_or(0))},
      {"max backlog", SizeText(o.max_backlog_bytes.value_or(0))},
      {"unused ttl",
       o.unused_ttl.value_or(absl::ZeroDuration()) == absl::ZeroDuration()
           ? "none"
           : DurationText(*o.unused_ttl)},
  };
  if (group.statistics) Append(StatisticsFields(*group.statistics), &fields);
  return Columns(fields);
}

std::string_view DurabilityName(Durability durability) {
  switch (durability) {
    case Durability::kMemory:
      return "memory";
    case Durability::kAsync:
      return "async";
    case Durability::kSync:
      return "sync";
  }
  return "unknown";
}

std::string_view CauseName(ExpiryCause cause) {
  switch (cause) {
    case ExpiryCause::kExpired:
      return "expired";
    case ExpiryCause::kEvicted:
      return "evicted";
    case ExpiryCause::kRotated:
      return "rotated";
    case ExpiryCause::kExpiring:
      return "expiring";
    case ExpiryCause::kUnknown:
      break;
  }
  return "unknown";
}

bool Write(std::string_view bytes) {
  return Wrote(std::fwrite(bytes.data(), 1, bytes.size(), stdout) ==
               bytes.size());
}

bool WriteLine(std::string_view line) { return Write(line) && Write("\n"); }

bool WriteJson(const Json& object) {
  // Text from elsewhere (a server's message) that is not UTF-8 is shown all the
  // same.
  return WriteLine(object.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool Flush() { return Wrote(std::fflush(stdout) == 0); }

int WriteError() { return write_error; }

}  // namespace timecache::cli
