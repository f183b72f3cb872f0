// The calls of operators, with the C++ client.

#ifndef TIMECACHED_TESTS_CONFORMANCE_OPERATORS_H_
#define TIMECACHED_TESTS_CONFORMANCE_OPERATORS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tests/conformance/arguments.h"
#include "tests/conformance/json_values.h"
#include "timecache/client.h"

namespace timecache::conformance {

bool IsOperatorCall(const std::string& name);
// As DoCall, of such a one.
absl::StatusOr<Json> DoOperatorCall(const std::string& name,
                                    const Client& client, Args& args);

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_OPERATORS_H_
