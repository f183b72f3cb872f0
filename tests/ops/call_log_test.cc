#include "server/ops/call_log.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"

namespace timecache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FakeDetails final : public CallDetails {
 public:
  std::string RequestId() const override { return "id-7"; }
  std::string TraceParent() const override { return "00-a-b-01"; }
  std::string Peer() const override { return "ipv4:127.0.0.1:1"; }
  std::string Principal() const override { return "basket"; }
  absl::string_view Namespace() const override { return "baskets"; }
};

class CallLogTest : public ::testing::Test {
 protected:
  void Handle(const Method& method, int64_t took_us,
              grpc::StatusCode code = grpc::StatusCode::OK) {
    log_.OnStarted(method);
    log_.OnReceived(method);
    log_.OnSent(method);
    log_.OnHandled({method, code, "because", took_us, details_});
  }

  void Deny() {
    const absl::Status status = ErrorWithReason(
        absl::StatusCode::kPermissionDenied, "ACCESS_DENIED", "no");
    log_.OnDenied({methods::kPut, status, "baskets", v1::VERB_WRITE, details_});
  }

  FakeDetails details_;
  ManualClock clock_{5 * kMicrosPerSecond};
  std::vector<std::string> lines_;
  CallLog log_{
      1000, &clock_,
      [this](LogLevel level, std::string_view event, LogFields fields) {
        lines_.push_back(FormatLogLine(LogFormat::kText, absl::Time(), level,
                                       event, fields));
      }};
};

TEST_F(CallLogTest, SaysWhichUnaryCallsAreSlow) {
  Handle(methods::kGet, 999);
  EXPECT_THAT(lines_, IsEmpty());
  Handle(methods::kGet, 1500);
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0],
              AllOf(HasSubstr("warn"), HasSubstr("slow_call"),
                    HasSubstr("method=timecache.v1.TimeCacheService/Get"),
                    HasSubstr("namespace=baskets"), HasSubstr("code=OK"),
                    HasSubstr("took_ms=1.5"), HasSubstr("principal=basket"),
                    HasSubstr("127.0.0.1"), HasSubstr("request_id=id-7"),
                    HasSubstr("traceparent=00-a-b-01")));
  // They are meant to last.
  Handle(methods::kWatchExpired, 1 << 30);
  Handle(methods::kPipeline, 1 << 30);
  EXPECT_THAT(lines_, SizeIs(1));
}

TEST_F(CallLogTest, ZeroIsNeverSlow) {
  log_.SetSlowCall(0);
  Handle(methods::kGet, 1 << 30);
  EXPECT_THAT(lines_, IsEmpty());
  log_.SetSlowCall(5);
  Handle(methods::kGet, 5);
  EXPECT_THAT(lines_, SizeIs(1));
}

TEST_F(CallLogTest, SaysWhatTheServerIsToBlameFor) {
  Handle(methods::kScan, 1, grpc::StatusCode::INTERNAL);
  Handle(methods::kScan, 1, grpc::StatusCode::DATA_LOSS);
  Handle(methods::kScan, 1, grpc::StatusCode::NOT_FOUND);
  ASSERT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(lines_[0], AllOf(HasSubstr("error"), HasSubstr("call_failed"),
                               HasSubstr("INTERNAL"), HasSubstr("because")));
  EXPECT_THAT(lines_[1], HasSubstr("DATA_LOSS"));
}

TEST_F(CallLogTest, SaysWhoWasDeniedWhat) {
  Deny();
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0],
              AllOf(HasSubstr("warn"), HasSubstr("access_denied"),
                    HasSubstr("reason=ACCESS_DENIED"), HasSubstr("basket"),
                    HasSubstr("127.0.0.1"), HasSubstr("TimeCacheService/Put"),
                    HasSubstr("namespace=baskets"), HasSubstr("verb=write"),
                    HasSubstr("request_id=id-7")));
}

TEST_F(CallLogTest, AFloodOfDenialsIsCutAndCounted) {
  for (uint64_t i = 0; i < CallLog::kMaxLinesPerSecond + 23; ++i) Deny();
  ASSERT_THAT(lines_, SizeIs(CallLog::kMaxLinesPerSecond));
  EXPECT_THAT(lines_.back(), HasSubstr("suppressed=0"));
  // It does not keep other lines out.
  Handle(methods::kGet, 1500);
  EXPECT_THAT(lines_, SizeIs(CallLog::kMaxLinesPerSecond + 1));
  clock_.AdvanceBy(kMicrosPerSecond);
  Deny();
  EXPECT_THAT(lines_.back(), HasSubstr("suppressed=23"));
  Deny();
  EXPECT_THAT(lines_.back(), HasSubstr("suppressed=0"));
}

}  // namespace
}  // namespace timecache
