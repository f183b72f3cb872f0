// Appends messages to a topic of Kafka, and reports what became of each.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_KAFKA_PRODUCER_H_
#define TIMECACHED_SERVER_LOG_KAFKA_KAFKA_PRODUCER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/log/kafka/kafka_client.h"

struct rd_kafka_queue_s;

namespace timecache::server {

// What became of a message that was sent.
struct SendReport {
  // Of an error.
  enum class Stored { kNo, kUnknown };

  // OK: acknowledged by all replicas in sync. RESOURCE_EXHAUSTED: larger than the
  // topic allows. Others: see KafkaError.
  absl::Status status;
  Stored stored = Stored::kNo;
  // Where it is, if OK; as the broker said, which may be wrong.
  int64_t offset = -1;
  // The broker's clock when it appended the message, in microseconds since the
  // Unix epoch, of a topic with LogAppendTime; otherwise 0.
  int64_t append_us = 0;
};

// Neither retries nor reorders: a message for a partition is sent when those
// before it are reported. A report comes message.timeout.ms (10 s) after Send at
// the latest, if Poll is called.
//
// Thread-safe, but for Poll: one thread at a time.
class KafkaProducer {
 public:
  // With the value, to reuse its memory.
  using Done =
      absl::AnyInvocable<void(const SendReport& report, std::string value)>;

  // `on_report` is called on a thread of librdkafka, with locks of its held, when
  // Poll has something to do: it may wake the thread that polls. May be null.
  // Errors: see CheckKafkaOptions.
  static absl::StatusOr<std::unique_ptr<KafkaProducer>> Open(
      const KafkaOptions& options, const std::string& topic,
      std::function<void()> on_report = nullptr);
  // What is not reported yet is reported now, as unknown.
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  // Copies nothing: the value stays where it is until `done`, which is called
  // once, by Poll or the destructor.
  void Send(uint32_t partition, std::string value, Done done);
  // Waits for a report, at most `timeout`, and calls the `done` of each that is
  // there. Returns at once after a Wake.
  void Poll(absl::Duration timeout);
  void Wake();
  // All messages that are not reported yet are given up: the next Poll reports
  // them.
  void GiveUp();

 private:
  struct Sent;

  explicit KafkaProducer(std::function<void()> on_report);
  static void OnReport(rd_kafka_s*, const rd_kafka_message_s* message,
                       void* producer);

  const std::function<void()> on_report_;
  std::unique_ptr<KafkaHandle> handle_;
  rd_kafka_queue_s* main_ = nullptr;

  absl::Mutex mu_;
  // Those that librdkafka did not take.
  std::vector<std::unique_ptr<Sent>> refused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_KAFKA_PRODUCER_H_
