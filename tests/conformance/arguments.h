// What a step gives to the client: its JSON as the client's own types.

#ifndef TIMECACHED_TESTS_CONFORMANCE_ARGUMENTS_H_
#define TIMECACHED_TESTS_CONFORMANCE_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/conformance/json_values.h"
#include "tests/conformance/matcher.h"
#include "timecache/client.h"
#include "timecache/group_worker.h"
#include "timecache/operation.h"
#include "timecache/watcher.h"

namespace timecache::conformance {

// The arguments of a step, each of which has to be taken. Not thread-safe.
class Args {
 public:
  Args(const Matcher& matcher, Json values);

  bool Has(const std::string& name) const { return values_.contains(name); }
  // Those of a part of the step.
  Args Within(Json values) const { return {*matcher_, std::move(values)}; }
  // Null if it is not there.
  Json Take(const std::string& name);
  std::string TakeString(const std::string& name);
  std::string TakeData(const std::string& name);
  bool TakeBool(const std::string& name);
  std::optional<bool> TakeBoolIf(const std::string& name);
  std::optional<int64_t> TakeInteger(const std::string& name);
  std::optional<absl::Duration> TakeDuration(const std::string& name);
  std::optional<absl::Time> TakeTime(const std::string& name);
  // Ends with a Mismatch if one is left that nobody knows.
  void End() const;

 private:
  const Matcher* matcher_;
  Json values_;
};

// --- Each takes its arguments, and ends with a Mismatch if one has no meaning.

PutOptions TakePutOptions(Args& args);
ContainsOptions TakeContainsOptions(Args& args);
RemoveOptions TakeRemoveOptions(Args& args);
TouchOptions TakeTouchOptions(Args& args);
AppendOptions TakeAppendOptions(Args& args);
std::pair<Combination, int64_t> TakeOperand(Args& args);
CombineOptions TakeCombineOptions(Args& args);
GatherOptions TakeGatherOptions(Args& args);
Operation TakeOperation(const std::string& kind, Args& args);

// --- Each takes all that there are.

NamespaceOptions TakeNamespaceOptions(Args args);
GroupOptions TakeGroupOptions(Args args);
GroupPosition TakePosition(Args args);
WatchOptions TakeWatchOptions(Args args);
GroupWorkerOptions TakeWorkerOptions(Args args);
Settlement TakeSettlement(Args args);
// What follows an "ack", a "nack" or a "put_back".
Settle TakeSettle(const std::string& kind, Args args);

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_ARGUMENTS_H_
