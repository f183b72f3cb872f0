#include "server/api/status.h"

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "timecache/v1/errors.pb.h"

namespace timecache::server {
namespace {

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

google::rpc::ErrorInfo InfoOf(const grpc::Status& status) {
  google::rpc::ErrorInfo info;
  const google::rpc::Status details = DetailsOf(status);
  EXPECT_GE(details.details_size(), 1);
  if (details.details_size() > 0) details.details(0).UnpackTo(&info);
  return info;
}

TEST(Status, OkHasNoDetails) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_details(), "");
}

TEST(Status, EveryCodeKeepsItselfItsMessageAndItsReason) {
  // All but OK, as gRPC and absl number them.
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpcStatus(ErrorWithReason(static_cast<absl::StatusCode>(code),
                                     Reason::kShardFull, "what happened"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(status.error_message(), "what happened");
    const google::rpc::Status details = DetailsOf(status);
    EXPECT_EQ(details.code(), code);
    EXPECT_EQ(details.message(), "what happened");
    EXPECT_EQ(details.details_size(), 1);
    EXPECT_EQ(InfoOf(status).domain(), "timecached");
    EXPECT_EQ(InfoOf(status).reason(), "SHARD_FULL");
  }
}

TEST(Status, MetadataTravelsWithTheReason) {
  const absl::Status status = WithMetadata(
      ErrorWithReason(absl::StatusCode::kOutOfRange,
                      Reason::kResumePointTrimmed, "gone", {{"lost", "7"}}),
      "namespace", "orders");
  const google::rpc::ErrorInfo info = InfoOf(ToGrpcStatus(status));
  EXPECT_EQ(info.metadata_size(), 2);
  EXPECT_EQ(info.metadata().at("lost"), "7");
  EXPECT_EQ(info.metadata().at("namespace"), "orders");
}

TEST(Status, WithoutAReasonItIsABug) {
  for (const absl::Status& status :
       {absl::CancelledError("gone"), absl::InternalError(""),
        absl::UnknownError("what")}) {
    EXPECT_EQ(InfoOf(ToGrpcStatus(status)).reason(),
              v1::ErrorReason_Name(v1::INTERNAL_ERROR));
  }
}

TEST(Status, ABadFieldComesWithItsPath) {
  const absl::Status error = InvalidField("ttl", "must be positive, not -1s");
  const auto violation = [](const grpc::Status& status) {
    const google::rpc::Status details = DetailsOf(status);
    google::rpc::BadRequest bad_request;
    EXPECT_EQ(details.details_size(), 2);
    EXPECT_TRUE(details.details(1).UnpackTo(&bad_request));
    EXPECT_EQ(bad_request.field_violations_size(), 1);
    return bad_request.field_violations(0);
  };
  const grpc::Status plain = ToGrpcStatus(error);
  EXPECT_EQ(plain.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(plain.error_message(), "ttl must be positive, not -1s");
  EXPECT_EQ(InfoOf(plain).reason(), "INVALID_FIELD");
  EXPECT_EQ(violation(plain).field(), "ttl");
  EXPECT_EQ(violation(plain).description(), "ttl must be positive, not -1s");
  const grpc::Status nested = ToGrpcStatus(
      error, [](const std::string& field) { return "options." + field; });
  EXPECT_EQ(violation(nested).field(), "options.ttl");
}

}  // namespace
}  // namespace timecache::server
