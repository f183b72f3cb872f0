// Which messages of a partition count.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_LOG_FILTER_H_
#define TIMECACHED_SERVER_LOG_KAFKA_LOG_FILTER_H_

#include <cstdint>
#include <deque>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/log/kafka/log_message.h"

namespace timecache::server {

// Any node may append to a partition at any time, late and twice. Which of its
// messages count is a function of those before it, so that all readers agree:
//
// - A claim counts. It ends the one before, also where it is a copy of that.
// - A piece of a group of records counts if it names the last claim, the next
//   position, and is the first piece of an attempt, or the one after the last that
//   counts of this attempt. A group counts with its last piece.
// - Everything else is void: of a node that was replaced, a duplicate, garbage.
//
// A node that claims reads up to its claim before it appends, and sends a group
// again until it counts before it sends the next. So no message that names the last
// claim can be ahead of the filter, and the first one that does is at its next
// position: otherwise this is not the log that was read so far (DATA_LOSS). Nor is
// it, if a message names a later claim that this reader has not seen: brokers have
// lost messages that it has read, and have others in their place.
//
// Where brokers have lost messages, the owner finds that its next one got an offset
// that it knew already, and ends. The message is there, and void for whoever reads
// what is left: it says which offsets the owner knew.
//
// A reader may begin at a first piece that counts: it says the claim and the
// position.
//
// Not thread-safe. Holds a group of several pieces, at most kGroupBytesMax, and 24 B
// for each MiB that is not trimmed.
class LogFilter {
 public:
  using Visitor = absl::FunctionRef<absl::Status(uint64_t position,
                                                 absl::string_view record)>;
  // Of a group of several pieces. More is DATA_LOSS: no owner writes it.
  static constexpr size_t kGroupBytesMax = size_t{64} << 20;
  // Between two places where a reader may begin.
  static constexpr uint64_t kBaseBytes = uint64_t{1} << 20;

  explicit LogFilter(uint64_t base_bytes = kBaseBytes)
      : base_bytes_(base_bytes) {}

  // The message at `offset` is the first of the partition that is left: the next
  // one that is added. DATA_LOSS: no reader can begin there. Not needed for a
  // partition of which nothing was deleted.
  absl::Status BeginAt(uint64_t offset, absl::string_view value);

  // The next message; offsets grow. Visits the records that count now. DATA_LOSS:
  // see above. An error, also the visitor's, leaves the filter unusable.
  absl::Status Add(uint64_t offset, absl::string_view value, Visitor visit);

  // As Add of a group's pieces, all of which count, without their bytes: `bytes`
  // of messages, the first one at `offset`.
  void AddOwn(uint64_t offset, uint32_t count, uint64_t bytes,
              uint64_t trimmed);

  // 0: none yet.
  uint64_t log_id() const { return log_id_; }
  uint64_t claim() const { return claim_; }
  uint64_t claim_offset() const { return claim_offset_; }
  // Of the next record that counts, and of the first that can be read.
  uint64_t next() const { return next_; }
  uint64_t first() const { return first_; }
  // The highest offset before which messages may have been deleted.
  uint64_t trimmed() const { return trimmed_; }
  // Messages that did not count.
  uint64_t voids() const { return voids_; }
  // Of all messages from `first` on.
  uint64_t bytes() const { return bytes_ - bases_bytes(); }

  // The last place where a reader may begin that has all records from `position`
  // on: its offset.
  uint64_t BaseOffset(uint64_t position) const;
  // The bytes of messages before the offset that BaseOffset(position) returns.
  uint64_t BytesBefore(uint64_t position) const;
  // A lower one than `first` does nothing.
  void TrimBefore(uint64_t position);

 private:
  struct Base {
    uint64_t position;
    uint64_t offset;
    // Of all messages before it.
    uint64_t bytes;
  };

  uint64_t bases_bytes() const {
    return bases_.empty() ? 0 : bases_.front().bytes;
  }
  const Base* FindBase(uint64_t position) const;
  absl::Status AddRecords(uint64_t offset, const RecordsMessage& message,
                          Visitor visit);
  absl::Status Complete(const RecordsMessage& message, absl::string_view bytes,
                        Visitor visit);
  void AddBase(uint64_t offset, uint64_t bytes_before);
  void SetTrimmed(uint64_t trimmed);

  uint64_t base_bytes_;
  uint64_t log_id_ = 0;
  uint64_t claim_ = 0;
  uint64_t claim_offset_ = 0;
  // Whether a message has named the claim.
  bool opened_ = false;
  uint64_t next_ = 0;
  uint64_t first_ = 0;
  uint64_t trimmed_ = 0;
  uint64_t voids_ = 0;
  uint64_t bytes_ = 0;
  // In order; the first is at or before `first_`.
  std::deque<Base> bases_;

  // The group whose last piece has not come: no piece is 0.
  uint32_t pieces_ = 0;
  uint32_t attempt_ = 0;
  uint64_t group_offset_ = 0;
  uint64_t group_bytes_before_ = 0;
  std::string group_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_LOG_FILTER_H_
