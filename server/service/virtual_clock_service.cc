#include "server/service/virtual_clock_service.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "server/engine/error.h"
#include "server/service/call.h"
#include "server/service/convert.h"

namespace timecache {
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

grpc::Status VirtualClockService::Advance(
    grpc::ServerContext* context, const testing::v1::AdvanceRequest* request,
    testing::v1::AdvanceResponse* response) {
  Call call(gate_, methods::kAdvance, context);
  absl::Status status = call.Authorize(v1::VERB_ADMIN, kWholeServer);
  if (status.ok()) status = AdvanceTo(*request, response);
  return call.End(status);
}

absl::Status VirtualClockService::AdvanceTo(
    const testing::v1::AdvanceRequest& request,
    testing::v1::AdvanceResponse* response) {
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<int64_t> target_us = Target(request, clock_->NowUs());
  if (!target_us.ok()) return target_us.status();
  clock_->AdvanceTo(*target_us);
  reaper_->Flush();
  hub_->HeartbeatAll();
  SetTime(*target_us, response->mutable_now());
  return absl::OkStatus();
}

grpc::Status VirtualClockService::Now(
    grpc::ServerContext* context, const testing::v1::NowRequest* /*request*/,
    testing::v1::NowResponse* response) {
  Call call(gate_, methods::kNow, context);
  const absl::Status status = call.Authorize(v1::VERB_ADMIN, kWholeServer);
  if (status.ok()) SetTime(clock_->NowUs(), response->mutable_now());
  return call.End(status);
}

}  // namespace timecache
