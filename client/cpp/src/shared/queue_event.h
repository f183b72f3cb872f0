// What completion queues give back. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_SHARED_QUEUE_EVENT_H_
#define TIMECACHED_CLIENT_CPP_SRC_SHARED_QUEUE_EVENT_H_

#include <memory>

#include "client/cpp/src/rpc/steady_time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"

namespace timecache {

// A tag.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  virtual void Happened(bool ok) = 0;
};

// Returns a thread that polls the queue. Not after its shutdown.
class QueueWake final : public QueueEvent {
 public:
  static void Send(grpc::CompletionQueue& queue) {
    auto wake = std::make_unique<QueueWake>();
    QueueWake* const tag = wake.release();
    tag->alarm_.Set(&queue, gpr_now(GPR_CLOCK_MONOTONIC),
                    static_cast<QueueEvent*>(tag));
  }
  void Happened(bool /*ok*/) override {
    const std::unique_ptr<QueueWake> ends(this);
  }

 private:
  grpc::Alarm alarm_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_SHARED_QUEUE_EVENT_H_
