// MaybeApplied: whether a call that failed may have had its effect.
#include <atomic>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/async_client.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/pipeline.h"
#include "timecache/status.h"

namespace timecache {
namespace {

grpc::Status Stopping() {
  return MakeError(grpc::StatusCode::UNAVAILABLE, "stopping", v1::DRAINING);
}

// Where no server listens. (No names: the resolver leaks some bytes when it is
// cancelled.)
constexpr const char* kNowhere[] = {"127.0.0.1:1", "unix:/nowhere/socket",
                                    "ipv4:127.0.0.1:1", "[::1]:1"};

TEST(MaybeAppliedTest, NotWithoutAConnection) {
  for (const char* address : kNowhere) {
    const absl::Status status = Client(address).Put("key", "value").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_FALSE(MaybeApplied(status)) << address << ": " << status;
  }
}

TEST(MaybeAppliedTest, NorThroughTheOtherKindsOfClients) {
  const Client client(kNowhere[0]);
  absl::Status async;
  {
    const AsyncClient calls(client);
    calls.Put("key", "value",
              [&async](const absl::StatusOr<PutResult>& result) {
                async = result.status();
              });
  }
  EXPECT_FALSE(MaybeApplied(async)) << async;
  absl::Status piped;
  {
    // It may have ended before the operation is added, or after.
    Pipeline pipeline(client);
    const absl::Status refused = pipeline.Add(
        Operation::Put("key", "value"),
        [&piped](const OperationResult& result) { piped = result.status; });
    pipeline.Close().IgnoreError();
    if (!refused.ok()) piped = refused;
  }
  EXPECT_FALSE(piped.ok());
  EXPECT_FALSE(MaybeApplied(piped)) << piped;
}

TEST(MaybeAppliedTest, NorWhatTheServerOrTheClientItselfRefuses) {
  FakeService service;
  const Client client = service.MakeClient();
  ASSERT_TRUE(client.Put("key", "value").ok());
  const absl::Status exists =
      client.Put("key", "other", {.condition = PutCondition::kIfAbsent})
          .status();
  EXPECT_TRUE(HasReason(exists, ErrorReason::kKeyExists));
  EXPECT_FALSE(MaybeApplied(exists));
  service.FailWith(Stopping());
  EXPECT_FALSE(MaybeApplied(client.Put("key", "other").status()));
  EXPECT_FALSE(MaybeApplied(
      client.Put("key", "v", {}, {.metadata = {{"UPPER", "case"}}}).status()));
}

TEST(MaybeAppliedTest, WhereTheResponseIsMissing) {
  FakeService service;
  const Client client = service.MakeClient();
  for (const auto code :
       {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::INTERNAL,
        grpc::StatusCode::CANCELLED, grpc::StatusCode::RESOURCE_EXHAUSTED}) {
    service.FailWith(grpc::Status(code, "lost"));
    EXPECT_TRUE(MaybeApplied(client.Put("key", "value").status())) << code;
  }
  service.FailWith(
      MakeError(grpc::StatusCode::INTERNAL, "a bug", v1::INTERNAL_ERROR));
  EXPECT_TRUE(MaybeApplied(client.Put("key", "value").status()));
  service.FailWith(
      MakeLaterError(grpc::StatusCode::UNAVAILABLE, "lost", "OWNERSHIP_LOST"));
  EXPECT_TRUE(MaybeApplied(client.Put("key", "value").status()));
  service.FailWith(grpc::Status::OK);
  service.Hang(true);
  const absl::Status late =
      client.Put("key", "value", {}, {.timeout = absl::Milliseconds(20)})
          .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_TRUE(MaybeApplied(late));
  service.Hang(false);
}

// An attempt before the last may have been applied.
TEST(MaybeAppliedTest, AsAnyAttemptMay) {
  FakeService service;
  const Client client =
      service.MakeClient({.retry = {.min_pause = absl::Milliseconds(1)}});
  std::atomic<int> attempts = 0;
  service.OnCall([&](const grpc::ServerContext&) {
    return ++attempts == 1 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost")
                           : Stopping();
  });
  const absl::Status status =
      client.Put("key", "value", {}, {.repeatable = true}).status();
  EXPECT_EQ(attempts, 3);
  EXPECT_TRUE(HasReason(status, ErrorReason::kDraining));
  EXPECT_TRUE(MaybeApplied(status));
  EXPECT_FALSE(MaybeApplied(client.Put("key", "value").status()));
}

// The error of a stream is not an answer to its operations: others before may
// have been applied unanswered.
TEST(MaybeAppliedTest, WhatAPipelineHasSent) {
  FakeService service;
  absl::Status status;
  {
    Pipeline pipeline(service.MakeClient().In("none"));
    ASSERT_TRUE(pipeline
                    .Add(Operation::Put("key", "value"),
                         [&status](const OperationResult& result) {
                           status = result.status;
                         })
                    .ok());
  }
  EXPECT_TRUE(HasReason(status, ErrorReason::kNamespaceNotFound)) << status;
  EXPECT_TRUE(MaybeApplied(status));
}

}  // namespace
}  // namespace timecache
