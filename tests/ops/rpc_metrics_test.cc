#include "server/ops/rpc_metrics.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/call_observer.h"
#include "server/base/error.h"
#include "server/ops/metrics.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NoDetails final : public CallDetails {
 public:
  std::string RequestId() const override { return "request-1"; }
  std::string TraceParent() const override { return ""; }
  std::string Peer() const override { return "ipv4:192.0.2.1:1"; }
  std::string Principal() const override { return "alice"; }
  absl::string_view Namespace() const override { return "secret-place"; }
};

class RpcMetricsTest : public ::testing::Test {
 protected:
  RpcMetricsTest() { text_.Add(&metrics_); }

  void Handle(const Method& method, grpc::StatusCode code, int64_t took_us) {
    metrics_.OnStarted(method);
    metrics_.OnHandled({method, code, "a message", took_us, details_});
  }
  void Deny(Reason reason) {
    const absl::Status status =
        ErrorWithReason(absl::StatusCode::kPermissionDenied, reason, "no");
    metrics_.OnDenied({methods::kPut, status, "n", Verbs(), details_});
  }
  std::string Text() const { return text_.Text(); }

  const NoDetails details_;
  RpcMetrics metrics_;
  Metrics text_;
};

std::string Labels(const char* type, const char* service, const char* method) {
  return absl::StrCat("{grpc_type=\"", type, "\",grpc_service=\"", service,
                      "\",grpc_method=\"", method, "\"");
}

TEST_F(RpcMetricsTest, EveryMethodIsThereFromTheStart) {
  const std::string text = Text();
  for (const Method& method : kMethods) {
    const std::string labels = Labels(
        std::string(MethodTypeName(method.type)).c_str(),
        std::string(method.service).c_str(), std::string(method.name).c_str());
    EXPECT_THAT(text, HasSubstr("grpc_server_started_total" + labels + "} 0"));
    EXPECT_THAT(text, HasSubstr("grpc_server_handled_total" + labels +
                                ",grpc_code=\"OK\"} 0"));
  }
}

TEST_F(RpcMetricsTest, CountsCallsByMethodAndCode) {
  Handle(methods::kPut, grpc::StatusCode::OK, 10);
  Handle(methods::kPut, grpc::StatusCode::OK, 10);
  Handle(methods::kPut, grpc::StatusCode::RESOURCE_EXHAUSTED, 10);
  metrics_.OnStarted(methods::kPut);
  // One that no gRPC of today has.
  Handle(methods::kCreateGroup, static_cast<grpc::StatusCode>(31), 10);
  const std::string text = Text();
  const std::string put =
      Labels("unary", "timecache.v1.TimeCacheService", "Put");
  EXPECT_THAT(text, HasSubstr("grpc_server_started_total" + put + "} 4\n"));
  EXPECT_THAT(text, HasSubstr("grpc_server_handled_total" + put +
                              ",grpc_code=\"OK\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("grpc_server_handled_total" + put +
                              ",grpc_code=\"ResourceExhausted\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("grpc_server_handled_total" +
                              Labels("unary", "timecache.v1.GroupService",
                                     "CreateGroup") +
                              ",grpc_code=\"Unknown\"} 1\n"));
}

TEST_F(RpcMetricsTest, UnaryMessagesFollowFromTheCalls) {
  Handle(methods::kGet, grpc::StatusCode::OK, 10);
  Handle(methods::kGet, grpc::StatusCode::NOT_FOUND, 10);
  const std::string text = Text();
  const std::string get =
      Labels("unary", "timecache.v1.TimeCacheService", "Get");
  EXPECT_THAT(text,
              HasSubstr("grpc_server_msg_received_total" + get + "} 2\n"));
  EXPECT_THAT(text, HasSubstr("grpc_server_msg_sent_total" + get + "} 1\n"));
}

TEST_F(RpcMetricsTest, StreamsCountTheirMessages) {
  metrics_.OnStarted(methods::kPipeline);
  for (int i = 0; i < 3; ++i) metrics_.OnReceived(methods::kPipeline);
  for (int i = 0; i < 2; ++i) metrics_.OnSent(methods::kPipeline);
  const std::string text = Text();
  const std::string pipeline =
      Labels("bidi_stream", "timecache.v1.TimeCacheService", "Pipeline");
  EXPECT_THAT(text,
              HasSubstr("grpc_server_msg_received_total" + pipeline + "} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("grpc_server_msg_sent_total" + pipeline + "} 2\n"));
}

TEST_F(RpcMetricsTest, DurationsAreAHistogram) {
  Handle(methods::kSize, grpc::StatusCode::OK, 16);
  Handle(methods::kSize, grpc::StatusCode::OK, 17);
  Handle(methods::kSize, grpc::StatusCode::OK, 3'000'000);
  Handle(methods::kSize, grpc::StatusCode::OK, int64_t{1} << 40);
  Handle(methods::kSize, grpc::StatusCode::OK, -1);
  const std::string text = Text();
  const std::string size =
      Labels("unary", "timecache.v1.TimeCacheService", "Size");
  const auto bucket = [&](const char* le) {
    return absl::StrCat("grpc_server_handling_seconds_bucket", size, ",le=\"",
                        le, "\"} ");
  };
  EXPECT_THAT(text, HasSubstr(bucket("1.6e-05") + "2\n"));
  EXPECT_THAT(text, HasSubstr(bucket("3.2e-05") + "3\n"));
  EXPECT_THAT(text, HasSubstr(bucket("4.194304") + "4\n"));
  EXPECT_THAT(text, HasSubstr(bucket("+Inf") + "5\n"));
  EXPECT_THAT(text,
              HasSubstr("grpc_server_handling_seconds_count" + size + "} 5\n"));
}

TEST_F(RpcMetricsTest, DenialsAreCountedByReasonAndReasonsAreBounded) {
  Deny(Reason::kAccessDenied);
  Deny(Reason::kAccessDenied);
  std::vector<std::string> others;
  for (int number = 1; number < 256; ++number) {
    const auto reason = static_cast<Reason>(number);
    if (ReasonName(reason).empty() || reason == Reason::kAccessDenied) continue;
    Deny(reason);
    others.push_back(absl::StrCat("{reason=\"", ReasonName(reason), "\"}"));
  }
  // RpcMetrics::kMaxDenialReasons, beside ACCESS_DENIED.
  constexpr size_t kCounted = 15;
  ASSERT_GT(others.size(), kCounted);
  const std::string text = Text();
  EXPECT_THAT(
      text,
      HasSubstr("timecache_access_denied_total{reason=\"ACCESS_DENIED\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(others[kCounted - 1] + " 1\n"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("{reason=\"OTHER\"} ",
                                           others.size() - kCounted, "\n")));
  EXPECT_THAT(text, Not(HasSubstr(others[kCounted])));
}

TEST_F(RpcMetricsTest, NoCallIsLostAmongThreads) {
  constexpr int kThreads = 12;
  constexpr int kCalls = 2'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int call = 0; call < kCalls; ++call) {
        Handle(methods::kGet, grpc::StatusCode::OK, call);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Text(),
              HasSubstr(absl::StrCat(
                  "grpc_server_handled_total",
                  Labels("unary", "timecache.v1.TimeCacheService", "Get"),
                  ",grpc_code=\"OK\"} ", kThreads * kCalls, "\n")));
}

}  // namespace
}  // namespace timecache::server
