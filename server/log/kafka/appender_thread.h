// The thread that handles what brokers answer to the owner of a journal.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_APPENDER_THREAD_H_
#define TIMECACHED_SERVER_LOG_KAFKA_APPENDER_THREAD_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_cond_var.h"
#include "server/log/kafka/kafka_consumer.h"
#include "server/log/kafka/kafka_producer.h"
#include "server/log/kafka/partition_appender.h"

namespace timecache::server {

// Thread-safe, but for what AppenderIo says. Costs a thread.
class AppenderThread final : public AppenderIo {
 public:
  // `only` and errors: see KafkaConsumer::Open.
  static absl::StatusOr<std::unique_ptr<AppenderThread>> Open(
      const KafkaOptions& options, const std::string& topic,
      std::optional<uint32_t> only = std::nullopt);
  // Runs what was given to After before.
  ~AppenderThread() override;

  void Send(uint32_t partition, std::string value,
            KafkaProducer::Done done) override;
  void DeleteBefore(uint32_t partition, uint64_t offset) override;
  void ReadBack(uint32_t partition, uint64_t from, uint64_t to, Visit visit,
                ReadDone done) override;
  void After(absl::Duration delay, absl::AnyInvocable<void()> run) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Log(const std::string& text) override;

  // Nothing waits any more: messages that are not reported are given up, reads end
  // (CANCELLED), what was given to After runs at once.
  void GiveUp() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsCurrent() const {
    return std::this_thread::get_id() == thread_.get_id();
  }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Read {
    uint64_t from;
    uint64_t to;
    Visit visit;
    ReadDone done;
    // When the partition's end is asked for, if nothing comes until then, and how
    // often it was too low.
    TimePoint check_at;
    int checks = 0;
  };

  AppenderThread(const KafkaOptions& options, std::string topic)
      : log_(options.log), topic_(std::move(topic)) {}
  KafkaProducer& producer(uint32_t partition) {
    return *producers_[partition % producers_.size()];
  }
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for something to do; false at the end.
  bool Await(std::vector<absl::AnyInvocable<void()>>* due)
      ABSL_LOCKS_EXCLUDED(mu_);
  TimePoint NextTime() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnMessage(const KafkaMessage& message);
  void OnError(const KafkaMessage& message, const Read& read);
  void CheckReads();
  void EndRead(uint32_t partition, const absl::Status& status);

  const std::function<void(int, absl::string_view)> log_;
  const std::string topic_;

  absl::Mutex mu_;
  SteadyCondVar wake_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::multimap<TimePoint, absl::AnyInvocable<void()>> timers_
      ABSL_GUARDED_BY(mu_);

  // Of the thread.
  std::map<uint32_t, Read> reads_;
  // Of the partitions p with p % n = i.
  std::vector<std::unique_ptr<KafkaProducer>> producers_;
  std::unique_ptr<KafkaConsumer> consumer_;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_APPENDER_THREAD_H_
