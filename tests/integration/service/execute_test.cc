// Many operations in one message: Execute and Pipeline, over the wire.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
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
  explicit Pipeline(Stub* stub) {
    SetDeadline(&context_);
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
