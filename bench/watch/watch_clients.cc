#include "bench/watch/watch_clients.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/watch/watch_scan.h"
#include "bench/watch/watch_storm.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::bench {
namespace {

constexpr char kMethod[] = "/timecache.v1.TimeCacheService/WatchExpired";
// Longer than a run: an idle watcher is silent.
constexpr int kHeartbeatSeconds = 3'600;

grpc::ByteBuffer WatchRequest(const std::string& name) {
  v1::WatchExpiredRequest request;
  request.add_namespaces(name);
  request.mutable_heartbeat_interval()->set_seconds(kHeartbeatSeconds);
  const grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

// One stream.
class EventWatcher final : public WatchCall {
 public:
  EventWatcher(Watchers* owner, Connection* connection, int number)
      : WatchCall(connection, kMethod, owner->plan_.give_up),
        owner_(owner),
        number_(number),
        can_stall_(number == 0 && owner->plan_.first_can_stall),
        resume_([this](bool, absl::Time) { Resume(); }) {}

  Step* resume() { return &resume_; }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  uint64_t event_bytes() const { return event_bytes_; }
  Watchers::Sum sum() const { return {events_, lost_}; }

 private:
  bool OnMessage(grpc::ByteBuffer* message, absl::Time now) override {
    Count(message, now);
    held_ = can_stall_ && owner_->first_stalled_;
    return !held_;
  }

  void OnEnd(const grpc::Status& status) override {
    if (owner_->stopping()) return;
    Fail(absl::StrFormat("a watch ended after %d events: %s", events_,
                         status.error_message()));
  }

  void Resume() {
    if (!held_) return;
    held_ = false;
    Read();
  }

  void Count(grpc::ByteBuffer* message, absl::Time now) {
    MessageScan scan;
    if (!ScanMessage(message, &scan)) Fail("a message is malformed");
    if (scan.lost != 0 && !can_stall_) {
      Fail(absl::StrFormat("%d events were lost", scan.lost));
    }
    lost_ += scan.lost;
    if (!standing_) owner_->Standing();
    standing_ = true;
    if (scan.events > 0) CountEvents(scan, now);
    if (scan.events == 0 && scan.lost == 0) return;
    const uint64_t target = owner_->target_;
    if (events_ + lost_ > target) Fail("more events came than entries died");
    if (events_ + lost_ == target) owner_->Complete();
  }

  void CountEvents(const MessageScan& scan, absl::Time now) {
    const absl::Time death = absl::FromUnixMicros(scan.death_time_us);
    if (now < death) Fail("an event came before its deadline");
    if (scan.value_bytes != kStormValueBytes ||
        scan.event_bytes < scan.events * (kStormKeyBytes + kStormValueBytes)) {
      Fail("an event came without its value");
    }
    arrivals_.push_back({now, death, scan.events, number_});
    event_bytes_ += scan.event_bytes;
    events_ += scan.events;
  }

  Watchers* const owner_;
  const int number_;
  const bool can_stall_;
  Step resume_;
  // Whether it does not read.
  bool held_ = false;
  bool standing_ = false;
  uint64_t events_ = 0;
  uint64_t lost_ = 0;
  uint64_t event_bytes_ = 0;
  std::vector<Arrival> arrivals_;
};

Watchers::Watchers(const std::string& address, const WatchPlan& plan)
    : plan_(plan) {
  const int own = plan.first_can_stall ? 1 : 0;
  const int shared = std::min(plan.watchers - own, kMaxConnections);
  for (int i = 0; i < own + shared; ++i) {
    connections_.push_back(std::make_unique<Connection>(address));
  }
  for (int i = 0; i < plan.watchers; ++i) {
    const int connection = i < own ? 0 : own + (i - own) % shared;
    watchers_.push_back(std::make_unique<EventWatcher>(
        this, connections_[static_cast<size_t>(connection)].get(), i));
  }
  const grpc::ByteBuffer request = WatchRequest(plan.map);
  for (const auto& watcher : watchers_) watcher->Start(request);
  for (const auto& connection : connections_) connection->Start();
}

Watchers::~Watchers() { Stop(); }

void Watchers::Standing() {
  absl::MutexLock lock(&mutex_);
  ++standing_;
}

void Watchers::Complete() {
  absl::MutexLock lock(&mutex_);
  ++complete_;
}

bool Watchers::stopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void Watchers::AwaitStanding() {
  const auto all = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return standing_ == plan_.watchers;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&all));
}

void Watchers::Expect(uint64_t events) {
  absl::MutexLock lock(&mutex_);
  complete_ = 0;
  target_ = events;
}

void Watchers::AwaitEvents() {
  const auto all = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return complete_ == plan_.watchers;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&all));
}

void Watchers::StallFirst() { first_stalled_ = true; }

void Watchers::ResumeFirst() {
  first_stalled_ = false;
  alarms_.push_back(std::make_unique<grpc::Alarm>());
  alarms_.back()->Set(connections_[0]->queue(), gpr_now(GPR_CLOCK_MONOTONIC),
                      watchers_[0]->resume());
}

std::vector<Arrival> Watchers::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return {};
    stopping_ = true;
  }
  // One that does not read does not see its end either.
  if (first_stalled_) ResumeFirst();
  for (const auto& watcher : watchers_) watcher->Cancel();
  for (const auto& connection : connections_) connection->Join();
  std::vector<Arrival> arrivals;
  for (const auto& watcher : watchers_) {
    arrivals.insert(arrivals.end(), watcher->arrivals().begin(),
                    watcher->arrivals().end());
    event_bytes_ += watcher->event_bytes();
    sums_.push_back(watcher->sum());
  }
  alarms_.clear();
  watchers_.clear();
  connections_.clear();
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  return arrivals;
}

}  // namespace timecache::bench
