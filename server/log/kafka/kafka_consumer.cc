#include "server/log/kafka/kafka_consumer.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr absl::Duration kOpenTimeout = absl::Seconds(10);
// Until an offset that a broker lacks is fetched again.
constexpr absl::Duration kMissingInterval = absl::Milliseconds(20);
// Until brokers are asked again for offsets of partitions without a leader.
constexpr absl::Duration kLeaderInterval = absl::Milliseconds(100);

using KafkaProperties = std::map<std::string, std::string>;

// A process may have one for each of many partitions. A fetch brings at least one
// batch, however small these are.
const KafkaProperties& OnePartition() {
  static const auto* const properties =
      new KafkaProperties{{"queued.max.messages.kbytes", "4096"},
                          {"fetch.max.bytes", "4194304"},
                          {"fetch.message.max.bytes", "1048576"}};
  return *properties;
}

int Milliseconds(absl::Duration timeout) {
  return static_cast<int>(absl::ToInt64Milliseconds(
      std::min(absl::Ceil(timeout, absl::Milliseconds(1)), absl::Hours(1))));
}

}  // namespace

KafkaConsumer::KafkaConsumer(std::string topic,
                             std::function<void()> on_message,
                             std::function<void(int, absl::string_view)> log)
    : topic_(std::move(topic)),
      on_message_(std::move(on_message)),
      log_(std::move(log)) {}

absl::StatusOr<std::unique_ptr<KafkaConsumer>> KafkaConsumer::Open(
    const KafkaOptions& options, const std::string& topic,
    std::function<void()> on_message, std::optional<uint32_t> only) {
  std::unique_ptr<KafkaConsumer> consumer(
      new KafkaConsumer(topic, std::move(on_message), options.log));
  auto handle = KafkaHandle::Open(options, KafkaHandle::Kind::kConsumer, topic,
                                  only ? OnePartition() : KafkaProperties());
  if (!handle.ok()) return handle.status();
  consumer->handle_ = std::make_unique<KafkaHandle>(*std::move(handle));
  if (absl::Status status = consumer->CountPartitions(only); !status.ok()) {
    return status;
  }
  consumer->queue_ = consumer->MakeQueue();
  consumer->deletes_ = consumer->MakeQueue();
  return consumer;
}

rd_kafka_queue_s* KafkaConsumer::MakeQueue() {
  rd_kafka_queue_t* const queue = rd_kafka_queue_new(handle_->client());
  if (on_message_) {
    rd_kafka_queue_cb_event_enable(
        queue,
        [](rd_kafka_t*, void* opaque) {
          static_cast<KafkaConsumer*>(opaque)->on_message_();
        },
        this);
  }
  return queue;
}

KafkaConsumer::~KafkaConsumer() {
  if (queue_ == nullptr) return;
  for (rd_kafka_queue_t* const queue : {queue_, deletes_}) {
    rd_kafka_queue_cb_event_enable(queue, nullptr, nullptr);
  }
  for (uint32_t p = 0; p < partitions_; ++p) Stop(p);
  rd_kafka_queue_destroy(queue_);
  rd_kafka_queue_destroy(deletes_);
}

absl::Status KafkaConsumer::CountPartitions(std::optional<uint32_t> only) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(handle_->client(), /*all_topics=*/0, handle_->topic(),
                        &metadata, Milliseconds(kOpenTimeout));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError(error, topic_);
  absl::Status status = absl::NotFoundError(topic_);
  if (metadata->topic_cnt == 1) {
    status = KafkaError(metadata->topics[0].err, topic_);
    partitions_ = static_cast<uint32_t>(metadata->topics[0].partition_cnt);
    if (status.ok() && only && *only >= partitions_) {
      status = absl::NotFoundError(absl::StrCat(topic_, " has ", partitions_,
                                                " partitions, and no ", *only));
    }
    if (only) {
      first_partition_ = *only;
      partitions_ = 1;
    }
    started_.resize(partitions_);
    next_.resize(partitions_);
  }
  rd_kafka_metadata_destroy(metadata);
  return status;
}

