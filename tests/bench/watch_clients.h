// Watchers of one storm, as many as wanted, that count what they get.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/bench/watch_storm.h"

namespace timecache::bench {

// When a message arrived, and how many events it held.
struct Arrival {
  absl::Time at;
  uint64_t events = 0;
};

class Watcher;

// Any number of WatchExpired streams over up to kMaxConnections connections,
// with a thread for each connection. Every watcher must get every event of the
// storm once, with its value: anything else, and a stream that ends before its
// time or does not end by the storm's give_up(), ends the program.
// Thread-safe where it says so. An idle watcher costs no time.
class Watchers {
 public:
  static constexpr int kMaxConnections = 8;

  // Opens the streams; they stand once AwaitStanding() returns.
  Watchers(const std::string& address, int count, const Storm* storm);
  ~Watchers();
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  // Until each has had its first message.
  void AwaitStanding();
  // Until each has had all events.
  void AwaitEvents();
  // Ends the streams; returns all that came with an event in it, to all of the
  // watchers, ordered by time.
  std::vector<Arrival> Stop();

  // Of all events of all watchers, on the wire. After Stop().
  uint64_t event_bytes() const { return event_bytes_; }

 private:
  friend class Watcher;

  struct Connection {
    std::unique_ptr<grpc::GenericStub> stub;
    grpc::CompletionQueue queue;
    std::vector<std::unique_ptr<Watcher>> watchers;
    std::thread thread;
  };

  static void Serve(Connection* connection);
  // From the connections' threads.
  void Standing();
  void Complete();
  bool stopping();

  const int count_;
  const Storm* const storm_;
  grpc::ByteBuffer request_;
  std::vector<std::unique_ptr<Connection>> connections_;
  uint64_t event_bytes_ = 0;
  absl::Mutex mutex_;
  int standing_ ABSL_GUARDED_BY(mutex_) = 0;
  int complete_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace timecache::bench
