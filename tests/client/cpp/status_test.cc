// How errors of the server reach the user of the client.
#include "timecache/status.h"

#include "client/cpp/src/rpc/rpc_status.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/client/fake_script.h"
#include "timecache/v1/errors.pb.h"

namespace timecache {
namespace {

// -Wswitch has this say every constant, and only constants.
bool IsNamed(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kInvalidField:
    case ErrorReason::kMalformedRequest:
    case ErrorReason::kRequestTooLarge:
    case ErrorReason::kNamespaceNotFound:
    case ErrorReason::kDraining:
    case ErrorReason::kUnknownMethod:
    case ErrorReason::kNoCredentials:
    case ErrorReason::kUnknownCertificate:
    case ErrorReason::kUnknownToken:
    case ErrorReason::kMalformedCredentials:
    case ErrorReason::kAccessDenied:
    case ErrorReason::kMaxOperationRate:
    case ErrorReason::kUnreadResponses:
    case ErrorReason::kInternalError:
    case ErrorReason::kNotOwner:
    case ErrorReason::kOwnershipLost:
    case ErrorReason::kKeyExists:
    case ErrorReason::kKeyNotFound:
    case ErrorReason::kVersionMismatch:
    case ErrorReason::kMaxEntries:
    case ErrorReason::kMaxBytes:
    case ErrorReason::kServerMaxEntries:
    case ErrorReason::kServerMaxBytes:
    case ErrorReason::kMaxMemory:
    case ErrorReason::kShardFull:
    case ErrorReason::kMaxResponseBytes:
    case ErrorReason::kMaxCallDuration:
    case ErrorReason::kNoJournal:
    case ErrorReason::kMaxBackups:
    case ErrorReason::kNoCluster:
    case ErrorReason::kNoSuccessor:
    case ErrorReason::kConnectionNotFound:
    case ErrorReason::kMaxTails:
    case ErrorReason::kDiskFull:
    case ErrorReason::kJournalBacklog:
    case ErrorReason::kResumePointTrimmed:
    case ErrorReason::kResumePointAhead:
    case ErrorReason::kLogChanged:
    case ErrorReason::kMaxWatchers:
    case ErrorReason::kMaxExpiringWatchers:
    case ErrorReason::kEventNotUnsettled:
    case ErrorReason::kStaleAttempt:
    case ErrorReason::kGroupNotFound:
    case ErrorReason::kSingleActive:
    case ErrorReason::kNoChanges:
    case ErrorReason::kNamespaceExists:
    case ErrorReason::kValueTooLarge:
    case ErrorReason::kValueKindMismatch:
    case ErrorReason::kNotANumber:
    case ErrorReason::kNumberOverflow:
    case ErrorReason::kGatherMismatch:
    case ErrorReason::kPartExists:
    case ErrorReason::kGatherComplete:
    case ErrorReason::kMaxNamespaces:
    case ErrorReason::kGroupExists:
    case ErrorReason::kMaxGroups:
    case ErrorReason::kUnknownService:
    case ErrorReason::kMaxHealthWatches:
    case ErrorReason::kNotApplied:
      return true;
  }
  return false;
}

TEST(StatusTest, HasTheReasonThatTheServerGave) {
  const absl::Status status = FromGrpcStatus(
      MakeError(grpc::StatusCode::FAILED_PRECONDITION, "no", v1::KEY_EXISTS));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_TRUE(HasReason(status, ErrorReason::kKeyExists));
  EXPECT_FALSE(HasReason(status, ErrorReason::kKeyNotFound));
  EXPECT_FALSE(HasReason(status, ErrorReason{}));
  EXPECT_EQ(ReasonName(status), Name(v1::KEY_EXISTS));
}

TEST(StatusTest, AnOperationsOwnErrorHasItsReasonToo) {
  google::rpc::Status error;
  ASSERT_TRUE(error.ParseFromString(
      MakeError(grpc::StatusCode::NOT_FOUND, "no", v1::EVENT_NOT_UNSETTLED)
          .error_details()));
  EXPECT_TRUE(HasReason(FromRpcStatus(error), ErrorReason::kEventNotUnsettled));
}

TEST(StatusTest, ReasonOfALaterServerIsTold) {
  const absl::Status status = FromGrpcStatus(MakeLaterError(
      grpc::StatusCode::RESOURCE_EXHAUSTED, "no", "MAX_OF_SOMETHING_NEW"));
  EXPECT_EQ(ReasonName(status), "MAX_OF_SOMETHING_NEW");
  for (int reason = v1::ErrorReason_MIN; reason <= v1::ErrorReason_MAX;
       ++reason) {
    if (!v1::ErrorReason_IsValid(reason)) continue;
    EXPECT_FALSE(HasReason(status, static_cast<ErrorReason>(reason)));
  }
}

// "KEY_NOT_FOUND" of kKeyNotFound is KEY_NOT_FOUND: for each that the proto
// has, the client's own enum has a constant of the same number.
TEST(StatusTest, EachReasonOfTheProtoIsOneOfTheClients) {
  const auto* reasons = v1::ErrorReason_descriptor();
  for (int i = 0; i < reasons->value_count(); ++i) {
    const auto* reason = reasons->value(i);
    if (reason->number() == v1::ERROR_REASON_UNSPECIFIED) continue;
    const absl::Status status = FromGrpcStatus(
        MakeError(grpc::StatusCode::UNKNOWN, "no",
                  static_cast<v1::ErrorReason>(reason->number())));
    EXPECT_TRUE(HasReason(status, static_cast<ErrorReason>(reason->number())));
    EXPECT_TRUE(IsNamed(static_cast<ErrorReason>(reason->number())))
        << reason->name() << " is not in timecache/error_reason.h";
  }
}

TEST(StatusTest, WhatIsNotTheServersHasNoReason) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::UnavailableError("no connection"),
        FromGrpcStatus(grpc::Status(grpc::StatusCode::INTERNAL, "KEY_EXISTS",
                                    "\xff\xff"))}) {
    EXPECT_EQ(ReasonName(status), std::nullopt);
    EXPECT_FALSE(HasReason(status, ErrorReason::kKeyExists));
    EXPECT_FALSE(HasReason(status, ErrorReason{}));
  }
}

}  // namespace
}  // namespace timecache
