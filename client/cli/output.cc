#include "client/cli/output.h"

#include <cmath>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/units.h"
#include "client/cpp/convert.h"

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

Json Milliseconds(const google::protobuf::Duration& duration) {
  return Milliseconds(FromProto(duration));
}

std::string_view PolicyName(v1::LimitPolicy policy) {
  return policy == v1::LIMIT_POLICY_EVICT_OLDEST ? "evict-oldest" : "reject";
}

Json StatisticsToJson(const v1::NamespaceStatistics& statistics) {
  return {{"entries", statistics.entries()},
          {"bytes", statistics.bytes()},
          {"memory_bytes", statistics.memory_bytes()},
          {"live_buckets", statistics.live_buckets()},
          {"expired", statistics.expired()},
          {"evicted", statistics.evicted()},
          {"rotated", statistics.rotated()},
          {"events_retained", statistics.events_retained()},
          {"events_retained_bytes", statistics.events_retained_bytes()},
          {"watchers", statistics.watchers()},
          {"watermark", ExactTimeText(FromProto(statistics.watermark()))},
          {"lateness_p50_ms", Milliseconds(statistics.lateness_p50())},
          {"lateness_p99_ms", Milliseconds(statistics.lateness_p99())},
          {"lateness_max_ms", Milliseconds(statistics.lateness_max())},
          {"bound_violations", statistics.bound_violations()}};
}

}  // namespace

void SetBytes(Json& object, const std::string& name, std::string_view bytes,
              Encoding encoding) {
  if (encoding == Encoding::kText && !IsValidUtf8(bytes)) {
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

Json ToJson(const Entry& entry, Encoding encoding, bool keys_only) {
  Json object;
  SetBytes(object, "key", entry.key, encoding);
  if (!keys_only) SetBytes(object, "value", entry.value, encoding);
  object["version"] = entry.version;
  object["put_time"] = ExactTimeText(entry.put_time);
  object["deadline"] = ExactTimeText(entry.deadline);
  return object;
}

Json ToJson(const ExpiredEvent& event, Encoding encoding, bool keys_only) {
  Json object = {{"type", "expired"},
                 {"namespace", event.ns},
                 {"cause", CauseName(event.cause)}};
  SetBytes(object, "key", event.key, encoding);
  if (!keys_only) SetBytes(object, "value", event.value, encoding);
  object["version"] = event.version;
  object["put_time"] = ExactTimeText(event.put_time);
  object["deadline"] = ExactTimeText(event.deadline);
  object["death_time"] = ExactTimeText(event.death_time);
  object["delivered_at"] = ExactTimeText(event.delivered_at);
  object["late_ms"] = Milliseconds(event.delivered_at - event.death_time);
  return object;
}

Json ToJson(const v1::Namespace& ns) {
  const v1::NamespaceOptions& options = ns.options();
  return {{"name", ns.name()},
          {"options",
           {{"ttl_ms", Milliseconds(options.ttl())},
            {"num_buckets", options.num_buckets()},
            {"max_ttl_ms", Milliseconds(options.max_ttl())},
            {"sliding", options.sliding()},
            {"max_entries", options.max_entries()},
            {"max_bytes", options.max_bytes()},
            {"limit_policy", PolicyName(options.limit_policy())},
            {"max_value_bytes", options.max_value_bytes()},
            {"event_retention_ms", Milliseconds(options.event_retention())},
            {"event_retention_bytes", options.event_retention_bytes()},
            {"num_shards", options.num_shards()}}},
          {"bucket_width_ms", Milliseconds(ns.bucket_width())},
          {"statistics", StatisticsToJson(ns.statistics())}};
}

std::string Describe(const v1::Namespace& ns) {
  const auto duration = [](const google::protobuf::Duration& proto) {
    return DurationText(FromProto(proto));
  };
  const auto limit = [](uint64_t number, const std::string& shown) {
    return number == 0 ? "none" : shown;
  };
  const v1::NamespaceOptions& o = ns.options();
  const v1::NamespaceStatistics& s = ns.statistics();
  const std::pair<const char*, std::string> fields[] = {
      {"name", ns.name()},
      {"ttl", absl::StrCat(duration(o.ttl()), ", at most ",
                           duration(ns.bucket_width()), " longer")},
      {"buckets", absl::StrCat(o.num_buckets())},
      {"max ttl", duration(o.max_ttl())},
      {"sliding", o.sliding() ? "yes" : "no"},
      {"max entries", limit(o.max_entries(), absl::StrCat(o.max_entries()))},
      {"max bytes", limit(o.max_bytes(), SizeText(o.max_bytes()))},
      {"limit policy", std::string(PolicyName(o.limit_policy()))},
      {"max value", SizeText(o.max_value_bytes())},
      {"event retention", absl::StrCat(duration(o.event_retention()), ", ",
                                       SizeText(o.event_retention_bytes()))},
      {"shards", absl::StrCat(o.num_shards())},
      {"entries", absl::StrCat(s.entries(), ", ", SizeText(s.bytes()), ", in ",
                               s.live_buckets(), " buckets")},
      {"memory", SizeText(s.memory_bytes())},
      {"died", absl::StrCat(s.expired(), " expired, ", s.evicted(),
                            " evicted, ", s.rotated(), " rotated")},
      {"events retained", absl::StrCat(s.events_retained(), ", ",
                                       SizeText(s.events_retained_bytes()))},
      {"watchers", absl::StrCat(s.watchers())},
      {"watermark", TimeText(FromProto(s.watermark()))},
      {"lateness", absl::StrCat("median ", duration(s.lateness_p50()), ", 99% ",
                                duration(s.lateness_p99()), ", largest ",
                                duration(s.lateness_max()))},
      {"bound violations", absl::StrCat(s.bound_violations())}};
  std::string text;
  for (const auto& [name, value] : fields) {
    absl::StrAppendFormat(&text, "%-17s %s\n", name, value);
  }
  text.pop_back();
  return text;
}

std::string_view CauseName(ExpiryCause cause) {
  switch (cause) {
    case ExpiryCause::kExpired:
      return "expired";
    case ExpiryCause::kEvicted:
      return "evicted";
    case ExpiryCause::kRotated:
      return "rotated";
    case ExpiryCause::kUnknown:
      break;
  }
  return "unknown";
}

bool Write(std::string_view bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
}

bool WriteLine(std::string_view line) { return Write(line) && Write("\n"); }

bool WriteJson(const Json& object) {
  // Text from elsewhere (a server's message) that is not UTF-8 is shown all the
  // same.
  return WriteLine(object.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool Flush() { return std::fflush(stdout) == 0; }

}  // namespace timecache::cli
