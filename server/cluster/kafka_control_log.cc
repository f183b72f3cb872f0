#include "server/cluster/kafka_control_log.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

constexpr absl::Duration kOffsetsTimeout = absl::Seconds(10);
constexpr absl::Duration kMinAppendTimeout = absl::Milliseconds(500);

}  // namespace

absl::StatusOr<std::unique_ptr<KafkaControlLog>> KafkaControlLog::Open(
    KafkaOptions options, const std::string& topic, absl::Duration lease) {
  // A heartbeat that is older than a lease is of no use, and the next one has to wait
  // for it.
  const std::string timeout_ms = absl::StrCat(
      absl::ToInt64Milliseconds(std::max(lease, kMinAppendTimeout)));
  options.properties["message.timeout.ms"] = timeout_ms;
  options.properties["request.timeout.ms"] = timeout_ms;
  // Nodes that find the brokers again at different times seem silent to each other.
  options.properties["reconnect.backoff.ms"] = "50";
  options.properties["reconnect.backoff.max.ms"] = "200";

  std::unique_ptr<KafkaControlLog> log(new KafkaControlLog());
  const auto wake = [log = log.get()] { log->Wake(); };
  auto consumer = KafkaConsumer::Open(options, topic, wake);
  if (!consumer.ok()) return consumer.status();
  log->consumer_ = *std::move(consumer);
  if (log->consumer_->partitions() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("topic ", topic, " must have one partition, not ",
                     log->consumer_->partitions()));
  }
  auto producer = KafkaProducer::Open(options, topic, wake);
  if (!producer.ok()) return producer.status();
  log->producer_ = *std::move(producer);
  const auto first = log->consumer_->FirstOffsets(kOffsetsTimeout);
  if (!first.ok()) return first.status();
  if (absl::Status status = log->consumer_->Start(0, (*first)[0]);
      !status.ok()) {
    return status;
  }
  return log;
}

bool KafkaControlLog::Append(const ControlRecord& record) {
  producer_->Poll(absl::ZeroDuration());
  if (on_its_way_) return false;
  on_its_way_ = true;
  producer_->Send(
      0, record.SerializeAsString(),
      [this](const SendReport&, const std::string&) { on_its_way_ = false; });
  return true;
}

absl::StatusOr<std::vector<ControlEntry>> KafkaControlLog::Poll(
    absl::Duration timeout) {
  auto entries = Read();
  if (!entries.ok() || !entries->empty()) return entries;
  AwaitWake(timeout);
  return Read();
}

absl::StatusOr<std::vector<ControlEntry>> KafkaControlLog::Read() {
  std::vector<ControlEntry> entries;
  const auto visit = [&](const KafkaMessage& message) {
    if (absl::IsOutOfRange(message.status)) {
      status_ = absl::DataLossError(
          absl::StrCat("the control log is not the one that was read before: ",
                       message.status.message()));
    }
    ControlEntry entry;
    entry.offset = message.offset;
    entry.append_time_ms = message.append_us / 1'000;
    // All nodes leave out what is no record; the end of the log is none, either.
    if (message.status.ok() &&
        entry.record.ParseFromArray(message.value.data(),
                                    static_cast<int>(message.value.size())) &&
        !entry.record.node().empty()) {
      entries.push_back(std::move(entry));
    }
  };
  consumer_->Poll(absl::ZeroDuration(), visit);
  producer_->Poll(absl::ZeroDuration());
  if (!status_.ok()) return status_;
  return entries;
}

void KafkaControlLog::AwaitWake(absl::Duration timeout) {
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(timeout);
  absl::MutexLock lock(&mu_);
  while (!wake_ && std::chrono::steady_clock::now() < deadline) {
    woken_.WaitUntil(&mu_, deadline);
  }
  wake_ = false;
}

void KafkaControlLog::Wake() {
  absl::MutexLock lock(&mu_);
  wake_ = true;
  woken_.Signal();
}

}  // namespace timecache::server
