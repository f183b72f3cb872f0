#include "server/log/kafka/journal_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr absl::Duration kBrokerTimeout = absl::Seconds(10);
// Between two looks at whether the journal was stopped.
constexpr absl::Duration kReadInterval = absl::Milliseconds(100);
// The owner may trim while a reader looks for the first message.
constexpr int kBeginAttempts = 5;
// So a call holds some MiB.
constexpr size_t kSomeMessages = 16;

int64_t SteadyUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             SteadyClock::now().time_since_epoch())
      .count();
}

}  // namespace

JournalReader::JournalReader(std::unique_ptr<KafkaConsumer> consumer)
    : consumer_(std::move(consumer)), parts_(consumer_->partitions()) {}

absl::StatusOr<std::unique_ptr<JournalReader>> JournalReader::Open(
    const KafkaOptions& options, const std::string& topic,
    const std::vector<int64_t>& begins, std::optional<uint32_t> only) {
  auto consumer =
      KafkaConsumer::Open(options, topic, /*on_message=*/nullptr, only);
  if (!consumer.ok()) return consumer.status();
  std::unique_ptr<JournalReader> reader(
      new JournalReader(*std::move(consumer)));
  absl::Status status;
  for (int i = 0; i < kBeginAttempts; ++i) {
    status = reader->FindBegins(begins);
    if (status.ok()) status = reader->ReadFirstMessages();
    if (!absl::IsOutOfRange(status)) break;
  }
  if (!status.ok()) return status;
  for (uint32_t p = 0; p < reader->partitions(); ++p) {
    Part& part = reader->parts_[p];
    part.first = part.filter.first();
    part.next = part.filter.next();
    part.log_id = part.filter.log_id();
    part.position = part.begin;
    status = reader->consumer_->Start(p, part.begin);
    if (!status.ok()) return status;
  }
  return reader;
}

absl::Status JournalReader::FindBegins(const std::vector<int64_t>& least) {
  const auto begins = consumer_->FirstOffsets(kBrokerTimeout);
  if (!begins.ok()) return begins.status();
  const auto ends = consumer_->EndOffsets(kBrokerTimeout);
  if (!ends.ok()) return ends.status();
  for (uint32_t p = 0; p < partitions(); ++p) {
    parts_[p].begin = std::max((*begins)[p], least.empty() ? 0 : least[p]);
    parts_[p].end = (*ends)[p];
    if (parts_[p].begin > 0 && parts_[p].begin >= parts_[p].end) {
      return absl::DataLossError(
          absl::StrCat("partition ", first_partition() + p,
                       " has lost all its messages, as by a retention"));
    }
  }
  return absl::OkStatus();
}

// Of partitions of which something was deleted: where they begin is in it.
absl::Status JournalReader::ReadFirstMessages() {
  size_t missing = 0;
  for (uint32_t p = 0; p < partitions(); ++p) {
    if (parts_[p].begin == 0) continue;
    ++missing;
    if (absl::Status status = consumer_->Start(p, parts_[p].begin);
        !status.ok()) {
      return status;
    }
  }
  std::vector<bool> found(partitions());
  absl::Status status;
  const auto deadline =
      SteadyClock::now() + absl::ToChronoMilliseconds(kBrokerTimeout);
  while (missing > 0 && status.ok()) {
    if (SteadyClock::now() > deadline) {
      status = absl::UnavailableError("no broker sends the first message");
      break;
    }
    consumer_->Poll(kReadInterval, [&](const KafkaMessage& message) {
      if (found[message.partition] || message.is_end || !status.ok()) return;
      if (!message.status.ok()) {
        if (!absl::IsUnavailable(message.status)) status = message.status;
        return;
      }
      found[message.partition] = true;
      --missing;
      consumer_->Stop(message.partition);
      status = parts_[message.partition].filter.BeginAt(
          static_cast<uint64_t>(message.offset), message.value);
    });
  }
  for (uint32_t p = 0; p < partitions(); ++p) consumer_->Stop(p);
  return status;
}

uint64_t JournalReader::bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.bytes;
  return bytes;
}

uint64_t JournalReader::lag() const {
  uint64_t lag = 0;
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    lag += static_cast<uint64_t>(
        std::max<int64_t>(KnownEnd(p) - parts_[p].position, 0));
  }
  return lag;
}

// A message that is left was appended after the last one that was read, and after
// none was left.
absl::Duration JournalReader::LagAge(absl::Time now) const {
  absl::Duration most = absl::ZeroDuration();
  const int64_t steady_us = SteadyUs();
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    if (KnownEnd(p) <= part.position) continue;
    absl::Duration age = absl::InfiniteDuration();
    if (const int64_t append_us = part.append_us; append_us > 0) {
      age = now - absl::FromUnixMicros(append_us);
    }
    if (const int64_t caught_up_us = part.caught_up_us; caught_up_us > 0) {
      age = std::min(age, absl::Microseconds(steady_us - caught_up_us));
    }
    most = std::max(most, age);
  }
  return most;
}

void JournalReader::NoteCaughtUp() {
  const int64_t steady_us = SteadyUs();
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    if (parts_[p].position >= KnownEnd(p)) parts_[p].caught_up_us = steady_us;
  }
}

