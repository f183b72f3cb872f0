// The journal's status in GetServer.

#ifndef TIMECACHED_SERVER_MAIN_JOURNAL_STATUS_H_
#define TIMECACHED_SERVER_MAIN_JOURNAL_STATUS_H_

#include <string>

#include "server/durable/checkpointer.h"
#include "server/durable/map_change_log.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// Thread-safe, O(segments of the journal).
void DescribeJournal(const std::string& directory, MapChangeLogs* logs,
                     const Checkpointer& checkpointer,
                     v1::JournalStatus* status);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_JOURNAL_STATUS_H_
