// Messages of a consumer group, read and written without making objects of
// them, as watch_scan.h does with others.

#ifndef TIMECACHED_BENCH_SERVICE_GROUP_SCAN_H_
#define TIMECACHED_BENCH_SERVICE_GROUP_SCAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "grpcpp/support/byte_buffer.h"

namespace timecache::bench {

// What a member needs of an event.
struct Given {
  std::string token;
  uint32_t attempt = 0;
};

struct GroupScan {
  std::vector<Given> events;
  uint64_t value_bytes = 0;  // of all events
  uint64_t lost = 0;
};

// Of a ConsumeExpiredResponse. False if the message is not one. Adds to
// `*scan`.
bool ScanGroupMessage(const grpc::ByteBuffer& message, GroupScan* scan);

// A SettleExpiredRequest that acknowledges `count` events from `events` on.
grpc::ByteBuffer SettleRequest(const std::string& map, const std::string& group,
                               const Given* events, size_t count);

// Whether a SettleExpiredResponse says that `count` events were acknowledged.
bool AllSettled(const grpc::ByteBuffer& response, size_t count);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_GROUP_SCAN_H_
