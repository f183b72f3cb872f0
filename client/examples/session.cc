#include "client/examples/session.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace timecache::sessionize {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxBytes = std::numeric_limits<uint64_t>::max();

Json SessionJson(const Session& session) {
  return {{"first", TimeText(session.first)},
          {"last", TimeText(session.last)},
          {"requests", session.requests},
          {"bytes", session.bytes}};
}

std::optional<absl::Time> FindTime(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, found->get<std::string>(), &time,
                       &error)) {
    return std::nullopt;
  }
  return time;
}

std::optional<uint64_t> FindCount(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) {
    return std::nullopt;
  }
  return found->get<uint64_t>();
}

}  // namespace

void AddRequest(const LogLine& line, Session& session) {
  const bool is_first = session.requests == 0;
  session.first = is_first ? line.time : std::min(session.first, line.time);
  session.last = is_first ? line.time : std::max(session.last, line.time);
  ++session.requests;
  session.bytes += std::min(line.bytes, kMaxBytes - session.bytes);
}

std::string EncodeSession(const Session& session) {
  return SessionJson(session).dump();
}

absl::StatusOr<Session> DecodeSession(std::string_view value) {
  const Json object = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  const auto first = FindTime(object, "first");
  const auto last = FindTime(object, "last");
  const auto requests = FindCount(object, "requests");
  const auto bytes = FindCount(object, "bytes");
  if (!first || !last || !requests || !bytes) {
    return absl::InvalidArgumentError("this is not a session");
  }
  return Session{*first, *last, *requests, *bytes};
}

std::string ToJson(const EndedSession& ended) {
  Json object = {{"visitor", ended.visitor}};
  object.update(SessionJson(ended.session));
  object["ended_at"] = TimeText(ended.ended_at);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TextHeading() {
  return absl::StrFormat("%-27s  %-20s  %-20s  %8s  %12s  %s", "ENDED", "FIRST",
                         "LAST", "REQUESTS", "BYTES", "VISITOR");
}

std::string ToText(const EndedSession& ended) {
  const Session& session = ended.session;
  return absl::StrFormat("%-27s  %-20s  %-20s  %8d  %12d  %s",
                         TimeText(ended.ended_at), TimeText(session.first),
                         TimeText(session.last), session.requests,
                         session.bytes, ended.visitor);
}

std::string TimeText(absl::Time time) {
  const bool is_whole =
      absl::FromUnixSeconds(absl::ToUnixSeconds(time)) == time;
  return absl::FormatTime(
      is_whole ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%dT%H:%M:%E6SZ", time,
      absl::UTCTimeZone());
}

}  // namespace timecache::sessionize
