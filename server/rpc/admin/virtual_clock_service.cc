#include "server/rpc/admin/virtual_clock_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "server/rpc/call/unary_call.h"

namespace timecache::server {
namespace {

constexpr int64_t kMaxTimeUs =
    google::protobuf::util::TimeUtil::kTimestampMaxSeconds * kMicrosPerSecond;

absl::StatusOr<int64_t> Target(const testing::v1::AdvanceRequest& request,
                               int64_t now_us) {
  switch (request.target_case()) {
    case testing::v1::AdvanceRequest::kBy: {
      const auto by_us = ToMicros(request.by(), "by");
      if (!by_us.ok()) return by_us;
      if (*by_us < 0) return InvalidField("by", "must not be negative");
      if (*by_us > kMaxTimeUs - now_us) {
        return InvalidField("by", "must not lead past the year 9999");
      }
      return now_us + *by_us;
    }
    case testing::v1::AdvanceRequest::kTo: {
      const auto to_us = ToMicros(request.to(), "to");
      if (!to_us.ok()) return to_us;
      if (*to_us < now_us) {
        return InvalidField(
            "to",
            absl::StrCat(
                "must not be before the clock's time, ",
                google::protobuf::util::TimeUtil::ToString(
                    google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(
                        now_us))));
      }
      return *to_us;
    }
    case testing::v1::AdvanceRequest::TARGET_NOT_SET:
      break;
  }
  return InvalidField("target", "must be set: by or to");
}

}  // namespace

VirtualClockService::VirtualClockService(const CallGate* gate,
                                         ManualClock* clock,
                                         std::function<void()> flush,
                                         WatchHub* hub)
    : RawService(nullptr),
      gate_(*gate),
      clock_(clock),
      flush_(std::move(flush)),
      hub_(hub),
      thread_([this] { Run(); }) {
  Serve<UnaryHandler>(
      methods::kAdvance,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerAdvance(context, request, response);
      });
  Serve<UnaryHandler>(
      methods::kNow,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerNow(context, request, response);
      });
}

VirtualClockService::~VirtualClockService() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void VirtualClockService::Run() {
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || !advances_.empty();
  };
  for (;;) {
    std::function<void()> advance;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_work));
      if (advances_.empty()) return;
      advance = std::move(advances_.front());
      advances_.pop();
    }
    advance();
  }
}

grpc::ServerUnaryReactor* VirtualClockService::AnswerAdvance(
    Context* context, const Bytes* request, Bytes* response) {
  using Unary =
      UnaryCall<testing::v1::AdvanceRequest, testing::v1::AdvanceResponse>;
  const auto unary = std::make_shared<Unary>(gate_, methods::kAdvance, context,
                                             request, response);
  absl::Status status = unary->Read();
  if (status.ok()) {
    status = unary->call().Authorize(config::v1::VERB_ADMIN, kWholeServer);
  }
  if (!status.ok()) return unary->Finish(status);
  grpc::ServerUnaryReactor* const reactor = unary->reactor();
  absl::MutexLock lock(&mu_);
  advances_.push([this, unary] {
    unary->Finish(AdvanceTo(unary->request(), &unary->response()));
  });
  return reactor;
}

absl::Status VirtualClockService::AdvanceTo(
    const testing::v1::AdvanceRequest& request,
    testing::v1::AdvanceResponse* response) {
  const absl::StatusOr<int64_t> target_us = Target(request, clock_->NowUs());
  if (!target_us.ok()) return target_us.status();
  clock_->AdvanceTo(*target_us);
  flush_();
  hub_->HeartbeatAll();
  SetTime(*target_us, response->mutable_now());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* VirtualClockService::AnswerNow(Context* context,
                                                         const Bytes* request,
                                                         Bytes* response) {
  UnaryCall<testing::v1::NowRequest, testing::v1::NowResponse> unary(
      gate_, methods::kNow, context, request, response);
  absl::Status status = unary.Read();
  if (status.ok()) {
    status = unary.call().Authorize(config::v1::VERB_ADMIN, kWholeServer);
  }
  if (status.ok()) SetTime(clock_->NowUs(), unary.response().mutable_now());
  return unary.Finish(status);
}

}  // namespace timecache::server
