// Reads as much of a WatchExpiredResponse as a benchmark must know, without
// making objects of it: a client of equal speed as a peer's, whose own cost is
// not what is measured.

#ifndef TIMECACHED_BENCH_WATCH_WATCH_SCAN_H_
#define TIMECACHED_BENCH_WATCH_WATCH_SCAN_H_

#include <cstdint>

#include "grpcpp/support/byte_buffer.h"

namespace timecache::bench {

// What one message held.
struct MessageScan {
  uint64_t events = 0;
  uint64_t event_bytes = 0;  // on the wire, all events
  uint64_t lost = 0;
  // Of the first event; 0 without one.
  int64_t death_time_us = 0;
  uint64_t value_bytes = 0;
};

// False if the message is not one. Walks over the bytes in place.
bool ScanMessage(grpc::ByteBuffer* message, MessageScan* scan);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_WATCH_WATCH_SCAN_H_
