// Runs scenarios with the C++ client: README.md has their format.

#ifndef TIMECACHED_TESTS_CONFORMANCE_RUNNER_H_
#define TIMECACHED_TESTS_CONFORMANCE_RUNNER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/conformance/matcher.h"
#include "timecache/client.h"
#include "timecache/operation.h"
#include "timecache/virtual_clock.h"

namespace timecache::conformance {

// The arguments of a step, each of which has to be taken. Not thread-safe.
class Args {
 public:
  Args(const Matcher& matcher, Json values);

  bool Has(const std::string& name) const { return values_.contains(name); }
  // Null if it is not there.
  Json Take(const std::string& name);
  std::string TakeString(const std::string& name);
  std::string TakeData(const std::string& name);
  bool TakeBool(const std::string& name);
  std::optional<int64_t> TakeInteger(const std::string& name);
  std::optional<absl::Duration> TakeDuration(const std::string& name);
  // Ends with a Mismatch if one is left that nobody knows.
  void End() const;

 private:
  const Matcher& matcher_;
  Json values_;
};

// A server on its virtual clock must be at the client's address. Not
// thread-safe.
class Runner {
 public:
  explicit Runner(const std::string& address);
  ~Runner();

  // Ends with a Mismatch.
  void Run(const Json& scenario);

 private:
  class Watch;
  class Worker;

  void Step(const Json& step);
  void Call(const Json& step);
  void BeginWatch(const std::string& kind, const Json& step);
  void Events(const Json& step);
  void BeginWorker(const Json& step);
  void Handled(const Json& step);
  void Close(const std::string& name);

  absl::StatusOr<Json> DoCall(const std::string& name, const Json& step);
  absl::StatusOr<Json> DoData(const std::string& name, const Client& client,
                              Args& args);
  absl::StatusOr<Json> DoOperations(const std::string& name,
                                    const Client& client, Args& args);
  absl::StatusOr<Json> DoAdmin(const std::string& name, const Client& client,
                               Args& args);
  absl::StatusOr<Json> DoSettle(const Client& client, Args& args);
  void MatchError(const absl::Status& error, const Json& step) const;

  const Client client_;
  const VirtualClock clock_;
  absl::Time now_;
  std::optional<Matcher> matcher_;
  std::map<std::string, std::unique_ptr<Watch>> watches_;
  std::map<std::string, std::unique_ptr<Worker>> workers_;
};

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_RUNNER_H_
