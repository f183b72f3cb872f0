#include "server/log/kafka/kafka_producer.h"

#include <librdkafka/rdkafka.h>

#include <utility>

namespace timecache::server {

struct KafkaProducer::Sent {
  std::string value;
  Done done;
  SendReport report;
};

KafkaProducer::KafkaProducer(std::function<void()> on_report)
    : on_report_(std::move(on_report)) {}

absl::StatusOr<std::unique_ptr<KafkaProducer>> KafkaProducer::Open(
    const KafkaOptions& options, const std::string& topic,
    std::function<void()> on_report) {
  std::unique_ptr<KafkaProducer> producer(
      new KafkaProducer(std::move(on_report)));
  auto handle = KafkaHandle::Open(options, KafkaHandle::Kind::kProducer, topic,
                                  {}, &OnReport, producer.get());
  if (!handle.ok()) return handle.status();
  producer->handle_ = std::make_unique<KafkaHandle>(*std::move(handle));
  rd_kafka_t* const client = producer->handle_->client();
  producer->main_ = rd_kafka_queue_get_main(client);
  if (producer->on_report_) {
    rd_kafka_queue_cb_event_enable(
        producer->main_,
        [](rd_kafka_t*, void* opaque) {
          static_cast<KafkaProducer*>(opaque)->on_report_();
        },
        producer.get());
    // It is called as the queue gets something, not while it has something: a
    // broker that is down may have come into it before.
    producer->on_report_();
  }
  return producer;
}

KafkaProducer::~KafkaProducer() {
  if (handle_ == nullptr) return;
  while (rd_kafka_outq_len(handle_->client()) > 0) {
    GiveUp();
    Poll(absl::Milliseconds(10));
  }
  Poll(absl::ZeroDuration());
  rd_kafka_queue_cb_event_enable(main_, nullptr, nullptr);
  rd_kafka_queue_destroy(main_);
}

void KafkaProducer::OnReport(rd_kafka_s*, const rd_kafka_message_s* message,
                             void*) {
  std::unique_ptr<Sent> sent(static_cast<Sent*>(message->_private));
  SendReport& report = sent->report;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    report.offset = message->offset;
    rd_kafka_timestamp_type_t type;
    const int64_t append_ms = rd_kafka_message_timestamp(message, &type);
    if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && append_ms > 0) {
      report.append_us = append_ms * 1'000;
    }
  } else {
    report.status = KafkaError(message->err, "append");
    if (rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED) {
      report.stored = SendReport::Stored::kUnknown;
    }
  }
  sent->done(report, std::move(sent->value));
}

void KafkaProducer::Send(uint32_t partition, std::string value, Done done) {
  auto sent = std::make_unique<Sent>();
  sent->value = std::move(value);
  sent->done = std::move(done);
  if (rd_kafka_produce(handle_->topic(), static_cast<int32_t>(partition),
                       /*msgflags=*/0, sent->value.data(), sent->value.size(),
                       nullptr, 0, sent.get()) == 0) {
    // OnReport's.
    sent.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  sent->report.status = KafkaError(rd_kafka_last_error(), "append");
  {
    absl::MutexLock lock(&mu_);
    refused_.push_back(std::move(sent));
  }
  Wake();
}

void KafkaProducer::Poll(absl::Duration timeout) {
  rd_kafka_poll(handle_->client(),
                static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  std::vector<std::unique_ptr<Sent>> refused;
  {
    absl::MutexLock lock(&mu_);
    refused.swap(refused_);
  }
  for (const auto& sent : refused) {
    sent->done(sent->report, std::move(sent->value));
  }
}

void KafkaProducer::Wake() {
  if (on_report_) {
    on_report_();
  } else {
    rd_kafka_queue_yield(main_);
  }
}

void KafkaProducer::GiveUp() {
  rd_kafka_purge(handle_->client(),
                 RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

}  // namespace timecache::server
