// One reader of all partitions of a namespace.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_MERGED_READER_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_MERGED_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/base/clock.h"
#include "server/engine/parts/ready_partitions.h"
#include "server/engine/store/in_flight_limit.h"
#include "server/engine/store/readers.h"

namespace timecache::server {

// Each reads the partitions that have been woken, in turns: a Read begins with
// the one after that with which the last one began, and passes on what fits of
// the others, too. It costs O(partitions that are ready); a refresh of the
// watermark makes all of them ready.
//
// Events of one partition keep their order. Those that one Read finds in several
// are sorted by their deaths. The watermark is the least of all partitions', so
// it is never ahead of an event that is to come; losses are the sum.
//
// `parts` has one reader for each partition, in order, opened with the wakes of
// `ready`, which calls the merged reader's wake.
using PartReaders = std::vector<std::unique_ptr<EventReader>>;

// Of logs, or of changes. `points` has those where the readers start, or none.
// A chunk is `closed` once nothing is left in any partition.
std::unique_ptr<EventReader> MergeLogs(PartReaders parts,
                                       std::shared_ptr<ReadyPartitions> ready,
                                       const std::vector<LogPoint>& points);

// Of members of a group in each partition: of a stream, which may hold what
// `in_flight` lets it in all of them, or of a fetch, where that is null. One
// Read takes at most kMaxTaken events.
inline constexpr int kMaxTaken = 1'024;
// How often a member is told that all is delivered: in the long run, and so many
// times at once before. To find out, it refreshes the watermarks of all partitions.
inline constexpr int64_t kAllDeliveredUs = 10'000;
inline constexpr int64_t kAllDeliveredAtOnce = 32;
std::unique_ptr<EventReader> MergeMembers(
    PartReaders parts, std::shared_ptr<ReadyPartitions> ready,
    std::shared_ptr<InFlightLimit> in_flight);

// Of expiring entries. One Read has events of one partition, as finding them may
// take its time.
std::unique_ptr<EventReader> MergeExpiring(
    PartReaders parts, std::shared_ptr<ReadyPartitions> ready);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_MERGED_READER_H_
