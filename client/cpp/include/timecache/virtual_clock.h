// The clock of a server that was started with --virtual-clock: time stands
// still until a client advances it, so that a test of "after 30 minutes" takes
// a millisecond.

#ifndef TIMECACHE_VIRTUAL_CLOCK_H_
#define TIMECACHE_VIRTUAL_CLOCK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"

namespace timecache {

// Moves a virtual server's clock. It starts at 1970-01-01T00:00:00Z and never
// goes back. UNIMPLEMENTED on a server that runs on the real clock.
//
// Thread-safe; calls apply one after the other. An advance returns once
// everything due has been swept and published with a watermark at the new time:
// a test that reads its Watcher up to that watermark has seen all events.
class TIMECACHED_EXPORT VirtualClock {
 public:
  // Of the client's server. `timeout` is the longest duration of one call: an
  // advance takes as long as the sweep of the entries that it kills.
  explicit VirtualClock(const Client& client,
                        absl::Duration timeout = absl::Minutes(1));

  // Each returns the clock's time after it.

  // INVALID_ARGUMENT for a time before now.
  absl::StatusOr<absl::Time> AdvanceTo(absl::Time to) const;
  // INVALID_ARGUMENT for a negative duration.
  absl::StatusOr<absl::Time> Advance(absl::Duration by) const;
  absl::StatusOr<absl::Time> Now() const;

 private:
  absl::Duration timeout_;
  Client client_;
};

}  // namespace timecache

#endif  // TIMECACHE_VIRTUAL_CLOCK_H_
