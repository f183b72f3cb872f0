// What a journal had, for a backup.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_KAFKA_SNAPSHOT_H_
#define TIMECACHED_SERVER_LOG_KAFKA_KAFKA_SNAPSHOT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/log/journal.h"

namespace timecache::server {

// The records that a cluster's journal had, of all its partitions, read from the topic
// while appends go on. All that was done before it was opened is in it.
//
// Of one thread. Holds what a standby does: what was fetched ahead, and one group of
// pieces of each partition.
class KafkaSnapshot {
 public:
  virtual ~KafkaSnapshot() = default;
  // The position of each partition's first record, or of the next one.
  virtual const std::vector<uint64_t>& first() const = 0;
  virtual bool done() const = 0;
  // Visits the next ones, some MiB, each partition's in order, after waiting for the
  // first at most so long. DATA_LOSS: messages are gone. OUT_OF_RANGE: owners have
  // trimmed what was not read yet. CANCELLED: this node has to own the journal, and
  // does not any more.
  virtual absl::Status Read(absl::Duration timeout, Journal::Visitor visit) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_KAFKA_SNAPSHOT_H_