absl::Status JournalReader::Read(const std::vector<int64_t>& last,
                                 Journal::Visitor visit) {
  if (stashed_.has_value()) {
    stashed_->message.value = stashed_->value;
    Handle(stashed_->message, last, visit);
    stashed_.reset();
  }
  std::vector<int64_t> ends = last;
  for (int64_t& end : ends) ++end;
  for (uint32_t p = static_cast<uint32_t>(ends.size()); p < partitions(); ++p) {
    ends.push_back(KnownEnd(p));
  }
  while (status_.ok() && !HasRead(ends)) {
    if (stopped_) return absl::CancelledError("the journal was stopped");
    if (last.empty() && woken_) return absl::OkStatus();
    consumer_->Poll(kReadInterval, [&](const KafkaMessage& message) {
      Handle(message, last, visit);
    });
  }
  if (status_.ok() && !std::exchange(complete_, true)) {
    for (uint32_t p = 0; p < partitions(); ++p) {
      status_.Update(CheckTrimmed(p));
    }
  }
  NoteCaughtUp();
  return status_;
}

absl::Status JournalReader::ReadSome(absl::Duration timeout,
                                     Journal::Visitor visit) {
  if (status_.ok()) {
    consumer_->Poll(
        timeout,
        [&](const KafkaMessage& message) {
          if (!ends_.empty() && message.status.ok() && !message.is_end &&
              message.offset == ends_[message.partition] &&
              message.value != end_message_) {
            status_ = absl::DataLossError(absl::StrCat(
                "partition ", first_partition() + message.partition,
                " has another message at offset ", message.offset,
                " than a broker has acknowledged there"));
          }
          Handle(message, ends_, visit);
        },
        kSomeMessages);
  }
  return status_;
}

int64_t JournalReader::KnownEnd(uint32_t partition) const {
  return std::max(parts_[partition].end, consumer_->CachedEndOffset(partition));
}

bool JournalReader::HasRead(const std::vector<int64_t>& ends) const {
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    if (parts_[p].position < ends[p]) return false;
  }
  return true;
}

void JournalReader::Handle(const KafkaMessage& message,
                           const std::vector<int64_t>& last,
                           Journal::Visitor visit) {
  if (!status_.ok()) return;
  if (!message.status.ok()) {
    status_ = ErrorOf(message);
    return;
  }
  Part& part = parts_[message.partition];
  if (message.offset < part.position ||
      (!last.empty() && message.offset > last[message.partition])) {
    return;
  }
  if (message.is_end) {
    part.position = message.offset;
    return;
  }
  status_ =
      part.filter.Add(static_cast<uint64_t>(message.offset), message.value,
                      [&](uint64_t position, absl::string_view record) {
                        return visit(message.partition, position, record);
                      });
  if (part.filter.next() != part.next) {
    last_append_us_ = std::max<int64_t>(last_append_us_, message.append_us);
  }
  part.append_us = message.append_us;
  part.position = message.offset + 1;
  part.first = part.filter.first();
  part.next = part.filter.next();
  part.log_id = part.filter.log_id();
  part.bytes = part.filter.bytes();
  ++read_;
}

// OK: reading goes on by itself, also where a broker that has just started does not
// know the topic yet.
absl::Status JournalReader::ErrorOf(const KafkaMessage& message) const {
  if (!absl::IsOutOfRange(message.status)) return absl::OkStatus();
  const int64_t position = parts_[message.partition].position;
  const auto bounds = consumer_->BoundsOf(message.partition, kBrokerTimeout);
  if (bounds.ok() && bounds->first > position) {
    return absl::OutOfRangeError(absl::StrCat(
        "the owner has trimmed partition ",
        first_partition() + message.partition, " up to offset ", bounds->first,
        ", and this node had read up to ", position));
  }
  return absl::DataLossError(
      absl::StrCat("partition ", first_partition() + message.partition,
                   " has no offset ", position,
                   ", up to which it was read: the topic was made anew, or its "
                   "brokers have lost messages"));
}

absl::Status JournalReader::CheckTrimmed(uint32_t partition) const {
  const Part& part = parts_[partition];
  if (static_cast<uint64_t>(part.begin) <= part.filter.trimmed()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "partition ", first_partition() + partition, " begins at offset ",
      part.begin, ", but its owners trimmed it up to ", part.filter.trimmed(),
      " alone: messages between are lost, as by a retention"));
}

LogFilter JournalReader::TakeFilter(uint32_t partition) {
  consumer_->Stop(partition);
  return std::move(parts_[partition].filter);
}

absl::Status JournalReader::Finish(uint32_t partition) {
  consumer_->Stop(partition);
  status_.Update(CheckTrimmed(partition));
  return status_;
}

void JournalReader::AwaitMore(absl::Duration timeout) {
  const auto deadline =
      SteadyClock::now() +
      absl::ToChronoMicroseconds(std::min(timeout, absl::Hours(1)));
  NoteCaughtUp();
  while (!woken_.exchange(false) && !stopped_ && status_.ok() &&
         !stashed_.has_value()) {
    const absl::Duration left = absl::FromChrono(deadline - SteadyClock::now());
    if (left <= absl::ZeroDuration()) return;
    consumer_->Poll(
        left,
        [&](const KafkaMessage& message) {
          if (message.status.ok() && !message.is_end) {
            stashed_ = {message, std::string(message.value)};
          } else {
            Handle(message, {},
                   [](uint32_t, uint64_t, absl::string_view) -> absl::Status {
                     return absl::OkStatus();
                   });
          }
        },
        /*messages_max=*/1);
  }
}

void JournalReader::Wake() {
  woken_ = true;
  consumer_->Wake();
}

void JournalReader::Stop() {
  stopped_ = true;
  Wake();
}

}  // namespace timecache::server
