// How errors of the server reach the user of the client.
#include "client/cpp/status.h"

#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/client/fake_script.h"

namespace timecache {
namespace {

TEST(StatusTest, HasTheReasonThatTheServerGave) {
  const absl::Status status = FromGrpcStatus(
      MakeError(grpc::StatusCode::FAILED_PRECONDITION, "no", "KEY_EXISTS"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_TRUE(HasReason(status, v1::KEY_EXISTS));
  EXPECT_FALSE(HasReason(status, v1::KEY_NOT_FOUND));
  EXPECT_FALSE(HasReason(status, v1::ERROR_REASON_UNSPECIFIED));
  EXPECT_EQ(ErrorReason(status), "KEY_EXISTS");
}

TEST(StatusTest, AnOperationsOwnErrorHasItsReasonToo) {
  google::rpc::Status error;
  ASSERT_TRUE(error.ParseFromString(
      MakeError(grpc::StatusCode::NOT_FOUND, "no", "EVENT_NOT_UNSETTLED")
          .error_details()));
  EXPECT_TRUE(HasReason(FromRpcStatus(error), v1::EVENT_NOT_UNSETTLED));
}

TEST(StatusTest, ReasonOfALaterServerIsTold) {
  const absl::Status status = FromGrpcStatus(MakeError(
      grpc::StatusCode::RESOURCE_EXHAUSTED, "no", "MAX_OF_SOMETHING_NEW"));
  EXPECT_EQ(ErrorReason(status), "MAX_OF_SOMETHING_NEW");
  for (int reason = v1::ErrorReason_MIN; reason <= v1::ErrorReason_MAX;
       ++reason) {
    if (!v1::ErrorReason_IsValid(reason)) continue;
    EXPECT_FALSE(HasReason(status, static_cast<v1::ErrorReason>(reason)));
  }
}

TEST(StatusTest, WhatIsNotTheServersHasNoReason) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::UnavailableError("no connection"),
        FromGrpcStatus(grpc::Status(grpc::StatusCode::INTERNAL, "KEY_EXISTS",
                                    "\xff\xff"))}) {
    EXPECT_EQ(ErrorReason(status), std::nullopt);
    EXPECT_FALSE(HasReason(status, v1::KEY_EXISTS));
    EXPECT_FALSE(HasReason(status, v1::ERROR_REASON_UNSPECIFIED));
  }
}

}  // namespace
}  // namespace timecache
