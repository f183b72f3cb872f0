// The clock of the stand-in for the server.

#ifndef TIMECACHED_TESTS_CLIENT_CPP_FAKE_CLOCK_H_
#define TIMECACHED_TESTS_CLIENT_CPP_FAKE_CLOCK_H_

#include "client/cpp/src/data/convert.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"

namespace timecache {

inline void AdvanceClock(FakeService& service, absl::Duration by) {
  testing::v1::AdvanceRequest request;
  *request.mutable_by() = ToProto(by);
  testing::v1::AdvanceResponse response;
  EXPECT_TRUE(service.Advance(nullptr, &request, &response).ok());
}

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_CPP_FAKE_CLOCK_H_
