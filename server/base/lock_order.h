// The order in which a thread acquires locks that it holds together.

#ifndef TIMECACHED_SERVER_BASE_LOCK_ORDER_H_
#define TIMECACHED_SERVER_BASE_LOCK_ORDER_H_

#include "absl/base/thread_annotations.h"

// Each level is acquired after those above it here. A mutex says between which
// levels it stands, with ABSL_ACQUIRED_AFTER its own and ABSL_ACQUIRED_BEFORE a
// later one; clang checks it where one function acquires two of them
// (-Wthread-safety-beta). A mutex that says nothing is the last one acquired.
namespace timecache::server::lock_order {

struct ABSL_LOCKABLE Level {};

// Updates of namespaces, and of one namespace's groups.
inline Level kUpdate;
// While dead letters are put, and their creators' rights looked up.
inline Level kDeadLetters ABSL_ACQUIRED_AFTER(kUpdate);
inline Level kDeadLetterRights ABSL_ACQUIRED_AFTER(kDeadLetters);
// Access rules: they wake streams.
inline Level kAccess ABSL_ACQUIRED_AFTER(kDeadLetterRights);
// One stream of a call.
inline Level kStream ABSL_ACQUIRED_AFTER(kAccess);
// The time of a map: deaths and options.
inline Level kMap ABSL_ACQUIRED_AFTER(kStream);
// A map's sweep, and its groups by name.
inline Level kSweep ABSL_ACQUIRED_AFTER(kMap);
// A shard: several in order of index, or in any order if the second is not
// waited for.
inline Level kShard ABSL_ACQUIRED_AFTER(kSweep);
// An expiry log.
inline Level kLog ABSL_ACQUIRED_AFTER(kShard);
// A consumer group.
inline Level kGroup ABSL_ACQUIRED_AFTER(kLog);
// What a wake goes through: a stream's, then the hub's.
inline Level kWake ABSL_ACQUIRED_AFTER(kGroup);
inline Level kHub ABSL_ACQUIRED_AFTER(kWake);
// What a map's changes go through: its change log, then the journal.
inline Level kChanges ABSL_ACQUIRED_AFTER(kHub);
inline Level kJournal ABSL_ACQUIRED_AFTER(kChanges);

}  // namespace timecache::server::lock_order

#endif  // TIMECACHED_SERVER_BASE_LOCK_ORDER_H_
