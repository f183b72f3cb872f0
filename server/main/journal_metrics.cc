#include "server/main/journal_metrics.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "server/api/proto_time.h"
#include "server/base/clock.h"
#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

using prometheus::MetricType;

// Buckets end at powers of two: from 2^kLeastWidth microseconds, 64
// us, to 2^kMostWidth, 8.4 s.
constexpr size_t kLeastWidth = 6;
constexpr size_t kMostWidth = 23;

prometheus::MetricFamily HistogramOf(const MetricInfo& info,
                                     const Latencies& latencies) {
  prometheus::MetricFamily family = NewFamily(info, MetricType::Histogram);
  auto& histogram = family.metric.emplace_back().histogram;
  histogram.sample_sum =
      static_cast<double>(latencies.total_us) / kMicrosPerSecond;
  for (size_t i = 0; i < Latencies::kBuckets; ++i) {
    histogram.sample_count += latencies.counts[i];
    if (i < kLeastWidth || i > kMostWidth) continue;
    histogram.bucket.push_back(
        {histogram.sample_count,
         static_cast<double>(int64_t{1} << i) / kMicrosPerSecond});
  }
  return family;
}

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

std::vector<prometheus::MetricFamily> JournalMetrics::Collect() const {
  const JournalStatistics journal = logs_.journal().statistics();
  const Checkpointer::Statistics checkpoints = checkpointer_.GetStatistics();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](const MetricInfo& info, uint64_t value) {
    AddSample({}, static_cast<double>(value),
              &families.emplace_back(NewFamily(info)));
  };
  add({"timecache_journal_bytes", "Disk space of the journal."},
      journal.disk_bytes);
  add({"timecache_journal_segments", "Files of records of the journal."},
      journal.segments);
  add({"timecache_journal_open_bytes",
       "Changes that wait for the journal's disk."},
      static_cast<uint64_t>(logs_.open_bytes()));
  add({"timecache_journal_records_total", "Records that were written."},
      journal.records);
  add({"timecache_journal_appends_total",
       "Appends of a namespace's records; a commit has those that arrived "
       "during the previous one."},
      journal.appends);
  add({"timecache_journal_appended_bytes_total", "Bytes of records."},
      journal.appended_bytes);
  add({"timecache_journal_written_bytes_total",
       "Bytes written to files: records and their framing."},
      journal.written_bytes);
  families.push_back(
      HistogramOf({"timecache_journal_commit_seconds",
                   "How long commits took: a write, and a sync where needed."},
                  journal.commit_latency));
  families.push_back(HistogramOf({"timecache_journal_sync_seconds",
                                  "How long syncs took, in commits and, for "
                                  "ASYNC namespaces, in addition to them."},
                                 journal.sync_latency));
  add({"timecache_journal_syncs_total", "Syncs of the journal's files."},
      journal.syncs);
  add({"timecache_journal_sync_errors_total",
       "Syncs that failed; unless the disk is full, the server then ends."},
      journal.sync_errors);
  add({"timecache_journal_low_space",
       "1: the disk is full, or has no room for the journal's reserve, and "
       "changes of durable namespaces are refused."},
      journal.low_space ? 1 : 0);
  add({"timecache_journal_full_total",
       "Commits that found no room on the disk."},
      journal.full_errors);
  add({"timecache_journal_checkpoints_total",
       "Rounds in which live entries were rewritten, and the records "
       "before them dropped."},
      checkpoints.rounds);
  add({"timecache_journal_checkpoint_state",
       "1: entries, retained events and groups are being rewritten; 0: not."},
      checkpoints.writing ? 1 : 0);
  return families;
}

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
