// What the scenarios say, and what the client answers, as JSON: bytes are
// binary, a duration is {"$duration": nanoseconds}, a time {"$time":
// microseconds}, what is not set null.

#ifndef TIMECACHED_TESTS_CONFORMANCE_JSON_VALUES_H_
#define TIMECACHED_TESTS_CONFORMANCE_JSON_VALUES_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "timecache/client.h"
#include "timecache/dead_letter.h"
#include "timecache/operation.h"
#include "timecache/watch_types.h"

namespace timecache::conformance {

using Json = nlohmann::json;

// Ends the step: what came is not what was expected.
class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void Require(bool holds, const std::string& what);

// --- From a scenario. Each ends with a Mismatch where it is none.

// A string, {"hex"} or {"repeat", "times"}; or bytes that were saved.
std::string Data(const Json& value);
// "1.5s".
absl::Duration Seconds(const Json& value);
// A number, or decimal digits.
int64_t Integer(const Json& value);

// --- From the client.

Json ToJson(const std::string& bytes);
Json ToJson(absl::Duration duration);
Json ToJson(absl::Time time);
Json ToJson(const Entry& entry);
Json ToJson(const PutResult& result);
Json ToJson(const RemoveResult& result);
Json ToJson(const AppendResult& result);
Json ToJson(const CombineResult& result);
Json ToJson(const GatherResult& result);
Json ToJson(const SizeResult& result);
Json ToJson(const ExpiredEvent& event);
Json ToJson(const ChangeEvent& change);
Json ToJson(const Namespace& ns);
Json ToJson(const Group& group);
Json ToJson(const GroupMember& member);
Json ToJson(const SeekResult& result);
Json ToJson(const DeadLetter& letter);
Json ToJson(const UnsettledEvent& event);
Json ToJson(const DeathBar& bar);
Json ToJson(const DeathsAhead& deaths);
Json ToJson(const HotKey& key);
Json ToJson(const HotKeys& hot);
Json ToJson(const ServerInfo& server);
// An object with code, reason, field, metadata and retry_delay.
Json ToJson(const absl::Status& error);
// As the answer of the operation's own call, under its name; or "error".
Json ToJson(const std::string& kind, const OperationResult& result);
Json TouchJson(bool touched, uint64_t version);

template <typename T>
Json ToJson(const std::optional<T>& value) {
  return value ? ToJson(*value) : Json();
}

template <typename T>
Json ToJson(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(ToJson(value));
  return list;
}

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_JSON_VALUES_H_
