// The owner's end of a partition: appends, and knows what counts.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_PARTITION_APPENDER_H_
#define TIMECACHED_SERVER_LOG_KAFKA_PARTITION_APPENDER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/lock_order.h"
#include "server/log/journal.h"
#include "server/log/kafka/kafka_producer.h"
#include "server/log/kafka/log_filter.h"

namespace timecache::server {

// What appenders ask of the brokers. All callbacks run on one thread, never
// within the call that they were given to. Send and After may be called on any
// thread; the others are, on that one.
class AppenderIo {
 public:
  using Visit =
      absl::AnyInvocable<void(uint64_t offset, absl::string_view value)>;
  using ReadDone = absl::AnyInvocable<void(const absl::Status& status)>;

  virtual ~AppenderIo() = default;
  // See KafkaProducer.
  virtual void Send(uint32_t partition, std::string value,
                    KafkaProducer::Done done) = 0;
  virtual void DeleteBefore(uint32_t partition, uint64_t offset) = 0;
  // Visits the messages from `from` to `to`, both included, then calls `done`.
  // FAILED_PRECONDITION: the partition was trimmed beyond `from`. OUT_OF_RANGE: it
  // does not have `from`, or ends before `to`. After other errors it may be
  // retried. One for a partition at a time.
  virtual void ReadBack(uint32_t partition, uint64_t from, uint64_t to,
                        Visit visit, ReadDone done) = 0;
  // At once, if appends have been stopped.
  virtual void After(absl::Duration delay, absl::AnyInvocable<void()> run) = 0;
  // For an operator.
  virtual void Log(const std::string& text) = 0;
};

// Sends one group of records at a time, in one message if it fits; all that waits
// meanwhile is the next group. While the offsets that it gets follow each other,
// nothing else was appended, and the group counts without a look. Otherwise it
// reads what is between, by the rules of LogFilter:
//
// - another node's claim: this node has lost the partition;
// - the group is there, of an attempt that seemed to fail: done;
// - it is not: sent again, as after an error, whatever the error says.
//
// Each look begins at the last message of its own that is known, which must be
// there: otherwise the topic was made anew, or brokers have lost messages, and the
// node has lost the partition, too. So a broker that answers with a wrong offset,
// as 0, is found out.
//
// Thread-safe. An append costs one copy of its records, in the message, on the
// thread that calls Append if nothing is in flight. Holds that message, and the
// records that wait.
class PartitionAppender {
 public:
  // Of all records of an append.
  static constexpr size_t kAppendBytesMax = size_t{32} << 20;
  // Of a message, with its header, until brokers say that it is too large: a record
  // of 1 MiB fits, which topics of CreateTopics allow.
  static constexpr size_t kMessageBytesMax = 1'100'000;
  static constexpr size_t kMessageBytesMin = 1'000;
  // From an attempt that failed to the next, doubled each time.
  static constexpr absl::Duration kPauseMin = absl::Milliseconds(10);
  static constexpr absl::Duration kPauseMax = absl::Seconds(1);

  // `filter` has read up to and with the node's claim, at `claim_offset`. `io` is
  // not owned, and outlives this; no callback of it follows once idle() after an
  // End. `on_lost` is called at most once, on io's thread. `may_delete`: see
  // KafkaJournalOptions. `first_partition` is what errors and logs add to the number.
  PartitionAppender(uint32_t partition, LogFilter filter, uint64_t claim_offset,
                    AppenderIo* io,
                    std::function<void(const absl::Status&)> on_lost,
                    std::function<bool()> may_delete = nullptr,
                    uint32_t first_partition = 0);
  PartitionAppender(const PartitionAppender&) = delete;
  PartitionAppender& operator=(const PartitionAppender&) = delete;

  // See Journal.
  void Append(std::vector<std::string> records, Journal::AppendDone done)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status TrimBefore(uint64_t position) ABSL_LOCKS_EXCLUDED(mu_);
  // Until as many Unpins nothing is deleted, whatever is trimmed: what a reader needs
  // stays.
  struct Extent {
    uint64_t first = 0;
    uint64_t end = 0;
    // From which all records from `first` on are read; 0: from the topic's beginning.
    uint64_t offset = 0;
  };
  Extent Pin() ABSL_LOCKS_EXCLUDED(mu_);
  void Unpin() ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t First() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t End() const ABSL_LOCKS_EXCLUDED(mu_);
  // Adds this partition's.
  void AddTo(JournalStatistics* statistics) const ABSL_LOCKS_EXCLUDED(mu_);

  // What waits, and all later appends, end with this error; what is in flight does
  // when io reports it. On io's thread.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  bool idle() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct PendingAppend {
    std::vector<std::string> records;
    Journal::AppendDone done;
    size_t bytes;  // with what frames them
  };
  // What is sent again until it counts.
  struct Group {
    std::vector<PendingAppend> appends;
    RecordsMessage header;
    size_t bytes = 0;
    std::chrono::steady_clock::time_point began;
  };

  bool MayTrim() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return pins_ == 0 && to_trim_ > filter_.trimmed() && MayDelete();
  }
  bool MayDelete() const { return !may_delete_ || may_delete_(); }
  void SendTrim() ABSL_LOCKS_EXCLUDED(mu_);
  void SendNext() ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendGroup();
  std::vector<std::string> EncodeGroup();
  void OnReport(size_t piece, const SendReport& report, std::string value);
  void OnAllReported();
  bool IsDense() const;
  void ReadBack(uint64_t to, bool acknowledged);
  void OnReadBack(uint64_t to, bool acknowledged, const absl::Status& status);
  bool IsSent(absl::string_view value, uint32_t attempt, uint32_t piece) const;
  void SendAgain(const std::string& why);
  void Complete() ABSL_LOCKS_EXCLUDED(mu_);
  void Lose(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  void Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  const uint32_t partition_;
  const uint32_t in_topic_;
  const uint64_t claim_;
  AppenderIo& io_;
  const std::function<void(const absl::Status&)> on_lost_;
  const std::function<bool()> may_delete_;
  const uint64_t claim_offset_;

  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kJournal);
  std::deque<PendingAppend> waiting_ ABSL_GUARDED_BY(mu_);
  // A group is in flight: what follows below belongs to whoever sends or judges
  // it, one thread after the other.
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
  // Of what is known to count.
  LogFilter filter_ ABSL_GUARDED_BY(mu_);
  // What the next message says may be deleted.
  uint64_t to_trim_ ABSL_GUARDED_BY(mu_) = 0;
  int pins_ ABSL_GUARDED_BY(mu_) = 0;
  JournalStatistics statistics_ ABSL_GUARDED_BY(mu_);

  Group group_;
  std::vector<SendReport> reports_;
  size_t reported_ = 0;
  // Of the next attempt that succeeds.
  std::string spare_;
  size_t message_bytes_max_ = kMessageBytesMax;
  absl::Duration pause_ = kPauseMin;
  // Of each attempt another one: 0 is the claim.
  uint32_t attempt_ = 0;
  uint64_t deleted_ = 0;
  // The last message that is known to be this node's; all before `end_` are known.
  uint64_t known_offset_;
  uint32_t known_attempt_ = 0;
  uint32_t known_piece_ = 0;
  uint64_t end_;
  // Of the look that goes on.
  bool found_known_ = false;
  bool found_acknowledged_ = false;
  absl::Status look_status_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_PARTITION_APPENDER_H_
