#include "server/ops/call_log.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {
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
        absl::StatusCode::kPermissionDenied, Reason::kAccessDenied, "no");
    log_.OnDenied(
        {methods::kPut, status, "baskets", config::v1::VERB_WRITE, details_});
  }

  void Refuse(Reason reason, uint64_t operations) {
    const absl::Status status = ErrorWithReason(
        absl::StatusCode::kResourceExhausted, reason, "it is full");
    log_.OnRefused({methods::kExecute, status, operations, details_});
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

TEST_F(CallLogTest, KeepsTheLastSlowCalls) {
  Handle(methods::kGet, 999);
  EXPECT_THAT(log_.slow_calls().List(), IsEmpty());
  for (size_t i = 0; i <= SlowCalls::kMost; ++i) {
    Handle(methods::kPut, 1000 + static_cast<int64_t>(i),
           grpc::StatusCode::NOT_FOUND);
  }
  // More than lines.
  EXPECT_THAT(lines_, SizeIs(CallLog::kMaxLinesPerSecond));
  const auto calls = log_.slow_calls().List();
  ASSERT_THAT(calls, SizeIs(SlowCalls::kMost));
  EXPECT_EQ(calls.front().took_us, 1000 + int64_t{SlowCalls::kMost});
  EXPECT_EQ(calls.back().took_us, 1001);
  EXPECT_EQ(calls.front().method, "timecache.v1.TimeCacheService/Put");
  EXPECT_EQ(calls.front().time_us, clock_.NowUs());
  EXPECT_EQ(calls.front().principal, "basket");
  EXPECT_EQ(calls.front().peer, "ipv4:127.0.0.1:1");
  EXPECT_EQ(calls.front().request_id, "id-7");
  EXPECT_EQ(calls.front().code, grpc::StatusCode::NOT_FOUND);
}

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
  Handle(methods::kConsumeExpired, 1 << 30);
  Handle(methods::kWatchExpiring, 1 << 30);
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

TEST_F(CallLogTest, SaysWhatALimitRefused) {
  Refuse(Reason::kMaxEntries, 3);
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(
      lines_[0],
      AllOf(HasSubstr("warn"), HasSubstr("limit_refused"),
            HasSubstr("reason=MAX_ENTRIES"), HasSubstr("namespace=baskets"),
            HasSubstr("count=3"), HasSubstr("full"),
            HasSubstr("TimeCacheService/Execute"),
            HasSubstr("principal=basket"), HasSubstr("127.0.0.1"),
            HasSubstr("request_id=id-7"), HasSubstr("traceparent=00-a-b-01")));
}

TEST_F(CallLogTest, RefusalsThatGoOnAreCounted) {
  for (int i = 0; i < 1'000; ++i) Refuse(Reason::kMaxEntries, 2);
  Refuse(Reason::kMaxMemory, 1);
  EXPECT_THAT(lines_, SizeIs(2));
  log_.WriteDue();
  EXPECT_THAT(lines_, SizeIs(2));
  clock_.AdvanceBy(FoldedLines::kIntervalUs);
  log_.WriteDue();
  ASSERT_THAT(lines_, SizeIs(3));
  EXPECT_THAT(lines_[2],
              AllOf(HasSubstr("limit_refused"), HasSubstr("MAX_ENTRIES"),
                    HasSubstr("namespace=baskets"), HasSubstr("count=1998")));
  Refuse(Reason::kMaxEntries, 1);
  log_.Finish();
  ASSERT_THAT(lines_, SizeIs(4));
  EXPECT_THAT(lines_[3], HasSubstr("count=1"));
}

TEST_F(CallLogTest, SaysWhatAWatchLost) {
  log_.OnLost({methods::kWatchExpired, "orders", 7, details_});
  log_.OnLost({methods::kWatchExpired, "orders", 5, details_});
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0],
              AllOf(HasSubstr("warn"), HasSubstr("events_lost"),
                    HasSubstr("namespace=orders"), HasSubstr("count=7"),
                    HasSubstr("principal=basket"), HasSubstr("id-7")));
  log_.Finish();
  EXPECT_THAT(lines_[1], AllOf(HasSubstr("events_lost"), HasSubstr("count=5")));
}

}  // namespace
}  // namespace timecache::server
