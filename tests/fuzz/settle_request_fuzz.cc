// SettleExpired on a group with events in flight: each settlement has its
// result, and no event is settled twice or lost.

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "server/rpc/call/request.h"
#include "server/rpc/watch/delivery_token.h"
#include "server/rpc/watch/settle.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using fuzz::Require;

constexpr int64_t kFuzzStartUs = 1'000 * kMicrosPerSecond;
constexpr uint64_t kEvents = 8;
constexpr int kInFlight = 4;

// A namespace "n" of whose group "g" a member has been given kInFlight of
// kEvents events. Another one each time.
class World {
 public:
  World()
      : clock_(kFuzzStartUs),
        reaper_(&clock_),
        registry_(&clock_, &reaper_, RegistryLimits()) {}

  void Renew() {
    member_.reset();
    group_.reset();
    if (map_ != nullptr) (void)registry_.Delete("n");
    NamespaceOptions options;
    options.num_buckets = 2;
    options.num_shards = 1;
    map_ = registry_.Create("n", options).value();
    group_ = map_->groups()
                 .Create("g", {}, ExpiryLog::Start::kNow, now_us())
                 .value();
    for (uint64_t i = 0; i < kEvents; ++i) {
      const std::string key = absl::StrCat("k", i);
      (void)map_->Apply(Operation::Put(key, "v"), now_us());
    }
    map_->Rotate(now_us());
    while (map_->Sweep(now_us(), Reaper::kMaxSweepStep)) {
    }
    reaper_.Flush();
    member_ = group_->Join(kInFlight, [] {});
    const EventChunk chunk =
        member_->Take(now_us(), kInFlight, int64_t{1} << 20);
    Require(chunk.deliveries.size() == kInFlight, "events are given out");
  }

  // The store completes inline.
  absl::Status Settle(const v1::SettleExpiredRequest& request,
                      v1::SettleExpiredResponse* response) {
    SettleRequest taken;
    absl::Status settled =
        TakeRequest(timecache::server::ToBytes(request), &taken, "");
    if (!settled.ok()) return settled;
    SettleAnswer answer;
    settled = absl::UnknownError("not completed");
    timecache::server::Settle(
        taken, &store_, &answer,
        [&settled](absl::Status status, const RefusalCount&) {
          settled = std::move(status);
        });
    if (settled.ok()) {
      Require(ParseRequest(ToBytes(answer, nullptr), response).ok(),
              "an answer that parses");
    }
    return settled;
  }
  // Makes a token of the group's of the last bytes of another one.
  void NameDelivery(v1::Settlement* settlement) {
    const std::string& from = settlement->delivery_token();
    char token[kMaxDeliveryTokenBytes];
    Delivery delivery;
    delivery.attempt = 1;
    delivery.group_id = group_->delivery_id();
    if (!from.empty()) delivery.event_id = from.back() & 15;
    if (from.size() > 1) delivery.attempt += from[from.size() - 2] & 1;
    settlement->set_delivery_token(
        std::string(token, WriteDeliveryToken(delivery, token)));
  }
  GroupStatistics statistics() const { return group_->GetStatistics(); }
  int64_t now_us() const { return clock_.NowUs(); }

 private:
  ManualClock clock_;
  Reaper reaper_;
  Registry registry_;
  LocalStore store_{&registry_, &clock_};
  // It outlives its group.
  std::shared_ptr<TimeCacheMap> map_;
  std::shared_ptr<ConsumerGroup> group_;
  std::unique_ptr<ConsumerGroup::Member> member_;
};

void CheckResult(const v1::Settlement& settlement,
                 const v1::SettleResult& result) {
  if (!result.has_error()) {
    Require(settlement.has_put_back() || result.version() == 0,
            "a version without a put");
    return;
  }
  switch (static_cast<absl::StatusCode>(result.error().code())) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return;
    default:
      Require(false, result.DebugString());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World& world = *new World;
  v1::SettleExpiredRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  world.Renew();
  // Twice: as they came, and as deliveries of the group that is there.
  v1::SettleExpiredResponse response;
  (void)world.Settle(request, &response);
  response.Clear();
  request.set_namespace_("n");
  request.set_group("g");
  for (v1::Settlement& settlement : *request.mutable_settlements()) {
    world.NameDelivery(&settlement);
  }
  const uint64_t settled_before =
      world.statistics().acked + world.statistics().put_back;
  const absl::Status status = world.Settle(request, &response);
  if (!status.ok()) {
    Require(FieldOf(status) == "settlements", status.ToString());
    return 0;
  }
  Require(response.results_size() == request.settlements_size(),
          "a result for each settlement");
  for (int i = 0; i < request.settlements_size(); ++i) {
    CheckResult(request.settlements(i), response.results(i));
  }
  const GroupStatistics statistics = world.statistics();
  Require(Sum(statistics) == kEvents, "every event is in one place");
  Require(statistics.acked + statistics.put_back >= settled_before &&
              statistics.acked + statistics.put_back <= kEvents,
          "each event is settled once");
  return 0;
}

}  // namespace timecache::server
