// Runs scenarios with the C++ client: README.md has their format.

#ifndef TIMECACHED_TESTS_CONFORMANCE_RUNNER_H_
#define TIMECACHED_TESTS_CONFORMANCE_RUNNER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/conformance/arguments.h"
#include "tests/conformance/matcher.h"
#include "tests/conformance/recipes.h"
#include "tests/conformance/streams.h"
#include "timecache/client.h"
#include "timecache/types.h"
#include "timecache/virtual_clock.h"

namespace timecache::conformance {

// A server on its virtual clock must be at the client's address. Not
// thread-safe.
class Runner {
 public:
  Runner(const std::string& address, const ClientOptions& options);

  // Ends with a Mismatch.
  void Run(const Json& scenario);

 private:
  void Step(const Json& step);
  void Call(const Json& step);
  void BeginWatch(const std::string& kind, const Json& step);
  void Events(const Json& step);
  void BeginWorker(const Json& step);
  void Handled(const Json& step);
  void Close(const std::string& name);
  void Do(const Json& step);

  Args ArgsOf(const Json& step) const;
  void MatchError(const absl::Status& error, const Json& step) const;

  const Client client_;
  const VirtualClock clock_;
  absl::Time now_;
  std::optional<Matcher> matcher_;
  std::optional<Recipes> recipes_;
  std::map<std::string, std::unique_ptr<Watch>> watches_;
  std::map<std::string, std::unique_ptr<Worker>> workers_;
};

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_RUNNER_H_
