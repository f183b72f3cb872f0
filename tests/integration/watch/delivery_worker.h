// A worker of a consumer group that is killed at random, and what all workers
// of the group know together.

#ifndef TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_WORKER_H_
#define TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/engine/dice.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::test {

// Keys die again and again, each time with the next number as value: events are
// named by their key and that number. Fails the test where an event comes after
// it was settled, or before an earlier one of its key is.
//
// Thread-safe.
class DeliveryTally {
 public:
  using Name = std::pair<std::string, int>;

  // An event was given to somebody who has not been killed.
  void Given(const Name& name, const v1::ExpiredEvent& event)
      ABSL_LOCKS_EXCLUDED(mu_);
  // It is going to be settled by ACK: the next of its key may come.
  void Settling(const Name& name) ABSL_LOCKS_EXCLUDED(mu_);
  // `held`: by who held it until then. A member that is dead by then may settle
  // what another one has been given, and has still to read.
  void Settled(const Name& name, bool held) ABSL_LOCKS_EXCLUDED(mu_);
  void Nacked() ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until so many are settled, and lets time pass meanwhile: an event that
  // several killed workers held waits before it comes again.
  void AwaitSettled(int64_t events, absl::FunctionRef<void()> let_time_pass)
      ABSL_LOCKS_EXCLUDED(mu_);

  int64_t nacked() const ABSL_LOCKS_EXCLUDED(mu_);
  // Times that an event came again, as far as anybody read it.
  int64_t redelivered() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Event {
    uint64_t id = 0;
    uint32_t attempts = 0;
    uint32_t returns = 0;
    bool settling = false;
    bool settled = false;
    bool settled_while_held = false;
  };

  mutable absl::Mutex mu_;
  // By number, for each key.
  std::map<std::string, std::vector<Event>> events_ ABSL_GUARDED_BY(mu_);
  int64_t settled_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t nacked_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t redelivered_ ABSL_GUARDED_BY(mu_) = 0;
};

// A member of the group, and after it is killed, another one. Reads events,
// settles most of them, and forgets the others with its death.
//
// Run is called by one thread; Kill, Hurry and Stop by any.
class DeliveryWorker {
 public:
  // `tally` is not owned and must outlive the worker.
  DeliveryWorker(DeliveryTally* tally, std::shared_ptr<grpc::Channel> channel,
                 std::string name, std::string group, uint64_t seed);

  // Works until Stop.
  void Run();
  // Its stream breaks, wherever it is.
  void Kill() ABSL_LOCKS_EXCLUDED(mu_);
  // From now on it settles all that it is given.
  void Hurry() ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  int64_t lives() const { return lives_; }

 private:
  void Live(grpc::ClientContext* context);
  // Nothing, if it has been killed: then others may have the events already.
  std::vector<v1::Settlement> Take(const v1::ConsumeExpiredResponse& message)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Settle(const std::vector<v1::Settlement>& settlements);
  bool killed() const ABSL_LOCKS_EXCLUDED(mu_);

  DeliveryTally* const tally_;
  const std::unique_ptr<v1::TimeCacheService::Stub> stub_;
  const std::string name_;
  const std::string group_;
  Dice dice_;
  int64_t lives_ = 0;
  // What the events of the message at hand are called, by their ids.
  std::map<std::string, DeliveryTally::Name> names_;

  // Taken before the tally's.
  mutable absl::Mutex mu_;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mu_);
  bool killed_ ABSL_GUARDED_BY(mu_) = false;
  bool hurry_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_WORKER_H_
