#include "bench/service/group_members.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "bench/service/group_scan.h"
#include "bench/watch/watch_storm.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::bench {
namespace {

constexpr char kConsumeMethod[] =
    "/timecache.v1.TimeCacheService/ConsumeExpired";
constexpr char kSettleMethod[] = "/timecache.v1.TimeCacheService/SettleExpired";
constexpr size_t kMaxSettlements = 4'096;
// Longer than a run.
constexpr int kMemberHeartbeatSeconds = 3'600;

grpc::ByteBuffer MemberRequest(const GroupPlan& plan) {
  v1::ConsumeExpiredRequest request;
  request.add_namespaces(plan.map);
  request.set_group(plan.group);
  request.set_max_in_flight(static_cast<uint32_t>(plan.max_in_flight));
  request.mutable_heartbeat_interval()->set_seconds(kMemberHeartbeatSeconds);
  const grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

// One stream, and one call at a time that settles what came meanwhile.
class Member final : public WatchCall {
 public:
  Member(Members* owner, Connection* connection)
      : WatchCall(connection, kConsumeMethod, owner->plan_.give_up),
        owner_(owner),
        connection_(connection),
        settled_([this](bool, absl::Time now) { OnSettled(now); }) {}

  const Members::Sum& sum() const { return sum_; }

 private:
  struct SettleCall {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    size_t events = 0;
    // Destroyed first: it uses the others.
    std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> call;
  };

  bool OnMessage(grpc::ByteBuffer* message, absl::Time /*now*/) override {
    const size_t before = scan_.events.size();
    if (!ScanGroupMessage(*message, &scan_)) Fail("a message is malformed");
    if (scan_.lost != 0) {
      Fail(absl::StrFormat("the group lost %d events", scan_.lost));
    }
    for (size_t i = before; i < scan_.events.size(); ++i) {
      if (scan_.events[i].attempt != 1) Fail("an event was delivered twice");
    }
    const size_t events = scan_.events.size() - before;
    if (scan_.value_bytes != events * kStormValueBytes) {
      Fail("an event came without its value");
    }
    scan_.value_bytes = 0;
    sum_.events += events;
    if (events > 0) ++sum_.messages;
    if (!standing_) owner_->Standing();
    standing_ = true;
    if (settling_ == nullptr) Settle();
    return true;
  }

  void OnEnd(const grpc::Status& status) override {
    if (owner_->stopping()) return;
    Fail(absl::StrFormat("a member's stream ended after %d events: %s",
                         sum_.events, status.error_message()));
  }

  // All that waits, or as much of it as one request takes.
  void Settle() {
    if (scan_.events.empty()) return;
    const size_t count = std::min(scan_.events.size(), kMaxSettlements);
    settling_ = std::make_unique<SettleCall>();
    settling_->events = count;
    settling_->context.set_deadline(absl::ToChronoTime(owner_->plan_.give_up));
    settling_->call = connection_->stub()->PrepareUnaryCall(
        &settling_->context, kSettleMethod,
        SettleRequest(owner_->plan_.map, owner_->plan_.group,
                      scan_.events.data(), count),
        connection_->queue());
    settling_->call->StartCall();
    settling_->call->Finish(&settling_->response, &settling_->status,
                            &settled_);
    scan_.events.erase(scan_.events.begin(),
                       scan_.events.begin() + static_cast<int64_t>(count));
    ++sum_.settles;
  }

  void OnSettled(absl::Time now) {
    const std::unique_ptr<SettleCall> settled = std::move(settling_);
    if (!settled->status.ok()) {
      Fail("cannot settle: " + settled->status.error_message());
    }
    if (!AllSettled(settled->response, settled->events)) {
      Fail("an event was not settled");
    }
    Settle();
    owner_->Settled(settled->events, now);
  }

  Members* const owner_;
  Connection* const connection_;
  Step settled_;
  bool standing_ = false;
  // `events`: those that wait to be settled.
  GroupScan scan_;
  // In flight, or null.
  std::unique_ptr<SettleCall> settling_;
  Members::Sum sum_;
};

Members::Members(const std::string& address, const GroupPlan& plan)
    : plan_(plan) {
  for (int i = 0; i < std::min(plan.members, kMaxConnections); ++i) {
    connections_.push_back(std::make_unique<Connection>(address));
  }
  for (size_t i = 0; i < static_cast<size_t>(plan.members); ++i) {
    members_.push_back(std::make_unique<Member>(
        this, connections_[i % connections_.size()].get()));
  }
  const grpc::ByteBuffer request = MemberRequest(plan);
  for (const auto& member : members_) member->Start(request);
  for (const auto& connection : connections_) connection->Start();
}

Members::~Members() { Stop(); }

void Members::Standing() {
  absl::MutexLock lock(&mutex_);
  ++standing_;
}

void Members::Settled(uint64_t events, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  settled_ += events;
  last_ = std::max(last_, now);
  if (settled_ > plan_.events) Fail("more events were settled than died");
}

bool Members::stopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void Members::AwaitStanding() {
  const auto all = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return standing_ == plan_.members;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&all));
}

absl::Time Members::AwaitSettled() {
  const auto all = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return settled_ == plan_.events;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&all));
  return last_;
}

void Members::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  for (const auto& member : members_) member->Cancel();
  for (const auto& connection : connections_) connection->Join();
  for (const auto& member : members_) sums_.push_back(member->sum());
  members_.clear();
  connections_.clear();
}

}  // namespace timecache::bench
