// The log by which the nodes of a cluster agree who owns.

#ifndef TIMECACHED_SERVER_CLUSTER_CONTROL_LOG_H_
#define TIMECACHED_SERVER_CLUSTER_CONTROL_LOG_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/cluster/v1/control.pb.h"

namespace timecache::server {

// control.proto says what is in it.
using ControlRecord = cluster::v1::ControlRecord;

struct ControlEntry {
  int64_t offset = 0;
  // By the clock of the broker that appended it, since the Unix epoch; may go back
  // where another broker goes on.
  int64_t append_time_ms = 0;
  ControlRecord record;
};

// One sequence of records, which all nodes read in the same order. Records of a
// node are appended in its order, each once, more than once, or not at all.
//
// Append and Poll are for one thread; Wake is thread-safe.
class ControlLog {
 public:
  virtual ~ControlLog() = default;

  // Sends the record, and does not wait: what became of it is seen by reading.
  // False, and nothing is sent, while the one before is on its way, which ends by
  // itself.
  virtual bool Append(const ControlRecord& record) = 0;

  // The next entries, from the oldest one of the log on: at least one, or none
  // after `timeout`, a Wake, or without a reason. An error: the log is not the one
  // that was read before (DATA_LOSS), and can be read no more. Brokers that do not
  // answer are no error.
  virtual absl::StatusOr<std::vector<ControlEntry>> Poll(
      absl::Duration timeout) = 0;

  // Ends the Poll that waits, or else the next one.
  virtual void Wake() = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_CONTROL_LOG_H_
