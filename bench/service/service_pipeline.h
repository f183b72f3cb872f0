// The load of one Pipeline stream, in raw messages.

#ifndef TIMECACHED_BENCH_SERVICE_SERVICE_PIPELINE_H_
#define TIMECACHED_BENCH_SERVICE_SERVICE_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "bench/service/service_caller.h"
#include "bench/service/service_load.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace timecache::bench {

// A message of kOperations puts or gets, built once: sending it costs no more
// than the keys that are written into it anew. Not thread-safe.
class PipelineMessage {
 public:
  explicit PipelineMessage(bool is_put);

  // Where the keys stand, kKeyBytes each. To be written only while no buffer is
  // being sent.
  const std::vector<char*>& keys() const { return keys_; }
  // Points into the message.
  const grpc::ByteBuffer& buffer() const { return buffer_; }

 private:
  std::string bytes_;
  std::vector<char*> keys_;
  grpc::ByteBuffer buffer_;
};

// One stream with `in_flight` messages on their way or unanswered. Thread-safe.
class PipelineCaller final
    : public Caller,
      public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  PipelineCaller(Turn* turn, uint64_t seed, grpc::GenericStub* stub,
                 bool is_put, int in_flight);

  void Start() override;
  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnDone(const grpc::Status& status) override;

 private:
  // One is free, or unanswered since `began`.
  struct Slot {
    explicit Slot(bool is_put) : message(is_put) {}
    PipelineMessage message;
    Clock::time_point began;
  };

  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Check();

  grpc::GenericStub* const stub_;
  const bool is_put_;
  grpc::ClientContext context_;
  // Used by the one read that is in flight.
  grpc::ByteBuffer response_;
  std::optional<size_t> first_bytes_;

  absl::Mutex mu_;
  // Used in turn; [answered_, sent_) are unanswered.
  std::vector<std::unique_ptr<Slot>> slots_ ABSL_GUARDED_BY(mu_);
  size_t sent_ ABSL_GUARDED_BY(mu_) = 0;
  size_t answered_ ABSL_GUARDED_BY(mu_) = 0;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_SERVICE_PIPELINE_H_
