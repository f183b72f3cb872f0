#include "tests/bench/watch_clients.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/bench/watch_scan.h"
#include "timecache/v1/timecache.pb.h"

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

// One stream. Confined to its connection's thread, but for Start() and
// Cancel(), and once that thread has ended.
class Watcher {
 public:
  // What a completion queue hands back.
  struct Step {
    Watcher* watcher;
    void (Watcher::*run)(bool ok, absl::Time now);
  };

  Watcher(Watchers* owner, grpc::GenericStub* stub,
          grpc::CompletionQueue* queue)
      : owner_(owner) {
    context_.set_deadline(absl::ToChronoTime(owner->storm_->give_up()));
    call_ = stub->PrepareCall(&context_, kMethod, queue);
  }

  void Start() { call_->StartCall(&start_); }
  void Cancel() { context_.TryCancel(); }
  bool ended() const { return ended_; }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  uint64_t event_bytes() const { return event_bytes_; }

 private:
  void OnStart(bool ok, absl::Time /*now*/) {
    if (!ok) return call_->Finish(&status_, &finish_);
    call_->WriteLast(owner_->request_, grpc::WriteOptions(), &write_);
    call_->Read(&message_, &read_);
  }

  // A write that failed shows in the read.
  void OnWrite(bool /*ok*/, absl::Time /*now*/) {}

  void OnRead(bool ok, absl::Time now) {
    if (!ok) return call_->Finish(&status_, &finish_);
    Count(now);
    call_->Read(&message_, &read_);
  }

  void OnFinish(bool /*ok*/, absl::Time /*now*/) {
    if (!owner_->stopping()) {
      Fail(absl::StrFormat("a watch ended after %d of %d events: %s", events_,
                           owner_->storm_->entries(), status_.error_message()));
    }
    ended_ = true;
  }

  void Count(absl::Time now) {
    MessageScan scan;
    if (!ScanMessage(&message_, &scan)) Fail("a message is malformed");
    if (scan.lost != 0) Fail(absl::StrFormat("%d events were lost", scan.lost));
    if (!standing_) owner_->Standing();
    standing_ = true;
    if (scan.events == 0) return;
    const Storm& storm = *owner_->storm_;
    if (absl::FromUnixMicros(scan.death_time_us) != storm.death()) {
      Fail("an event's death_time is not the one that all have");
    }
    if (now < storm.death()) Fail("an event came before its deadline");
    if (scan.value_bytes != kStormValueBytes ||
        scan.event_bytes < scan.events * (kStormKeyBytes + kStormValueBytes)) {
      Fail("an event came without its value");
    }
    arrivals_.push_back({now, scan.events});
    event_bytes_ += scan.event_bytes;
    events_ += scan.events;
    if (events_ > storm.entries()) Fail("more events came than entries died");
    if (events_ == storm.entries()) owner_->Complete();
  }

  Watchers* const owner_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  Step start_ = {this, &Watcher::OnStart};
  Step write_ = {this, &Watcher::OnWrite};
  Step read_ = {this, &Watcher::OnRead};
  Step finish_ = {this, &Watcher::OnFinish};
  grpc::ByteBuffer message_;
  grpc::Status status_;
  bool standing_ = false;
  bool ended_ = false;
  uint64_t events_ = 0;
  uint64_t event_bytes_ = 0;
  std::vector<Arrival> arrivals_;
};

Watchers::Watchers(const std::string& address, int count, const Storm* storm)
    : count_(count), storm_(storm), request_(WatchRequest(storm->name())) {
  // Without it all channels to an address share one connection.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (int i = 0; i < std::min(count, kMaxConnections); ++i) {
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->stub =
        std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
            address, grpc::InsecureChannelCredentials(), arguments));
  }
  for (int i = 0; i < count; ++i) {
    Connection& connection =
        *connections_[static_cast<size_t>(i) % connections_.size()];
    connection.watchers.push_back(std::make_unique<Watcher>(
        this, connection.stub.get(), &connection.queue));
    connection.watchers.back()->Start();
  }
  for (const auto& connection : connections_) {
    connection->thread = std::thread(&Watchers::Serve, connection.get());
  }
}

Watchers::~Watchers() { Stop(); }

void Watchers::Serve(Connection* connection) {
  size_t ended = 0;
  void* tag = nullptr;
  bool ok = false;
  while (connection->queue.Next(&tag, &ok)) {
    const absl::Time now = absl::Now();
    const auto* const step = static_cast<const Watcher::Step*>(tag);
    const bool had_ended = step->watcher->ended();
    (step->watcher->*step->run)(ok, now);
    if (had_ended || !step->watcher->ended()) continue;
    if (++ended == connection->watchers.size()) connection->queue.Shutdown();
  }
}

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
    return standing_ == count_;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&all));
}

void Watchers::AwaitEvents() {
  const auto all = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return complete_ == count_;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&all));
}

std::vector<Arrival> Watchers::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (const auto& connection : connections_) {
    for (const auto& watcher : connection->watchers) watcher->Cancel();
  }
  std::vector<Arrival> arrivals;
  for (const auto& connection : connections_) {
    connection->thread.join();
    for (const auto& watcher : connection->watchers) {
      arrivals.insert(arrivals.end(), watcher->arrivals().begin(),
                      watcher->arrivals().end());
      event_bytes_ += watcher->event_bytes();
    }
  }
  connections_.clear();
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  return arrivals;
}

}  // namespace timecache::bench
