// The journal of a cluster: a partition of a Kafka topic for each of its own.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_KAFKA_JOURNAL_H_
#define TIMECACHED_SERVER_LOG_KAFKA_KAFKA_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/log/journal.h"
#include "server/log/kafka/kafka_client.h"
#include "server/log/kafka/kafka_snapshot.h"

namespace timecache::server {

struct KafkaJournalOptions {
  KafkaOptions kafka;
  std::string topic;
  // The journal is this partition of the topic alone, which has number 0 in it. None:
  // it is all of them.
  std::optional<uint32_t> partition;
  // Of this process: see Claim.
  std::string node;
  uint64_t incarnation = 0;
  // Called at most once, on a thread of the journal, when the node has lost the
  // journal: another node's claim, or records that are gone. Nothing is appended
  // from then on.
  std::function<void(const absl::Status& why)> on_lost;
  // See Journal::IsOwner: whether the node's lease holds. Null: always.
  std::function<bool()> holds_lease;
  // Whether messages of the topic may be deleted now. If not, what TrimBefore has given
  // up is deleted with a later append. Any thread, with locks of the journal held. Null:
  // always.
  std::function<bool()> may_delete;
};

// How far a standby is.
struct KafkaJournalLag {
  // Messages of the topic that were not read yet, at most.
  uint64_t messages = 0;
  // The age of the oldest of them, at most; infinite: not known, as none was read of
  // its partition.
  absl::Duration age = absl::ZeroDuration();
  // Those that were, since Open.
  uint64_t read = 0;
};

// First a node follows: Read returns what is new each time. Claim makes it the
// owner; the next Read returns what came before the claim, and is the last one.
// From then on it appends, until another node claims.
//
// The rules by which a record counts are LogFilter's (log_filter.h): positions
// are dense, whatever the offsets are, and every reader sees the same records.
//
// Costs a thread, and those of librdkafka's clients: one that reads, one that reads
// back, and, for each partition up to the fourth, one that appends; each has one or
// two, and one for each broker that it talks to. See KafkaConsumer for memory.
//
// Thread-safe, but for AwaitMore, Read and Claim: one thread.
class KafkaJournal final : public Journal {
 public:
  // Reads the first message of each partition. UNAVAILABLE: no broker answers.
  // NOT_FOUND: no such topic, or partition. DATA_LOSS: a partition begins with what no
  // TrimBefore has left, as after a retention that deletes.
  static absl::StatusOr<std::unique_ptr<KafkaJournal>> Open(
      KafkaJournalOptions options);
  ~KafkaJournal() override;

  uint32_t partitions() const override;
  void Append(uint32_t partition, std::vector<std::string> records,
              Durability durability, AppendDone done) override;
  // From First on, or where the last Read ended: the positions in `from` must be
  // these. Returns when all is read that the topic had at Open, or, later, by the
  // last fetch before the call; or, unless it is the last one, after a Wake. Waits
  // for brokers that do not answer. An error is that of all later calls, too.
  // DATA_LOSS: messages are gone, or this is not the log that was read before.
  // OUT_OF_RANGE: the owner has trimmed what was not read yet. CANCELLED: Stop was
  // called.
  absl::Status Read(absl::Span<const ReadFrom> from,
                    Visitor visit) const override;
  absl::Status TrimBefore(uint32_t partition, uint64_t position) override;
  uint64_t First(uint32_t partition) const override;
  // Of what was read or appended here.
  uint64_t End(uint32_t partition) const override;
  bool low_space() const override { return false; }
  uint64_t checkpoint_bytes_max() const override { return UINT64_MAX; }
  bool IsOwner() const override;
  JournalStatistics statistics() const override;

  // Waits until there is something to read, at most so long, or until a Wake after
  // the last call.
  void AwaitMore(absl::Duration timeout);
  void Wake();
  // `now`: by the brokers' clocks.
  KafkaJournalLag lag(absl::Time now) const;
  // Tells a topic from another one of its name: what its first owner has chosen.
  // 0: what was read has had none yet.
  uint64_t id() const;

  // Appends a claim to each partition. An error: some may be there; the node
  // then has to claim again, or to leave it. UNAVAILABLE: brokers do not answer.
  absl::Status Claim();
  // What the brokers' clocks said, in microseconds, of the newest record that was
  // read, of any partition, and of the newest claim of Claim, once Claim or the last
  // Read have returned. 0: none.
  int64_t last_append_us() const;
  int64_t claim_append_us() const;

  // Of one moment: what is in one partition and was appended because of a record in
  // another one, is there with that record. Trims delete nothing of the topic until it
  // is destroyed. Must not outlive this. FAILED_PRECONDITION: the node does not own the
  // journal. UNAVAILABLE: no broker answers in 10 s. Any thread.
  absl::StatusOr<std::unique_ptr<KafkaSnapshot>> OpenSnapshot();

  // Appends that wait end with FAILED_PRECONDITION, as all later ones: before a
  // planned handover, when all that was acknowledged is stored. Ends the other calls
  // that wait, too. Returns when all appends are done, unless a `done` calls it.
  void Stop();

 private:
  class Impl;
  class Snapshot;
  explicit KafkaJournal(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_KAFKA_JOURNAL_H_
