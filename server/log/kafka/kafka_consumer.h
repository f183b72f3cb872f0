// Reads the messages of a topic of Kafka, from chosen offsets.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_KAFKA_CONSUMER_H_
#define TIMECACHED_SERVER_LOG_KAFKA_KAFKA_CONSUMER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/log/kafka/kafka_client.h"

struct rd_kafka_queue_s;

namespace timecache::server {

// A message; or the end of a partition; or an error of it. After OUT_OF_RANGE (the
// offset is not in the log) none comes until it is started again; after others reading
// goes on by itself. A broker that was the leader, stood still, and does not know yet
// that it is not any more lacks what its successor has: so OUT_OF_RANGE comes only
// once the offset has been missing for kStaleLeader.
struct KafkaMessage {
  absl::Status status;
  uint32_t partition = 0;
  // Nothing is at the offset yet.
  bool is_end = false;
  int64_t offset = -1;
  // The broker's clock when it appended the message, in microseconds since the
  // Unix epoch, of a topic with LogAppendTime; otherwise the producer's.
  int64_t append_us = 0;
  // Valid during the visit.
  absl::string_view value;
};

// Belongs to no group and stores no offsets. Holds what was fetched ahead, some
// 50 MiB by default (queued.max.messages.kbytes); of one partition some 8 MiB.
//
// Thread-safe, but for Start, Stop and Poll: one thread at a time.
class KafkaConsumer {
 public:
  // `on_message`: as KafkaProducer's on_report. `only`: a partition of the topic, which
  // is here the only one, and has number 0; none: all have theirs. NOT_FOUND: no such
  // topic, or partition. UNAVAILABLE: no broker answers in 10 s. See also
  // CheckKafkaOptions.
  static absl::StatusOr<std::unique_ptr<KafkaConsumer>> Open(
      const KafkaOptions& options, const std::string& topic,
      std::function<void()> on_message = nullptr,
      std::optional<uint32_t> only = std::nullopt);
  ~KafkaConsumer();
  KafkaConsumer(const KafkaConsumer&) = delete;
  KafkaConsumer& operator=(const KafkaConsumer&) = delete;

  // Of the topic, when it was opened; or 1.
  uint32_t partitions() const { return partitions_; }
  // The number that partition 0 has in the topic.
  uint32_t first_partition() const { return first_partition_; }

  // The offset of each partition's first message, or past its last one. Asks the
  // brokers: UNAVAILABLE if they do not answer in time.
  absl::StatusOr<std::vector<int64_t>> FirstOffsets(
      absl::Duration timeout) const;
  absl::StatusOr<std::vector<int64_t>> EndOffsets(absl::Duration timeout) const;
  // Both of one.
  struct Bounds {
    int64_t first = 0;
    int64_t end = 0;
  };
  absl::StatusOr<Bounds> BoundsOf(uint32_t partition,
                                  absl::Duration timeout) const;
  // As of the last fetch; -1 before the first.
  int64_t CachedEndOffset(uint32_t partition) const;

  // Begins to fetch a partition that is not started: messages from the offset on
  // come out of Poll.
  absl::Status Start(uint32_t partition, int64_t offset);
  // Waits for the fetch to end. Messages of it that Poll has not visited are gone.
  void Stop(uint32_t partition);

  static constexpr size_t kPollMessagesMax = 256;
  static constexpr absl::Duration kStaleLeader = absl::Seconds(5);
  // Visits what is there, at most so many messages, after waiting for the first at
  // most `timeout`, or until a Wake. Returns how many. A visitor may start and stop
  // partitions. Asks no broker: never waits longer.
  size_t Poll(absl::Duration timeout,
              absl::FunctionRef<void(const KafkaMessage& message)> visit,
              size_t messages_max = kPollMessagesMax);
  // Ends a Poll that waits, or the next one.
  void Wake();

  // Deletes the messages before the offset, some time. Errors are logged alone, by
  // Poll. A broker answers when its replicas have deleted them, too, which takes
  // half a second, and meanwhile nothing else on the connection: so it is the
  // consumer's.
  void DeleteBefore(uint32_t partition, int64_t offset);

 private:
  KafkaConsumer(std::string topic, std::function<void()> on_message,
                std::function<void(int, absl::string_view)> log);
  rd_kafka_queue_s* MakeQueue();
  void PollDeletes();
  // Whether the next offset of a partition, which a broker lacks, is not in the log;
  // otherwise it is fetched again soon.
  bool IsGone(uint32_t partition);
  void FetchMissing();
  absl::Status CountPartitions(std::optional<uint32_t> only);
  int32_t InTopic(uint32_t partition) const {
    return static_cast<int32_t>(first_partition_ + partition);
  }
  absl::StatusOr<std::vector<int64_t>> Offsets(int64_t which,
                                               absl::Duration timeout) const;
  absl::StatusOr<std::vector<int64_t>> AskOffsets(int64_t which,
                                                  absl::Duration timeout) const;

  const std::string topic_;
  const std::function<void()> on_message_;
  const std::function<void(int, absl::string_view)> log_;
  std::unique_ptr<KafkaHandle> handle_;
  rd_kafka_queue_s* queue_ = nullptr;
  // Of answers to DeleteBefore.
  rd_kafka_queue_s* deletes_ = nullptr;
  uint32_t first_partition_ = 0;
  uint32_t partitions_ = 0;
  std::vector<bool> started_;
  // The next offset of each partition.
  std::vector<int64_t> next_;
  // What a broker has said to lack, by partition.
  struct Missing {
    std::chrono::steady_clock::time_point since;
    // None while it is fetched.
    std::optional<std::chrono::steady_clock::time_point> fetch_at;
  };
  std::map<uint32_t, Missing> missing_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_KAFKA_CONSUMER_H_
