// A watcher of a storm of deaths that breaks its connection at random and goes
// on by its last resume token.

#ifndef TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_STREAM_H_
#define TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/watch/delivery_storm.h"
#include "tests/support/engine/dice.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::test {

// Checks every event as it comes: what it says, that it comes once, in order of
// death, and not after a watermark that said that it had come.
//
// Used by one thread.
class DeliveryStream {
 public:
  // `storm` is not owned and must outlive the stream. Connects: all that dies
  // from now on is for it.
  DeliveryStream(DeliveryStorm* storm, std::shared_ptr<grpc::Channel> channel,
                 int id, uint64_t seed);

  // Reads until the storm is over, over any number of breaks.
  void Run();

  // Of all connections.
  int64_t delivered() const { return delivered_; }
  int64_t lost() const { return lost_; }
  int64_t resumes() const { return resumes_; }

 private:
  void Connect();
  // Ends the connection in the middle of what it says.
  void Break();
  void Check(const v1::WatchExpiredResponse& message);
  void CheckEvent(const v1::ExpiredEvent& event);

  DeliveryStorm* const storm_;
  const std::unique_ptr<v1::TimeCacheService::Stub> stub_;
  const int id_;
  Dice dice_;

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchExpiredResponse>> reader_;
  // Used again, as that saves allocations.
  v1::WatchExpiredResponse message_;
  std::string token_;
  int64_t watermark_us_ = INT64_MIN;
  int64_t death_us_ = INT64_MIN;
  // Whether the event with each number has come.
  std::vector<bool> seen_;
  int64_t delivered_ = 0;
  int64_t lost_ = 0;
  int64_t resumes_ = 0;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_STREAM_H_
