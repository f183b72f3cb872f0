// What a refusal of bad input says.

#ifndef TIMECACHED_TESTS_SUPPORT_EXPECT_FIELD_H_
#define TIMECACHED_TESTS_SUPPORT_EXPECT_FIELD_H_

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::test {

// INVALID_ARGUMENT, with the name of the field.
inline void ExpectField(const absl::Status& status, const std::string& field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(server::FieldOf(status), field) << status;
}

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_EXPECT_FIELD_H_
