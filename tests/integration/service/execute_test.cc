// Many operations in one message: Execute and Pipeline, over the wire.
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "server/api/call_observer.h"
#include "server/base/error.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

using Stub = v1::TimeCacheService::Stub;
using grpc::StatusCode;

v1::ExecuteRequest Request(const std::string& operations) {
  return Proto<v1::ExecuteRequest>("namespace: 'default' " + operations);
}

// An error inside of a response, as a status.
grpc::Status StatusOf(const v1::OperationResult& result) {
  return grpc::Status(static_cast<StatusCode>(result.error().code()),
                      result.error().message(),
                      result.error().SerializeAsString());
}

class ExecuteTest : public ::testing::Test {
 protected:
  Reply<v1::ExecuteResponse> Execute(const v1::ExecuteRequest& request) {
    return Call(server_.data(), &Stub::Execute, request);
  }
  v1::ExecuteResponse Execute(const std::string& operations) {
    return Must(Execute(Request(operations)));
  }

  TestServer server_;
};

// Eight values of a megabyte: three have room in an answer, and what is asked
// for again comes then.
TEST_F(ExecuteTest, AnAnswerHasABoundAndWhatDoesNotFitChangesNothing) {
  const std::string value(1 << 20, 'v');
  v1::ExecuteRequest request = Request("");
  for (int i = 0; i < 8; ++i) {
    server_.Put(absl::StrCat(i), value);
    auto* const remove = request.add_operations()->mutable_remove();
    remove->set_key(absl::StrCat(i));
    remove->set_return_previous(true);
  }
  int removed = 0;
  for (const int expected : {3, 3, 2}) {
    const v1::ExecuteResponse response = Must(Execute(request));
    int now = 0;
    for (const auto& result : response.results()) {
      if (result.has_remove()) {
        now += result.remove().removed();
        if (result.remove().removed()) {
          EXPECT_EQ(result.remove().previous().value(), value);
        }
      } else {
        ExpectError(StatusOf(result), StatusCode::RESOURCE_EXHAUSTED,
                    v1::MAX_RESPONSE_BYTES, "next request");
      }
    }
    EXPECT_EQ(now, expected);
    removed += now;
  }
  EXPECT_EQ(removed, 8);
}

// A Pipeline call.
class Pipeline {
 public:
  explicit Pipeline(Stub* stub,
                    const std::map<std::string, std::string>& metadata = {}) {
    SetDeadline(&context_);
    for (const auto& [key, value] : metadata) context_.AddMetadata(key, value);
    stream_ = stub->Pipeline(&context_);
  }

  bool Send(const v1::ExecuteRequest& request) {
    return stream_->Write(request);
  }
  bool Send(const std::string& operations) { return Send(Request(operations)); }
  v1::ExecuteResponse Receive() {
    v1::ExecuteResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }
  void Close() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }
  // Reads to the end; how many answers there were is added to `*answers`.
  grpc::Status Finish(int* answers = nullptr) {
    v1::ExecuteResponse response;
    while (stream_->Read(&response)) {
      if (answers != nullptr) ++*answers;
    }
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>>
      stream_;
};

class PipelineTest : public ExecuteTest {};

TEST_F(PipelineTest, ARequestThatFailsAsAWholeEndsTheStream) {
  Pipeline pipeline(server_.data());
  EXPECT_TRUE(pipeline.Send("operations { put { key: 'a' } }"));
  EXPECT_TRUE(pipeline.Send(""));
  // May find the stream at its end already.
  pipeline.Send("operations { put { key: 'b' } }");
  int answers = 0;
  ExpectInvalid(pipeline.Finish(&answers), "operations", "1 to 4096");
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(server_.Get("a").has_entry());
  EXPECT_FALSE(server_.Get("b").has_entry());
}

// Plain calls, which know nothing of each other.
TEST_F(PipelineTest, WhatFailsAnIndependentRequestFailsItsOperationsAlone) {
  Pipeline pipeline(server_.data());
  EXPECT_TRUE(pipeline.Send(Proto<v1::ExecuteRequest>(
      "namespace: 'nowhere' independent: true "
      "operations { put { key: 'a' } } operations { get { key: 'a' } } "
      "operations {}")));
  const v1::ExecuteResponse nowhere = pipeline.Receive();
  ASSERT_EQ(nowhere.results_size(), 3);
  for (const int i : {0, 1}) {
    ExpectError(StatusOf(nowhere.results(i)), StatusCode::NOT_FOUND,
                v1::NAMESPACE_NOT_FOUND, "nowhere");
  }
  ExpectInvalid(StatusOf(nowhere.results(2)), "request", "one of put");

  EXPECT_TRUE(pipeline.Send(
      "independent: true operations { put { key: 'a' value: 'v' } } "
      "operations { get { key: 'a' } }"));
  const v1::ExecuteResponse here = pipeline.Receive();
  ASSERT_EQ(here.results_size(), 2);
  EXPECT_EQ(here.results(1).get().entry().value(), "v");

  EXPECT_TRUE(pipeline.Send(
      "independent: true atomic: true operations { put { key: 'b' } }"));
  ExpectInvalid(pipeline.Finish(), "independent", "atomic");
  EXPECT_FALSE(server_.Get("b").has_entry());
}

