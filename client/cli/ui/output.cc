#include "client/cli/ui/output.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
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
              const std::optional<std::vector<absl::Duration>>& durations) {
  Json& list = object[name + "_ms"] = Json::array();
  if (!durations) return;
  for (const absl::Duration duration : *durations) {
    list.push_back(Milliseconds(duration));
  }
}
void SetField(Json& object, const std::string& name,
              const std::optional<absl::Time>& time) {
  object[name] = time ? Json(ExactTimeText(*time)) : Json();
}
template <typename Value>
void SetField(Json& object, const std::string& name,
              const std::optional<Value>& value) {
  SetField(object, name, value.value_or(Value{}));
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

// A value of an object that ToJson has made, by the unit in its name.
std::string FieldText(const std::string& name, const Json& value) {
  if (value.is_null() || value == "") return "none";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return value.get<std::string>();
  if (absl::EndsWith(name, "_ms")) {
    return DurationText(absl::Milliseconds(value.get<double>()));
  }
  return absl::EndsWith(name, "bytes") ? SizeText(value.get<uint64_t>())
                                       : value.dump();
}

void AppendFields(const Json& object, Fields* fields) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      AppendFields(value, fields);
    } else if (!value.is_array()) {
      fields->emplace_back(
          absl::StrReplaceAll(absl::StripSuffix(name, "_ms"), {{"_", " "}}),
          FieldText(name, value));
    }
  }
}

constexpr size_t kGap = 2;  // Between columns.
// Shorter than this no name is cut.
constexpr size_t kMinNameColumns = 12;

// Leaves out columns at the right, so that none is cut in two; before that,
// cuts names, as long as the first `kept` columns need it.
void FitColumns(std::vector<Row>& table, std::vector<size_t>& widths,
                size_t columns, size_t kept) {
  size_t numbers = 0;
  for (size_t i = 1; i < std::min(kept, widths.size()); ++i) {
    numbers += kGap + widths[i];
  }
  const size_t for_name =
      std::max(columns - std::min(columns, numbers), kMinNameColumns);
  if (widths[0] > for_name) {
    widths[0] = for_name;
    for (Row& row : table) {
      if (row[0].size() <= for_name) continue;
      row[0].resize(for_name - 1);
      row[0] += '~';
    }
  }
  size_t sum = widths[0];
  size_t fits = 1;
  while (fits < widths.size() && sum + kGap + widths[fits] <= columns) {
    sum += kGap + widths[fits++];
  }
  widths.resize(fits);
  for (Row& row : table) row.resize(fits);
}

}  // namespace

std::string Columns(const Fields& fields) {
  size_t width = 17;
  for (const auto& [name, value] : fields) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : fields) {
    absl::StrAppendFormat(&text, "%-*s %s\n", width, name, value);
  }
  text.pop_back();
  return text;
}

std::string Describe(const Json& object) {
  Fields fields;
  AppendFields(object, &fields);
  return Columns(fields);
}

std::string Table(std::vector<Row> table, int rows, size_t columns,
                  size_t kept) {
  const auto fits = static_cast<size_t>(std::max(rows, 2));
  const size_t left_out = table.size() > fits ? table.size() - fits + 1 : 0;
  table.resize(table.size() - left_out);
  std::vector<size_t> widths(table[0].size());
  for (const Row& row : table) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  FitColumns(table, widths, columns, kept);
  std::vector<std::string> lines;
  for (const Row& row : table) {
    std::string line = absl::StrFormat("%-*s", widths[0], row[0]);
    for (size_t i = 1; i < row.size(); ++i) {
      absl::StrAppendFormat(&line, "  %*s", widths[i], row[i]);
    }
    lines.push_back(std::move(line));
  }
  if (left_out > 0) lines.push_back(absl::StrCat("and ", left_out, " more"));
  return absl::StrJoin(lines, "\n");
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
  if (!entry.traceparent.empty()) object["traceparent"] = entry.traceparent;
  return object;
}

Json ToJson(const ExpiredEvent& event, const Encodings& encodings,
            bool keys_only) {
  const bool alive = event.cause == ExpiryCause::kExpiring;
  Json object = {{"type", alive ? "expiring" : "expired"},
                 {"namespace", event.ns},
                 {"cause", NameOf(event.cause)}};
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
  if (!event.traceparent.empty()) object["traceparent"] = event.traceparent;
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
    if (!event.last_reason.empty()) object["last_reason"] = event.last_reason;
  }
  return object;
}

Json ToJson(const ChangeEvent& change, const Encodings& encodings,
            bool keys_only) {
  Json object = {{"type", "change"},
                 {"namespace", change.ns},
                 {"kind", NameOf(change.kind)}};
  SetBytes(object, "key", change.key, encodings.key);
  if (change.omitted_value_bytes > 0) {
    object["omitted_value_bytes"] = change.omitted_value_bytes;
  } else if (change.parts) {
    SetParts(object, *change.parts, encodings);
  } else if (!keys_only && change.kind == ChangeKind::kPut) {
    SetBytes(object, "value", change.value, encodings.value);
  }
  object["version"] = change.version;
  if (change.deadline) object["deadline"] = ExactTimeText(*change.deadline);
  object["time"] = ExactTimeText(change.time);
  return object;
}

Json ToJson(const Namespace& ns) {
  Json object = FieldsToJson(ns);
  if (!ns.warnings.empty()) object["warnings"] = ns.warnings;
  return object;
}

Json ToJson(const Group& group) { return FieldsToJson(group); }

Json ToJson(const GroupMember& member) { return FieldsToJson(member); }
Json ToJson(const HotKeys& hot, const Encodings& encodings) {
  Json keys = Json::array();
  for (const HotKey& key : hot.keys) {
    Json object = {{"reads_per_second", key.reads_per_second},
                   {"writes_per_second", key.writes_per_second},
                   {"value_bytes", key.value_bytes}};
    SetBytes(object, "key", key.key, encodings.key);
    keys.push_back(std::move(object));
  }
  return {{"keys", std::move(keys)},
          {"window", DurationText(hot.window)},
          {"sampled", hot.sampled},
          {"operations_per_second", hot.operations_per_second}};
}

Json ToJson(const JournalStatus& journal) { return FieldsToJson(journal); }

Json ToJson(const LimitUse& use) { return FieldsToJson(use); }

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
