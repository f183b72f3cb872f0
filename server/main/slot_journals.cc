#include "server/main/slot_journals.h"

namespace timecache::server {
namespace {

void AddCounts(const JournalFigures& from, JournalFigures* to) {
  const JournalStatistics& journal = from.journal;
  JournalStatistics& sum = to->journal;
  sum.appended_bytes += journal.appended_bytes;
  sum.written_bytes += journal.written_bytes;
  sum.appends += journal.appends;
  sum.records += journal.records;
  sum.commits += journal.commits;
  sum.syncs += journal.syncs;
  sum.sync_errors += journal.sync_errors;
  sum.full_errors += journal.full_errors;
  sum.commit_latency.Merge(journal.commit_latency);
  sum.sync_latency.Merge(journal.sync_latency);
  if (!to->checkpoints) to->checkpoints.emplace();
  if (from.checkpoints) to->checkpoints->rounds += from.checkpoints->rounds;
}

void AddPresent(const JournalFigures& from, JournalFigures* to) {
  const JournalStatistics& journal = from.journal;
  JournalStatistics& sum = to->journal;
  sum.disk_bytes += journal.disk_bytes;
  sum.needed_bytes += journal.needed_bytes;
  sum.closed_bytes += journal.closed_bytes;
  sum.segments += journal.segments;
  sum.low_space = sum.low_space || journal.low_space;
  to->open_bytes += from.open_bytes;
  to->open_bytes_max += from.open_bytes_max;
  to->disk_full = to->disk_full || from.disk_full;
  if (!to->checkpoints) to->checkpoints.emplace();
  if (from.checkpoints && from.checkpoints->writing) {
    to->checkpoints->writing = true;
  }
}

}  // namespace

void SlotJournals::Add(MapChangeLogs* logs, const Checkpointer* checkpointer) {
  absl::MutexLock lock(&mu_);
  owned_[logs] = checkpointer;
}

void SlotJournals::Remove(MapChangeLogs* logs) {
  absl::MutexLock lock(&mu_);
  const auto found = owned_.find(logs);
  if (found == owned_.end()) return;
  AddCounts(FiguresOf(logs, found->second), &former_);
  owned_.erase(found);
}

JournalFigures SlotJournals::Sum() const {
  absl::MutexLock lock(&mu_);
  JournalFigures sum = former_;
  for (const auto& [logs, checkpointer] : owned_) {
    const JournalFigures figures = FiguresOf(logs, checkpointer);
    AddCounts(figures, &sum);
    AddPresent(figures, &sum);
  }
  if (!sum.checkpoints) sum.checkpoints.emplace();
  return sum;
}

}  // namespace timecache::server
