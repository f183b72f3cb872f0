// Whether an answer is what a scenario expects of it.

#ifndef TIMECACHED_TESTS_CONFORMANCE_MATCHER_H_
#define TIMECACHED_TESTS_CONFORMANCE_MATCHER_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "tests/conformance/json_values.h"

namespace timecache::conformance {

// Knows what a scenario has saved, and when it started. Not thread-safe.
class Matcher {
 public:
  explicit Matcher(absl::Time start) : start_(start) {}

  // The argument itself, or what was saved under the name that it says.
  const Json& Resolve(const Json& argument) const;
  // Saves the parts of an answer that a step's "save" names.
  void Save(const Json& answer, const Json& step);

  // That of the scenario.
  absl::Time start() const { return start_; }

  // Ends with a Mismatch that says where they differ.
  void Match(const Json& got, const Json& expected,
             const std::string& where) const;

 private:
  void MatchObject(const Json& got, const Json& expected,
                   const std::string& where) const;
  void MatchUnordered(const Json& got, const Json& expected,
                      const std::string& where) const;

  const absl::Time start_;
  std::map<std::string, Json> saved_;
};

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_MATCHER_H_
