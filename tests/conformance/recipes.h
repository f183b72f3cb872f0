// The recipes of a scenario, with the C++ client.

#ifndef TIMECACHED_TESTS_CONFORMANCE_RECIPES_H_
#define TIMECACHED_TESTS_CONFORMANCE_RECIPES_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/conformance/arguments.h"
#include "tests/conformance/json_values.h"
#include "timecache/client.h"
#include "timecache/recipes/acker.h"
#include "timecache/recipes/array.h"
#include "timecache/recipes/event_log.h"
#include "timecache/recipes/join.h"
#include "timecache/recipes/lock.h"
#include "timecache/recipes/table.h"

namespace timecache::conformance {

// Not thread-safe.
class Recipes {
 public:
  // The events of a watch up to now.
  using TakeEvents =
      std::function<std::vector<ExpiredEvent>(const std::string& watch)>;

  Recipes(const Client& client, TakeEvents take_events);

  // Each takes all arguments, and ends with a Mismatch if it knows no such
  // recipe or method. Do returns the answer or the client's error.
  void Make(const std::string& kind, const std::string& name, Args args);
  absl::StatusOr<Json> Do(const std::string& what, Args args);

 private:
  struct Log {
    EventLog log;
    EventLog::Position position;
  };
  using Made =
      std::variant<std::unique_ptr<Lock>, Table, Array, Join, Acker, Log>;

  absl::StatusOr<Json> DoFunction(const std::string& name, Args& args);
  absl::StatusOr<Json> DoOf(std::unique_ptr<Lock>& lock,
                            const std::string& method, Args& args);
  absl::StatusOr<Json> DoOf(Table& table, const std::string& method,
                            Args& args);
  absl::StatusOr<Json> DoOf(Array& array, const std::string& method,
                            Args& args);
  absl::StatusOr<Json> DoOf(Join& join, const std::string& method, Args& args);
  absl::StatusOr<Json> DoOf(Acker& acker, const std::string& method,
                            Args& args);
  absl::StatusOr<Json> DoOf(Log& log, const std::string& method, Args& args);

  const Client client_;
  const TakeEvents take_events_;
  std::map<std::string, Made> made_;
};

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_RECIPES_H_
