// The calls of a scenario, with the C++ client.

#ifndef TIMECACHED_TESTS_CONFORMANCE_CALLS_H_
#define TIMECACHED_TESTS_CONFORMANCE_CALLS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tests/conformance/arguments.h"
#include "tests/conformance/json_values.h"
#include "timecache/client.h"

namespace timecache::conformance {

// Calls `name` in the namespace of the arguments, "main" if they have none.
// Returns the answer or the client's error. Ends with a Mismatch if there is no
// such call, or it does not know an argument.
absl::StatusOr<Json> DoCall(const std::string& name, const Client& to,
                            Args args);

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_CALLS_H_
