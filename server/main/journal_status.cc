#include "server/main/journal_status.h"

#include <cstddef>
#include <cstdint>

#include "server/api/proto_time.h"

namespace timecache::server {
namespace {

// 99 % of commits took less than this; 0 without commits.
int64_t CommitP99Us(const Latencies& latencies) {
  uint64_t commits = 0;
  for (const uint64_t count : latencies.counts) commits += count;
  uint64_t below = 0;
  for (size_t i = 0; i < Latencies::kBuckets; ++i) {
    below += latencies.counts[i];
    if (below > 0 && below * 100 >= commits * 99) return int64_t{1} << i;
  }
  return 0;
}

}  // namespace

void DescribeJournal(const std::string& directory, MapChangeLogs* logs,
                     const Checkpointer& checkpointer,
                     v1::JournalStatus* status) {
  const JournalStatistics journal = logs->journal().statistics();
  const Checkpointer::Statistics checkpoints = checkpointer.GetStatistics();
  status->set_directory(directory);
  status->set_disk_bytes(journal.disk_bytes);
  const auto waiting = status->mutable_waiting_bytes();
  waiting->set_used(static_cast<uint64_t>(logs->open_bytes()));
  waiting->set_max(static_cast<uint64_t>(logs->open_bytes_max()));
  status->set_disk_full(logs->disk_full());
  status->set_commits(journal.commits);
  status->set_appends(journal.appends);
  status->set_written_bytes(journal.written_bytes);
  SetDuration(static_cast<int64_t>(journal.commit_latency.total_us),
              status->mutable_commit_time());
  if (const int64_t p99_us = CommitP99Us(journal.commit_latency); p99_us > 0) {
    SetDuration(p99_us, status->mutable_commit_p99());
  }
  status->set_checkpoints(checkpoints.rounds);
  status->set_checkpoint_state(checkpoints.writing
                                   ? v1::CHECKPOINT_STATE_WRITING
                                   : v1::CHECKPOINT_STATE_IDLE);
}

}  // namespace timecache::server