absl::StatusOr<std::vector<int64_t>> KafkaConsumer::FirstOffsets(
    absl::Duration timeout) const {
  return Offsets(RD_KAFKA_OFFSET_BEGINNING, timeout);
}

absl::StatusOr<std::vector<int64_t>> KafkaConsumer::EndOffsets(
    absl::Duration timeout) const {
  return Offsets(RD_KAFKA_OFFSET_END, timeout);
}

// Of a topic that was just made the brokers choose leaders for some seconds.
absl::StatusOr<std::vector<int64_t>> KafkaConsumer::Offsets(
    int64_t which, absl::Duration timeout) const {
  const auto deadline =
      SteadyClock::now() + absl::ToChronoMilliseconds(timeout);
  while (true) {
    const absl::Duration left = absl::FromChrono(deadline - SteadyClock::now());
    auto offsets = AskOffsets(which, std::max(left, kLeaderInterval));
    if (!absl::IsUnavailable(offsets.status()) || left < kLeaderInterval) {
      return offsets;
    }
    absl::SleepFor(kLeaderInterval);
  }
}

// Brokers take -2 and -1, librdkafka's numbers of these two, for a time.
absl::StatusOr<std::vector<int64_t>> KafkaConsumer::AskOffsets(
    int64_t which, absl::Duration timeout) const {
  const std::unique_ptr<rd_kafka_topic_partition_list_t,
                        decltype(&rd_kafka_topic_partition_list_destroy)>
      list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions_)),
           &rd_kafka_topic_partition_list_destroy);
  for (uint32_t p = 0; p < partitions_; ++p) {
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), InTopic(p))
        ->offset = which;
  }
  const rd_kafka_resp_err_t error = rd_kafka_offsets_for_times(
      handle_->client(), list.get(), Milliseconds(timeout));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError(error, topic_);
  std::vector<int64_t> offsets(partitions_);
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& element = list->elems[i];
    if (element.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return KafkaError(element.err, topic_);
    }
    if (element.offset < 0) {
      return absl::UnavailableError("a broker knows no offset");
    }
    offsets[static_cast<uint32_t>(element.partition) - first_partition_] =
        element.offset;
  }
  return offsets;
}

absl::StatusOr<KafkaConsumer::Bounds> KafkaConsumer::BoundsOf(
    uint32_t partition, absl::Duration timeout) const {
  Bounds bounds;
  const rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
      handle_->client(), topic_.c_str(), InTopic(partition), &bounds.first,
      &bounds.end, Milliseconds(timeout));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError(error, topic_);
  return bounds;
}

int64_t KafkaConsumer::CachedEndOffset(uint32_t partition) const {
  int64_t low = -1;
  int64_t high = -1;
  rd_kafka_get_watermark_offsets(handle_->client(), topic_.c_str(),
                                 InTopic(partition), &low, &high);
  return high < 0 ? -1 : high;
}

absl::Status KafkaConsumer::Start(uint32_t partition, int64_t offset) {
  if (rd_kafka_consume_start_queue(handle_->topic(), InTopic(partition), offset,
                                   queue_) == 0) {
    started_[partition] = true;
    next_[partition] = offset;
    return absl::OkStatus();
  }
  return KafkaError(rd_kafka_last_error(), topic_);
}

void KafkaConsumer::Stop(uint32_t partition) {
  missing_.erase(partition);
  if (!started_[partition]) return;
  started_[partition] = false;
  rd_kafka_consume_stop(handle_->topic(), InTopic(partition));
}

