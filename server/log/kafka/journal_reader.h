// Follows the partitions of a cluster's journal.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_JOURNAL_READER_H_
#define TIMECACHED_SERVER_LOG_KAFKA_JOURNAL_READER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/log/journal.h"
#include "server/log/kafka/kafka_consumer.h"
#include "server/log/kafka/log_filter.h"

namespace timecache::server {

// See KafkaJournal, of which this is the standby's half. Thread-safe, but for Read,
// AwaitMore and TakeFilter: one thread.
class JournalReader {
 public:
  // `begins`: offsets of first pieces that count, as of BaseOffset, from which the
  // partitions are read; 0, and where there are none: from what is left of it.
  // `only`: see KafkaConsumer::Open.
  static absl::StatusOr<std::unique_ptr<JournalReader>> Open(
      const KafkaOptions& options, const std::string& topic,
      const std::vector<int64_t>& begins = {},
      std::optional<uint32_t> only = std::nullopt);

  uint32_t partitions() const { return consumer_->partitions(); }
  // See KafkaConsumer.
  uint32_t first_partition() const { return consumer_->first_partition(); }
  uint64_t first(uint32_t partition) const { return parts_[partition].first; }
  uint64_t next(uint32_t partition) const { return parts_[partition].next; }
  uint64_t bytes() const;
  // See KafkaJournal::id.
  uint64_t id() const { return parts_[0].log_id; }
  // Messages that were not read yet, at most, and that were.
  uint64_t lag() const;
  // See KafkaJournalLag::age.
  absl::Duration LagAge(absl::Time now) const;
  uint64_t read() const { return read_; }
  int64_t last_append_us() const { return last_append_us_; }

  // Up to the end that is known at the start of the call; or, if there are offsets,
  // up to and with the message at that offset of each partition.
  absl::Status Read(const std::vector<int64_t>& last, Journal::Visitor visit);
  // Some messages of those that are there, after waiting for the first at most
  // `timeout`; none after those of SetEnds.
  absl::Status ReadSome(absl::Duration timeout, Journal::Visitor visit);
  // The last message that ReadSome reads of each partition: at this offset, where it
  // must be this one (otherwise DATA_LOSS).
  void SetEnds(std::vector<int64_t> offsets, std::string message) {
    ends_ = std::move(offsets);
    end_message_ = std::move(message);
  }
  void AwaitMore(absl::Duration timeout);
  void Wake();
  void Stop();

  // Of the next message to read, and past the last one at Open.
  int64_t position(uint32_t partition) const {
    return parts_[partition].position;
  }
  int64_t end(uint32_t partition) const { return parts_[partition].end; }

  // After a read up to an offset: nothing more is read of the partition.
  LogFilter TakeFilter(uint32_t partition);
  // The same of all that was there at Open. DATA_LOSS: it does not begin where its
  // owners have trimmed it.
  absl::Status Finish(uint32_t partition);

 private:
  struct Part {
    LogFilter filter;
    // Of the first message that was there, and of the next one to read.
    int64_t begin = 0;
    std::atomic<int64_t> position{0};
    // When it was opened.
    int64_t end = 0;
    // By the broker's clock, of the last message that was read; 0: none was.
    std::atomic<int64_t> append_us{0};
    // When nothing was left to read, by the steady clock; 0: never.
    std::atomic<int64_t> caught_up_us{0};
    // As of the filter.
    std::atomic<uint64_t> first{0};
    std::atomic<uint64_t> next{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> log_id{0};
  };
  // Was awaited, and not visited yet.
  struct Stashed {
    KafkaMessage message;
    std::string value;
  };

  explicit JournalReader(std::unique_ptr<KafkaConsumer> consumer);
  absl::Status FindBegins(const std::vector<int64_t>& least);
  absl::Status ReadFirstMessages();
  // Without asking: of the last fetch.
  int64_t KnownEnd(uint32_t partition) const;
  bool HasRead(const std::vector<int64_t>& ends) const;
  void Handle(const KafkaMessage& message, const std::vector<int64_t>& last,
              Journal::Visitor visit);
  absl::Status ErrorOf(const KafkaMessage& message) const;
  absl::Status CheckTrimmed(uint32_t partition) const;
  void NoteCaughtUp();

  const std::unique_ptr<KafkaConsumer> consumer_;
  std::deque<Part> parts_;
  std::optional<Stashed> stashed_;
  // Of SetEnds.
  std::vector<int64_t> ends_;
  std::string end_message_;
  bool complete_ = false;
  // Ends all reads.
  absl::Status status_;
  std::atomic<uint64_t> read_{0};
  std::atomic<int64_t> last_append_us_{0};
  std::atomic<bool> woken_{false};
  std::atomic<bool> stopped_{false};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_JOURNAL_READER_H_
