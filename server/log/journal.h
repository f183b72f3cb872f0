// Makes the engine durable: an ordered log of records for each partition.

#ifndef TIMECACHED_SERVER_LOG_JOURNAL_H_
#define TIMECACHED_SERVER_LOG_JOURNAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/duration_histogram.h"

namespace timecache::server {

// When an append is done.
enum class Durability {
  // Given to the operating system: survives a crash of the process. A power
  // loss loses at most the appends of the last `sync_interval` (100 ms).
  kAsync,
  // As far as the journal can: on the disk, which survives a power loss; in the
  // memory of several brokers, which survives the loss of machines.
  kSync,
};

// Counts since the journal was opened, unless they say otherwise.
struct JournalStatistics {
  uint64_t disk_bytes = 0;      // of all segments, now
  uint64_t needed_bytes = 0;    // of those that no trim has given up, now
  uint64_t closed_bytes = 0;    // of those that another trim may remove, now
  uint64_t segments = 0;        // files of records, now
  uint64_t appended_bytes = 0;  // of records
  uint64_t written_bytes = 0;   // to files: records and what frames them
  uint64_t appends = 0;
  uint64_t records = 0;
  uint64_t commits = 0;  // groups; appends / commits is the mean group
  uint64_t syncs = 0;
  uint64_t sync_errors = 0;
  bool low_space = false;            // see Journal::low_space, now
  uint64_t full_errors = 0;          // commits that found no room on the disk
  DurationHistogram commit_latency;  // a write and, if any, a sync
  DurationHistogram sync_latency;    // also of syncs beside the commits
};

// A fixed number of partitions, numbered from 0. Each is a log of records:
// opaque bytes, with positions that start at 0, are dense and grow for ever. A
// position is not reused after a trim or a restart; but a power loss that loses
// ASYNC records frees their positions, too, and the next records get them.
//
// Thread-safe.
class Journal {
 public:
  // The position of the first record, or why none of the records is in the
  // journal. The records are returned: for a retry, or to reuse their memory.
  using AppendDone = absl::AnyInvocable<void(absl::StatusOr<uint64_t> position,
                                             std::vector<std::string> records)>;
  // An error ends the read, which returns it. The record's bytes are valid only
  // during the call.
  using Visitor = absl::FunctionRef<absl::Status(
      uint32_t partition, uint64_t position, absl::string_view record)>;
  struct ReadFrom {
    uint32_t partition = 0;
    uint64_t position = 0;
  };

  virtual ~Journal() = default;

  virtual uint32_t partitions() const = 0;

  // Appends the records, one or more, next to each other and all or none, after
  // those of all earlier appends to this partition. `done` is called once, on
  // a thread of the journal, or before Append returns if it fails at once; it
  // must not block, and may append. Appends that wait at the same time are
  // committed as one group, with one sync for all if one of them is SYNC; all
  // of a group are done together.
  //
  // UNAVAILABLE: the system is out of memory at the moment. RESOURCE_EXHAUSTED:
  // there is no room. After either it may be retried. INVALID_ARGUMENT: no such
  // partition, no record, or more bytes than an append may have.
  // FAILED_PRECONDITION: the journal has stopped, after an error of the disk or
  // as another node owns it now; whether an append that waited is in it is
  // unknown.
  virtual void Append(uint32_t partition, std::vector<std::string> records,
                      Durability durability, AppendDone done) = 0;

  // Visits the records of these partitions, each from its position to its end
  // at the start of the call: in order within a partition, partitions
  // interleaved as they were appended. A local journal keeps all partitions in
  // one log, so a call costs a pass over it: several threads use a SharedRead.
  // Holds one group in memory. Appends go on meanwhile.
  //
  // OUT_OF_RANGE: a position is trimmed, now or while the call runs, or past
  // the end. DATA_LOSS: the journal is damaged; names the file, the readable
  // part and a remedy. All records before the damage were visited.
  virtual absl::Status Read(absl::Span<const ReadFrom> from,
                            Visitor visit) const = 0;

  // Declares the records before `position`, at most End, unneeded. First grows
  // at once; disk space comes back in whole segments, once no partition needs a
  // record in them. A crash may restore a part of what was trimmed, as a
  // gapless tail before `position`. A lower position than First does nothing.
  virtual absl::Status TrimBefore(uint32_t partition, uint64_t position) = 0;

  // The oldest position that is not trimmed, and the one past the newest record
  // that is done. Equal if there is none.
  virtual uint64_t First(uint32_t partition) const = 0;
  virtual uint64_t End(uint32_t partition) const = 0;

  // Whether what was read and appended here is all that the journal has: true,
  // always, for one that a single process writes. False where another node may
  // have appended more: then nothing that is in memory may be answered. Costs at
  // most a read of a clock.
  virtual bool IsOwner() const { return true; }

  // Whether only records that cannot be refused should be appended, because
  // there is little room for more. Ends by itself. Costs a load.
  virtual bool low_space() const = 0;
  // Most bytes that a checkpoint may append now: little while there is
  // low_space, otherwise UINT64_MAX.
  virtual uint64_t checkpoint_bytes_max() const = 0;

  virtual JournalStatistics statistics() const = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_JOURNAL_H_
