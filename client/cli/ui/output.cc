#include "client/cli/ui/output.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/ui/units.h"
#include "client/cpp/src/admin/fields.h"
#include "server/base/utf8.h"

namespace timecache::cli {
namespace {

template <typename Struct>
Json FieldsToJson(const Struct& fields);

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

// Sets a field of the API's messages: a duration as NAME_ms, an enum's value by
// its name. One that is not set has its default, and a time none.
template <typename Value>
void SetField(Json& object, const std::string& name, const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    object[name] = NameOf(value);
  } else if constexpr (std::is_same_v<Value, absl::Duration>) {
    object[name + "_ms"] = Milliseconds(value);
  } else if constexpr (std::is_same_v<Value, absl::Time>) {
    object[name] = ExactTimeText(value);
  } else if constexpr (std::is_arithmetic_v<Value> ||
                       std::is_same_v<Value, std::string>) {
    object[name] = value;
  } else {
    object[name] = FieldsToJson(value);
  }
}
void SetField(Json& object, const std::string& name,
              const std::optional<absl::Time>& time) {
  object[name] = time ? Json(ExactTimeText(*time)) : Json();
}
template <typename Value>
void SetField(Json& object, const std::string& name,
              const std::optional<Value>& value) {
  SetField(object, name, Required(value));
}
template <typename Statistics>
requires requires(Statistics s) { s.backlog_bytes; }
void SetField(Json& object, const std::string& name,
              const std::optional<Statistics>& statistics) {
  if (statistics) object[name] = FieldsToJson(*statistics);
}

template <typename Struct>
Json FieldsToJson(const Struct& fields) {
  Json object = Json::object();
  ForEachField(fields, [&object](const char* name, const auto& field) {
    SetField(object, name, field);
  });
  return object;
}

// Kept, because by the time that it is asked for other calls have set errno.
int write_error = 0;

bool Wrote(bool ok) {
  if (!ok && write_error == 0) write_error = errno;
  return ok;
}

void Append(const Fields& more, Fields* fields) {
  fields->insert(fields->end(), more.begin(), more.end());
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

std::string Columns(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    absl::StrAppendFormat(&text, "%-17s %s\n", name, value);
  }
  text.pop_back();
  return text;
}

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
  Json object = FieldsToJson(ns);
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
      {"limit policy", NameOf(Required(o.limit_policy))},
      {"max value", SizeText(Required(o.max_value_bytes))},
      {"event retention",
       absl::StrCat(DurationText(Required(o.event_retention)), ", ",
                    SizeText(Required(o.event_retention_bytes)))},
      {"shards", absl::StrCat(Required(o.num_shards))},
      {"durability", NameOf(Required(o.durability))},
      {"restart policy", NameOf(Required(o.restart_policy))},
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

Json ToJson(const Group& group) { return FieldsToJson(group); }

Json ToJson(const JournalStatus& journal) { return FieldsToJson(journal); }

Json ToJson(const LimitUse& use) { return FieldsToJson(use); }

std::string Describe(const Group& group) {
  const GroupOptions& o = group.options;
  Fields fields = {
      {"name", group.name},
      {"namespace", group.ns},
      {"created by", group.created_by},
      {"ack timeout", DurationText(Required(o.ack_timeout))},
      {"max attempts", absl::StrCat(Required(o.max_attempts))},
      {"max backlog", SizeText(Required(o.max_backlog_bytes))},
      {"unused ttl", Required(o.unused_ttl) == absl::ZeroDuration()
                         ? "none"
                         : DurationText(*o.unused_ttl)},
  };
  if (group.statistics) Append(StatisticsFields(*group.statistics), &fields);
  return Columns(fields);
}

std::string NameInEnum(const google::protobuf::EnumDescriptor& type,
                       int number) {
  const auto* const value = type.FindValueByNumber(number);
  if (number == 0 || value == nullptr) return "unknown";
  // DURABILITY_UNSPECIFIED is the first of them.
  const size_t prefix =
      type.value(0)->name().size() - sizeof("UNSPECIFIED") + 1;
  return absl::StrReplaceAll(
      absl::AsciiStrToLower(value->name().substr(prefix)), {{"_", "-"}});
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
