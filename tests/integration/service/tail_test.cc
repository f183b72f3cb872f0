// TailCalls: a sample of the operations on a namespace.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/security/access_fixture.h"
#include "tests/support/await.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Data = v1::TimeCacheService::Stub;
using Names = v1::NamespaceService::Stub;

// A stream that stands: its first message has been read.
class Tail {
 public:
  explicit Tail(TestServer* server, const std::string& request = "",
                const std::string& principal = "") {
    if (principal.empty()) {
      SetDeadline(&context_);
    } else {
      SignAs(principal, &context_);
    }
    stream_ = server->about()->TailCalls(
        &context_,
        Proto<v1::TailCallsRequest>("namespace: 'default' " + request));
    if (stream_->Read(&message_)) {
      EXPECT_EQ(message_.calls_size(), 0);
    }
  }

  // The next operations, so many.
  std::vector<v1::TailedCall> Next(size_t count) {
    std::vector<v1::TailedCall> calls;
    while (calls.size() < count && stream_->Read(&message_)) {
      calls.insert(calls.end(), message_.calls().begin(),
                   message_.calls().end());
      skipped_ += message_.skipped();
    }
    EXPECT_EQ(calls.size(), count);
    return calls;
  }
  uint64_t skipped() const { return skipped_; }
  // How it ends.
  grpc::Status End() {
    while (stream_->Read(&message_)) skipped_ += message_.skipped();
    return stream_->Finish();
  }
  grpc::Status Cancel() {
    context_.TryCancel();
    return End();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::TailCallsResponse>> stream_;
  v1::TailCallsResponse message_;
  uint64_t skipped_ = 0;
};

// "put a ok", "get b miss", "put c FAILED_PRECONDITION".
std::vector<std::string> Texts(const std::vector<v1::TailedCall>& calls) {
  std::vector<std::string> texts;
  for (const v1::TailedCall& each : calls) {
    texts.push_back(absl::StrCat(each.operation(), " ", each.key(), " ",
                                 each.code() != "OK" ? each.code()
                                 : each.hit()        ? "ok"
                                                     : "miss"));
  }
  return texts;
}

TEST(TailTest, ShowsCallsAndOperationsOfBatchesAndPipelines) {
  TestServer server;
  server.Create("other");
  Tail tail(&server);
  server.Put("a", "12345");
  server.Put("a", "1", 0, "other");
  server.Get("b");
  const auto calls = tail.Next(2);
  EXPECT_THAT(Texts(calls), ElementsAre("put a ok", "get b miss"));
  EXPECT_EQ(calls[0].value_bytes(), 5u);
  EXPECT_EQ(calls[0].principal(), "anonymous");
  EXPECT_THAT(calls[0].peer(), HasSubstr("127.0.0.1:"));
  EXPECT_TRUE(calls[0].has_time());
  const auto batch = Proto<v1::ExecuteRequest>(
      "namespace: 'default' operations { get { key: 'a' } } "
      "operations { put { key: 'a' condition: PUT_CONDITION_IF_ABSENT } } "
      "operations { remove { key: 'c' } } operations { }");
  Must(Call(server.data(), &Data::Execute, batch));
  const auto of_batch = tail.Next(3);
  EXPECT_THAT(
      Texts(of_batch),
      ElementsAre("get a ok", "put a FAILED_PRECONDITION", "remove c miss"));
  EXPECT_EQ(of_batch[1].reason(), "KEY_EXISTS");
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto pipeline = server.data()->Pipeline(&context);
  ASSERT_TRUE(pipeline->Write(batch));
  EXPECT_THAT(tail.Next(3), ::testing::SizeIs(3));
  pipeline->WritesDone();
  v1::ExecuteResponse response;
  while (pipeline->Read(&response)) {
  }
  EXPECT_TRUE(pipeline->Finish().ok());
  EXPECT_EQ(tail.Cancel().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(TailTest, ShowsOnlyKeysWithThePrefix) {
  TestServer server;
  Tail tail(&server, "key_prefix: 'user:'");
  server.Put("a", "1");
  server.Put("user:1", "1");
  EXPECT_THAT(Texts(tail.Next(1)), ElementsAre("put user:1 ok"));
  EXPECT_EQ(tail.skipped(), 0u);
}

TEST(TailTest, LeavesOutWhatTheRateDoesNotLetThrough) {
  TestServer server;
  Tail tail(&server, "max_per_second: 4");
  std::string batch = "namespace: 'default' ";
  for (int i = 0; i < 1'000; ++i) {
    absl::StrAppend(&batch, "operations { put { key: 'k", i, "' } } ");
  }
  Must(Call(server.data(), &Data::Execute, Proto<v1::ExecuteRequest>(batch)));
  EXPECT_THAT(Texts(tail.Next(4)),
              ElementsAre("put k0 ok", "put k1 ok", "put k2 ok", "put k3 ok"));
  EXPECT_EQ(tail.skipped(), 996u);
}

TEST(TailTest, WhatIsLeftOutIsReportedWithoutAnOperation) {
  TestServer server;
  Tail tail(&server, "max_per_second: 1");
  server.Put("a", "1");
  tail.Next(1);
  Must(Call(server.data(), &Data::Execute,
            Proto<v1::ExecuteRequest>(
                "namespace: 'default' operations { get { key: 'a' } } "
                "operations { get { key: 'a' } }")));
  server.AdvanceBy(2 * server::kMicrosPerSecond);
  EXPECT_TRUE(server.server().Drain(30 * server::kMicrosPerSecond).in_time);
  EXPECT_TRUE(tail.End().ok());
  EXPECT_GE(tail.skipped(), 1u);
}

TEST(TailTest, RefusesRequestsThatAreOutOfRange) {
  TestServer server;
  const auto status = [&](const std::string& request) {
    grpc::ClientContext context;
    SetDeadline(&context);
    return server.about()
        ->TailCalls(&context, Proto<v1::TailCallsRequest>(request))
        ->Finish();
  };
  ExpectInvalid(status("namespace: 'default' max_per_second: 1001"),
                "max_per_second", "1000");
  ExpectInvalid(status(absl::StrCat("namespace: 'default' key_prefix: '",
                                    std::string(4097, 'k'), "'")),
                "key_prefix", "4096");
  ExpectError(status("namespace: 'absent'"), grpc::StatusCode::NOT_FOUND,
              v1::NAMESPACE_NOT_FOUND);
}

TEST(TailTest, FourAreTheMost) {
  TestServer server;
  std::vector<std::unique_ptr<Tail>> tails;
  for (int i = 0; i < 4; ++i) tails.push_back(std::make_unique<Tail>(&server));
  ExpectError(Tail(&server).End(), grpc::StatusCode::RESOURCE_EXHAUSTED,
              v1::MAX_TAILS);
  tails.front()->Cancel();
  // The server hears of it a little later.
  Await([&] {
    Tail next(&server);
    return next.Cancel().error_code() == grpc::StatusCode::CANCELLED;
  });
}

TEST(TailTest, EndsWithItsNamespaceAlsoIfThatIsMadeAnew) {
  TestServer server;
  Tail tail(&server);
  Must(Call(server.namespaces(), &Names::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'default'")));
  server.Create("default");
  ExpectError(tail.End(), grpc::StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND);
}

TEST(TailTest, EndsWithTheServer) {
  TestServer server;
  Tail tail(&server);
  server.Put("a", "1");
  EXPECT_TRUE(server.server().Drain(30 * server::kMicrosPerSecond).in_time);
  EXPECT_TRUE(tail.End().ok());
}

using TailAccessTest = AccessTest;

TEST_F(TailAccessTest, NeedsAdminAndEndsWithoutIt) {
  ExpectDenied(Tail(server_.get(), "", "reader").End(), "admin");
  SetRules("", Rule("worker", "admin"));
  Tail tail(server_.get(), "", "worker");
  Must(As("admin", &Data::Put, "namespace: 'default' key: 'a'"));
  const auto calls = tail.Next(1);
  EXPECT_EQ(calls[0].principal(), "admin");
  SetRules();
  ExpectDenied(tail.End(), "admin");
}

}  // namespace
}  // namespace timecache::test
