// Puts the records of one journal into another one, which is empty.

#ifndef TIMECACHED_SERVER_DURABLE_RESTORED_RECORDS_H_
#define TIMECACHED_SERVER_DURABLE_RESTORED_RECORDS_H_

#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/log/journal.h"

namespace timecache::server {

struct RestoredRecords {
  uint64_t records = 0;
  uint64_t namespaces = 0;
};

// Appends what `read` visits to `to`, which may have another number of partitions:
// each map's records come into the partition that its name falls on, in their order.
// Records that belong to no map any more are left out. What recovers the journal
// later takes the maps for those of a copy (RecoveryOptions::copied), until they have
// other identities, and its time for `clock`'s now, if that is later. Until all of it
// is there, nothing recovers it (RecoverMaps: FAILED_PRECONDITION).
//
// `read` visits all records of a journal, in order within a partition; it is called
// twice. `cancelled` is asked some times a second. At most 32 MiB are being appended.
//
// FAILED_PRECONDITION: the journal that is read lacks records, as after a salvage, or
// `to` is not this node's any more. CANCELLED. Others are those of `read`. After an
// error, `to` may have a part.
absl::StatusOr<RestoredRecords> RestoreRecords(
    absl::FunctionRef<absl::Status(Journal::Visitor)> read, Journal* to,
    const Clock& clock, std::function<bool()> cancelled);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_RESTORED_RECORDS_H_