size_t KafkaConsumer::Poll(
    absl::Duration timeout,
    absl::FunctionRef<void(const KafkaMessage& message)> visit,
    size_t messages_max) {
  if (!missing_.empty()) {
    FetchMissing();
    timeout = std::min(timeout, kMissingInterval);
  }
  std::array<rd_kafka_message_t*, kPollMessagesMax> messages;
  // A batch is waited for until it is full, or the time is over.
  ssize_t count = rd_kafka_consume_batch_queue(queue_, Milliseconds(timeout),
                                               messages.data(), 1);
  if (count == 1 && messages_max > 1) {
    const ssize_t more = rd_kafka_consume_batch_queue(
        queue_, 0, messages.data() + 1,
        std::min(messages_max, kPollMessagesMax) - 1);
    count += std::max<ssize_t>(more, 0);
  }
  // Errors of the client as a whole, which its log has, too.
  rd_kafka_poll(handle_->client(), 0);
  PollDeletes();
  for (ssize_t i = 0; i < count; ++i) {
    rd_kafka_message_t* const message = messages[static_cast<size_t>(i)];
    KafkaMessage visited;
    visited.partition =
        static_cast<uint32_t>(message->partition) - first_partition_;
    visited.offset = message->offset;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      visited.append_us = rd_kafka_message_timestamp(message, nullptr) * 1'000;
      visited.value = absl::string_view(
          static_cast<const char*>(message->payload), message->len);
    } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      visited.is_end = true;
    } else {
      visited.status = KafkaError(message->err, topic_);
    }
    if (visited.status.ok()) {
      next_[visited.partition] = message->offset + (visited.is_end ? 0 : 1);
      missing_.erase(visited.partition);
    }
    if (!absl::IsOutOfRange(visited.status) || IsGone(visited.partition)) {
      visit(visited);
    }
    rd_kafka_message_destroy(message);
  }
  return count < 0 ? 0 : static_cast<size_t>(count);
}

bool KafkaConsumer::IsGone(uint32_t partition) {
  const auto now = SteadyClock::now();
  Missing& missing =
      missing_.try_emplace(partition, Missing{now, {}}).first->second;
  if (now - missing.since >= absl::ToChronoMilliseconds(kStaleLeader)) {
    return true;
  }
  missing.fetch_at = now + absl::ToChronoMilliseconds(kMissingInterval);
  return false;
}

void KafkaConsumer::FetchMissing() {
  const auto now = SteadyClock::now();
  for (auto& [partition, missing] : missing_) {
    if (!missing.fetch_at.has_value() || *missing.fetch_at > now) continue;
    missing.fetch_at.reset();
    // After an error there is no fetch any more, but it has to be stopped.
    rd_kafka_consume_stop(handle_->topic(), InTopic(partition));
    const absl::Status status = Start(partition, next_[partition]);
    if (!status.ok()) {
      missing.fetch_at = now + absl::ToChronoMilliseconds(kMissingInterval);
    }
  }
}

void KafkaConsumer::Wake() { rd_kafka_queue_yield(queue_); }

void KafkaConsumer::DeleteBefore(uint32_t partition, int64_t offset) {
  rd_kafka_topic_partition_list_t* const offsets =
      rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(offsets, topic_.c_str(), InTopic(partition))
      ->offset = offset;
  rd_kafka_DeleteRecords_t* records = rd_kafka_DeleteRecords_new(offsets);
  rd_kafka_topic_partition_list_destroy(offsets);
  rd_kafka_DeleteRecords(handle_->client(), &records, 1, nullptr, deletes_);
  rd_kafka_DeleteRecords_destroy(records);
}

void KafkaConsumer::PollDeletes() {
  while (rd_kafka_event_t* const event = rd_kafka_queue_poll(deletes_, 0)) {
    absl::Status status =
        KafkaError(rd_kafka_event_error(event), "DeleteRecords");
    if (const auto* result = rd_kafka_event_DeleteRecords_result(event);
        status.ok() && result != nullptr) {
      const auto* offsets = rd_kafka_DeleteRecords_result_offsets(result);
      for (int i = 0; i < offsets->cnt; ++i) {
        status.Update(KafkaError(offsets->elems[i].err, "DeleteRecords"));
      }
    }
    rd_kafka_event_destroy(event);
    if (!status.ok() && log_) {
      log_(4, absl::StrCat(topic_, ": ", status.message()));
    }
  }
}

}  // namespace timecache::server
