// The position of a reader of live generations. See Shard::ReadLive.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_LIVE_POSITION_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_LIVE_POSITION_H_

#include <cstdint>

#include "server/engine/shard/segment.h"

namespace timecache::server {

// A place in a generation of one shard. Its records are appended at the end of
// its chain of segments, or to its open segment, which need not be the last.
// Compaction moves records there, too.
struct LivePosition {
  // Behind all segments of a lower stamp, and up to here in this one.
  SegmentPlace last;
  // Where the open segment was left for what is behind it.
  SegmentPlace open;
  // All records of a lower version that were last put or renewed before read_us
  // have been read, wherever they are moved. A renewed record comes here with
  // the version that it had.
  uint64_t read_version = 0;
  int64_t read_us = 0;
};

// A generation that records were put into, and where it ended before them.
struct LiveChange {
  int64_t death_us = 0;
  LivePosition place;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_LIVE_POSITION_H_
