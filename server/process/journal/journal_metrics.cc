#include "server/process/journal/journal_metrics.h"

#include <cstdint>
#include <utility>

#include "server/engine/clock.h"
#include "server/observability/metric_family.h"

namespace timecache::server {
namespace {

using prometheus::MetricType;

// Buckets of commits end at powers of two: from 2^kLeastWidth microseconds, 64
// us, to 2^kMostWidth, 8.4 s.
constexpr int kLeastWidth = 6;
constexpr int kMostWidth = 23;

prometheus::MetricFamily CommitLatency(const JournalStatistics& statistics) {
  prometheus::MetricFamily family = NewFamily(
      {"timecache_journal_commit_seconds",
       "How long commits took: a write, and a sync where one had to be."},
      MetricType::Histogram);
  auto& histogram = family.metric.emplace_back().histogram;
  histogram.sample_sum =
      static_cast<double>(statistics.commit_us) / kMicrosPerSecond;
  for (int i = 0; i < JournalStatistics::kLatencyBuckets; ++i) {
    histogram.sample_count += statistics.commit_latency[i];
    if (i < kLeastWidth || i > kMostWidth) continue;
    histogram.bucket.push_back(
        {histogram.sample_count,
         static_cast<double>(int64_t{1} << i) / kMicrosPerSecond});
  }
  return family;
}

}  // namespace

std::vector<prometheus::MetricFamily> JournalMetrics::Collect() const {
  const JournalStatistics journal = logs_.journal().statistics();
  const Checkpointer::Statistics checkpoints = checkpointer_.GetStatistics();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](const MetricInfo& info, MetricType type,
                               uint64_t value) {
    AddSample({}, static_cast<double>(value),
              &families.emplace_back(NewFamily(info, type)));
  };
  const auto gauge = [&](const MetricInfo& info, uint64_t value) {
    add(info, MetricType::Gauge, value);
  };
  const auto counter = [&](const MetricInfo& info, uint64_t value) {
    add(info, MetricType::Counter, value);
  };
  gauge({"timecache_journal_bytes", "Disk space of the journal."},
        journal.disk_bytes);
  gauge({"timecache_journal_segments", "Files of records of the journal."},
        journal.segments);
  gauge({"timecache_journal_open_bytes",
         "Changes that wait for the journal's disk."},
        static_cast<uint64_t>(logs_.open_bytes()));
  counter({"timecache_journal_records_total", "Records that were written."},
          journal.records);
  counter({"timecache_journal_appends_total",
           "Appends of a namespace's records; a commit has those that came "
           "meanwhile."},
          journal.appends);
  counter({"timecache_journal_appended_bytes_total", "Bytes of records."},
          journal.appended_bytes);
  counter({"timecache_journal_written_bytes_total",
           "Bytes written to files: records and what frames them."},
          journal.written_bytes);
  families.push_back(CommitLatency(journal));
  counter({"timecache_journal_syncs_total", "Syncs of the journal's files."},
          journal.syncs);
  counter({"timecache_journal_sync_errors_total",
           "Syncs that failed; but for a full disk, the server ends then."},
          journal.sync_errors);
  gauge({"timecache_journal_low_space",
         "1: the disk is full, or has no room for the journal's reserve, and "
         "changes of durable namespaces are refused."},
        journal.low_space ? 1 : 0);
  counter({"timecache_journal_full_total",
           "Commits that found no room on the disk."},
          journal.full_errors);
  counter({"timecache_journal_checkpoints_total",
           "Rounds in which live entries were written again, and what was "
           "before them was dropped."},
          checkpoints.rounds);
  gauge({"timecache_journal_checkpoint_state",
         "0: none; 1: entries are written again; 2: waits until events are no "
         "longer retained."},
        checkpoints.walking    ? 1
        : checkpoints.trimming ? 2
                               : 0);
  return families;
}

}  // namespace timecache::server