// Each counts as a call of its own RPC; those with ids of their own by
// themselves.
TEST(PlainCallsTest, AreReportedAsCallsOfTheirOwnRpcs) {
  struct Observer final : server::CallObserver {
    void OnStarted(const server::Method&) override {}
    void OnHandled(const server::CallRecord&) override {}
    void OnDenied(const server::CallDenial&) override {}
    void OnReceived(const server::Method&) override {}
    void OnSent(const server::Method&) override {}
    void OnCalls(const server::CallRecord& record, uint64_t calls) override {
      absl::MutexLock lock(&mu);
      absl::StrAppend(&seen, record.method.name, " ", calls, " ", record.code,
                      " ", record.details.Namespace(), " ",
                      record.details.RequestId(), " ",
                      record.details.TraceParent(), "\n");
    }
    absl::Mutex mu;
    std::string seen ABSL_GUARDED_BY(mu);
  };
  Observer observer;
  TestServerOptions options;
  options.change = [&](server::ServerOptions* to) {
    to->call_observers.push_back(&observer);
  };
  TestServer server(options);
  Pipeline pipeline(server.data(), {{"x-request-id", "stream"}});
  const std::string trace =
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_TRUE(pipeline.Send(Request(absl::StrCat(
      "independent: true operations { put { key: 'a' } } "
      "operations { put { key: 'b' ttl { seconds: -1 } } request_id: 'mine' } "
      "operations { get { key: 'a' } traceparent: '",
      trace,
      "' } operations { put { key: 'c' } } "
      "operations { append { key: 'd' condition: PUT_CONDITION_IF_PRESENT } }"
      "operations { remove { key: 'c' } request_id: 'not graphic' }"))));
  EXPECT_EQ(pipeline.Receive().results_size(), 6);
  absl::MutexLock lock(&observer.mu);
  EXPECT_EQ(observer.seen, absl::StrCat("Put 1 3 default mine \n"
                                        "Get 1 0 default stream ",
                                        trace,
                                        "\n"
                                        "Append 1 9 default stream \n"
                                        "Remove 1 0 default stream \n"
                                        "Put 2 0 default stream \n"));
}

TEST_F(PipelineTest, EachRequestMayBeAtomic) {
  Pipeline pipeline(server_.data());
  ASSERT_TRUE(pipeline.Send(Request("operations { put { key: 'a' } }")));
  ASSERT_TRUE(pipeline.Send(
      Request("atomic: true operations { put { key: 'b' } } operations { "
              "contains { key: 'a' condition: PUT_CONDITION_IF_ABSENT } }")));
  ASSERT_TRUE(pipeline.Send(
      Request("operations { contains { key: 'b' } } operations { put { key: "
              "'a' condition: PUT_CONDITION_IF_ABSENT } }")));
  EXPECT_TRUE(pipeline.Receive().results(0).has_put());
  const v1::ExecuteResponse refused = pipeline.Receive();
  ExpectError(StatusOf(refused.results(0)), StatusCode::ABORTED,
              v1::NOT_APPLIED, "another operation");
  ExpectError(StatusOf(refused.results(1)), StatusCode::FAILED_PRECONDITION,
              v1::KEY_EXISTS, "already exists");
  const v1::ExecuteResponse last = pipeline.Receive();
  EXPECT_FALSE(last.results(0).contains().contains());
  EXPECT_TRUE(last.results(1).has_error());
}

// Answers come to 64 MiB, and nobody reads them: the server goes no further
// than its bound, which the last put shows, and in the end every answer is
// there.
TEST_F(PipelineTest, AClientThatDoesNotReadIsHeldUpAndLosesNothing) {
  constexpr int kRequests = 64;
  server_.Put("big", std::string(1 << 20, 'v'));
  Pipeline pipeline(server_.data());
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_TRUE(
        pipeline.Send(absl::StrCat("operations { put { key: 'n' value: '", i,
                                   "' } } operations { get { key: 'big' } }")));
  }
  pipeline.Close();
  // Others are served meanwhile, and the pipeline stands: what HTTP/2 and the
  // bound hold is far less than all.
  server_.Put("other", "1");
  const std::string last = absl::StrCat(kRequests - 1);
  EXPECT_NE(server_.Get("n").entry().value(), last);
  for (int i = 0; i < kRequests; ++i) {
    const v1::ExecuteResponse response = pipeline.Receive();
    ASSERT_EQ(response.results_size(), 2);
    EXPECT_EQ(response.results(1).get().entry().value().size(), 1u << 20);
  }
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST_F(PipelineTest, AClientThatGoesAwayLeavesTheServerWell) {
  for (int i = 0; i < 20; ++i) {
    Pipeline pipeline(server_.data());
    EXPECT_TRUE(pipeline.Send("operations { put { key: 'a' } }"));
    if (i % 2 == 0) pipeline.Receive();
    pipeline.Cancel();
    EXPECT_FALSE(pipeline.Finish().ok());
  }
  EXPECT_TRUE(server_.server().Drain(60 * server::kMicrosPerSecond).in_time);
}

TEST_F(PipelineTest, ADrainAnswersWhatWasReadAndEndsTheStream) {
  Pipeline pipeline(server_.data());
  Pipeline idle(server_.data());
  EXPECT_TRUE(pipeline.Send("operations { put { key: 'a' } }"));
  EXPECT_EQ(pipeline.Receive().results_size(), 1);
  EXPECT_TRUE(idle.Send("operations { get { key: 'a' } }"));
  EXPECT_EQ(idle.Receive().results_size(), 1);
  EXPECT_TRUE(server_.server().Drain(60 * server::kMicrosPerSecond).in_time);
  ExpectError(pipeline.Finish(), StatusCode::UNAVAILABLE, v1::DRAINING);
  ExpectError(idle.Finish(), StatusCode::UNAVAILABLE, v1::DRAINING);
}

}  // namespace
}  // namespace timecache::test
