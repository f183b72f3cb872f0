#include "server/main/journal_metrics.h"

#include <cstdint>

#include "server/api/proto_time.h"
#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

prometheus::MetricFamily HistogramOf(const MetricInfo& info,
                                     const DurationHistogram& histogram) {
  auto family = NewFamily(info, prometheus::MetricType::Histogram);
  family.metric.push_back(HistogramSample({}, histogram));
  return family;
}

}  // namespace

JournalFigures FiguresOf(MapChangeLogs* logs,
                         const Checkpointer* checkpointer) {
  JournalFigures figures;
  figures.journal = logs->journal().statistics();
  figures.open_bytes = logs->open_bytes();
  figures.open_bytes_max = logs->open_bytes_max();
  figures.disk_full = logs->disk_full();
  if (checkpointer != nullptr) {
    figures.checkpoints = checkpointer->GetStatistics();
  }
  return figures;
}

std::vector<prometheus::MetricFamily> JournalMetrics::Collect() const {
  const JournalFigures figures = figures_();
  const JournalStatistics& journal = figures.journal;
  const Checkpointer::Statistics checkpoints =
      figures.checkpoints.value_or(Checkpointer::Statistics());
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
      static_cast<uint64_t>(figures.open_bytes));
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

void DescribeJournal(const std::string& place, const JournalFigures& figures,
                     v1::JournalStatus* status) {
  const JournalStatistics& journal = figures.journal;
  status->set_directory(place);
  status->set_disk_bytes(journal.disk_bytes);
  const auto waiting = status->mutable_waiting_bytes();
  waiting->set_used(static_cast<uint64_t>(figures.open_bytes));
  waiting->set_max(static_cast<uint64_t>(figures.open_bytes_max));
  status->set_disk_full(figures.disk_full);
  status->set_commits(journal.commits);
  status->set_appends(journal.appends);
  status->set_written_bytes(journal.written_bytes);
  SetDuration(static_cast<int64_t>(journal.commit_latency.sum_us()),
              status->mutable_commit_time());
  if (journal.commit_latency.total() > 0) {
    SetDuration(journal.commit_latency.QuantileUs(0.99),
                status->mutable_commit_p99());
  }
  if (!figures.checkpoints.has_value()) return;
  status->set_checkpoints(figures.checkpoints->rounds);
  status->set_checkpoint_state(figures.checkpoints->writing
                                   ? v1::CHECKPOINT_STATE_WRITING
                                   : v1::CHECKPOINT_STATE_IDLE);
}

}  // namespace timecache::server
