#include "client/cli/dump/dump_format.h"

#include "client/cli/ui/units.h"

namespace timecache::cli {

Json DumpBegin(const DumpHead& head) {
  return {{"dump",
           {{"version", kDumpVersion},
            {"namespace", head.ns},
            {"time", ExactTimeText(head.time)}}}};
}

Json DumpEntry(const Entry& entry, const Encodings& encodings) {
  Json object;
  SetBytes(object, "key", entry.key, encodings.key);
  if (entry.parts) {
    SetParts(object, *entry.parts, encodings);
  } else {
    SetBytes(object, "value", entry.value, encodings.value);
  }
  object["deadline"] = ExactTimeText(entry.deadline);
  if (entry.own_ttl) object["own_ttl"] = DurationText(*entry.own_ttl);
  if (!entry.traceparent.empty()) object["traceparent"] = entry.traceparent;
  return object;
}

absl::StatusOr<std::optional<DumpMark>> ParseDumpMark(std::string_view line) {
  // So that the entries are parsed only once.
  constexpr std::string_view kBegin = "{\"dump";
  if (line.substr(0, kBegin.size()) != kBegin) return std::nullopt;
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  const Json none;
  const Json& end = object.contains("dump_end") ? object["dump_end"] : none;
  if (end.is_object() && end.contains("entries") &&
      end["entries"].is_number_unsigned()) {
    return DumpMark{.entries = end["entries"]};
  }
  const Json& head = object.contains("dump") ? object["dump"] : none;
  if (!head.is_object() || !head.contains("version") ||
      !head.contains("time") || !head["version"].is_number_unsigned() ||
      !head["time"].is_string()) {
    return absl::InvalidArgumentError("neither an entry nor a dump's head");
  }
  if (head["version"] > kDumpVersion) {
    return absl::InvalidArgumentError(
        "a dump of a later version: take that version's timecachectl");
  }
  const auto time = ParseTime(head["time"].get<std::string>());
  if (!time.ok()) return time.status();
  return DumpMark{
      .head = DumpHead{.ns = head.value("namespace", ""), .time = *time}};
}

Json DumpEnd(uint64_t entries) {
  return {{"dump_end", {{"entries", entries}}}};
}

}  // namespace timecache::cli
