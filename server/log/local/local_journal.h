// A journal in a directory of this machine.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_LOCAL_JOURNAL_H_
#define TIMECACHED_SERVER_LOG_LOCAL_LOCAL_JOURNAL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/base/lock_order.h"
#include "server/base/steady_cond_var.h"
#include "server/log/journal.h"
#include "server/log/local/background_sync.h"
#include "server/log/local/disk_reserve.h"
#include "server/log/local/file_system.h"
#include "server/log/local/journal_backup.h"
#include "server/log/local/journal_directory.h"
#include "server/log/local/local_journal_options.h"
#include "server/log/local/log_writer.h"

namespace timecache::server {

// One log of segments for all partitions, with the groups of one committer:
// one write and at most one sync for all that waits. Appended bytes are written
// once; per group, 40 B are added, 28 B for each of its partitions and 4 B for
// each record.
//
// Disk full: the log goes on in the reserve, as another segment, and low_space
// is true until there is room for another reserve. Once it is used up, the
// group is undone and its appends fail; the next group tries again. A segment
// that cannot be started, for want of room or of a descriptor, is started
// later: until then the one before grows.
//
// Damage: see Open and Read. After a crash, damage to the last group cannot be
// distinguished from a torn write and is cut; after an orderly close, all of it
// is found.
//
// Thread-safe. Costs two threads, and in memory what waits, a copy of a group,
// and kUnsyncedBytesMax. All calls share a lock, under which nothing is written
// or synced; it is held longest by the start of a read, which copies what is
// known of each segment: 8 B for each partition.
class LocalJournal final : public Journal {
 public:
  // Opens the journal of `directory`, and creates both if they are missing.
  // Reads the header of each segment and the last segment whole.
  //
  // FAILED_PRECONDITION: in use by another server, a newer format, another
  // number of partitions. DATA_LOSS: damaged; names the file, the readable part
  // and a remedy. INVALID_ARGUMENT: options. Others: errors of files.
  static absl::StatusOr<std::unique_ptr<LocalJournal>> Open(
      const std::string& directory, LocalJournalOptions options);

  // Commits and syncs waiting appends, and closes in order, unless
  // may_have_lost_power. No other call may be in progress or follow.
  ~LocalJournal() override;
  LocalJournal(const LocalJournal&) = delete;
  LocalJournal& operator=(const LocalJournal&) = delete;

  // The journal's permanent random id.
  const std::string& id() const { return writer_.identity().id; }

  uint32_t partitions() const override { return writer_.identity().partitions; }
  void Append(uint32_t partition, std::vector<std::string> records,
              Durability durability, AppendDone done) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Read(absl::Span<const ReadFrom> from,
                    Visitor visit) const override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status TrimBefore(uint32_t partition, uint64_t position) override
      ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t First(uint32_t partition) const override ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t End(uint32_t partition) const override ABSL_LOCKS_EXCLUDED(mu_);
  // The journal lives on its reserve: the disk was found full, or has no room
  // for a reserve. Ends when the disk has room for what was used of it.
  bool low_space() const override {
    return low_space_.load(std::memory_order_relaxed);
  }
  uint64_t checkpoint_bytes_max() const override;
  JournalStatistics statistics() const override ABSL_LOCKS_EXCLUDED(mu_);

  // Room that is kept for when the disk is full; 0: none.
  uint64_t reserve_bytes() const { return reserve_bytes_; }

  // A backup of the journal as it is now, with all completed appends, while
  // appending goes on. Must not outlive this. Trimmed segments stay until it
  // has read them, or is destroyed.
  std::unique_ptr<JournalBackup> OpenBackup() ABSL_LOCKS_EXCLUDED(mu_);

  // What the directory said of its log when it was opened, and says to each
  // later start until NoteRecovered.
  //
  // Whether the log may go on elsewhere, too (MarkAsCopy).
  bool copied() const { return copied_; }
  // Whether a power loss may have lost completed unsynced (ASYNC) appends: the
  // journal was not closed in order, and the machine has started since, or may
  // have.
  bool may_have_lost_power() const { return may_have_lost_power_; }
  // The consequences of both for the writer are handled and stored: the mark of
  // a copy is removed, and this boot of the machine counts. Both are false
  // then. Once, before other threads use this.
  absl::Status NoteRecovered();

  // How far the clock of the server that wrote the journal was behind the
  // machine's, at most, as NoteClockBehind said last. Not negative. The latter
  // replaces a small file, with a sync; RESOURCE_EXHAUSTED: no room on the disk.
  // Used by one thread.
  int64_t clock_behind_us() const { return clock_behind_us_; }
  absl::Status NoteClockBehind(int64_t behind_us);

  // One round of the committer: a group, a due sync, trimmed segments. For
  // tests, without a thread.
  void RunOnce() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Pending : LogAppend {
    Durability durability;
    AppendDone done;
    uint64_t bytes;  // of the records
  };
  // Written, and done with the sync of its group.
  struct Unsynced {
    Pending pending;
    uint64_t group;
    Time began;
  };

  LocalJournal(std::string directory, LocalJournalOptions options,
               std::unique_ptr<DirectoryLock> lock, LogWriter writer,
               RecoveredJournal recovered);

  static absl::Status NoPartition(uint32_t partition, uint32_t partitions);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasPending() const ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // When there is work without a call; infinity if there is none.
  Time NextDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The committer's, from here on.
  std::vector<Pending> TakeGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Commit(std::vector<Pending> group) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status WriteGroup(std::vector<Pending>* group, bool sync)
      ABSL_LOCKS_EXCLUDED(mu_);
  // What a commit that began then has changed, for all others to see.
  void Publish(const std::vector<Pending>& group, const absl::Status& status,
               Time began, bool syncs_behind) ABSL_LOCKS_EXCLUDED(mu_);
  // The appends of `unsynced_appends_` whose groups are synced by now, or never
  // will be.
  void FinishSynced() ABSL_LOCKS_EXCLUDED(mu_);
  void CountSyncs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetSyncDue(Time due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Sync() ABSL_LOCKS_EXCLUDED(mu_);
  // What is due: beside the committer, if there are threads. All that syncs
  // waits for its end first, so that an error is known before anything is done.
  void SyncDue() ABSL_LOCKS_EXCLUDED(mu_);
  void EndSync(bool wait) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether appends wait for a sync that is slow, and slower yet with each
  // write beside it.
  bool AwaitsSlowSync() const;
  void OnSyncEnded() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a group is done as it is synced; and whether that is for the
  // thread of syncs, since ASYNC appends have come lately, which must not wait
  // for it. Among SYNC ones alone, another thread costs more than it saves.
  static bool NeedsSync(const std::vector<Pending>& group);
  bool SyncsBehind(const std::vector<Pending>& group, Time now);
  // Whether the segment is so large that no more groups are written to it; and
  // whether it is large enough to start another one if that is quick.
  bool IsFull() const;
  bool MayRoll() const;
  bool MayStartSegment() const;
  // Starts another segment, or does so later.
  void Roll() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status StartSegment(DiskReserve* reserve) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a trim may remove the oldest segment, which is synced. One at a
  // time, as appends may wait for the thread that does: a file system takes
  // some 20 ms for one of 64 MiB.
  struct Trim {
    TrimPositions positions;
    bool has_segment = false;
  };
  Trim NextTrim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status RemoveTrimmed() ABSL_LOCKS_EXCLUDED(mu_);
  // On any thread.
  absl::Status Remove(const Trim& trim) ABSL_LOCKS_EXCLUDED(mu_);
  // Writes; and once more, if the disk is full and there is the reserve.
  absl::Status WithReserve(absl::FunctionRef<absl::Status()> write)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Goes on in the reserve, which is held. No sync may be in progress.
  void UseReserve() ABSL_LOCKS_EXCLUDED(mu_);
  // The room that the reserve should have, beside what is left of the room of
  // the last segment: so a reserve that is in use is made up for as it is used.
  uint64_t WantedReserve() const;
  // Takes it, if there is room, or says when to try again.
  absl::Status TakeReserve() ABSL_LOCKS_EXCLUDED(mu_);
  // As an earlier process has left it.
  absl::Status FindReserve() ABSL_LOCKS_EXCLUDED(mu_);
  // Counts a full disk; stops the journal after any other permanent error.
  void HandleError(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status stopped() const ABSL_LOCKS_EXCLUDED(mu_);
  // How many of the oldest segments neither a partition nor a backup needs.
  size_t UnneededSegments() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t TrimmedSegments() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant.
  const std::string directory_;
  const LocalJournalOptions options_;
  FileSystem* const files_;
  const std::unique_ptr<DirectoryLock> lock_;
  // Until NoteRecovered.
  bool copied_ = false;
  bool may_have_lost_power_ = false;
  int64_t clock_behind_us_ = 0;

  // The committer's alone, but for the identity, which is constant.
  LogWriter writer_;
  uint64_t trim_sequence_ = 0;
  DiskReserve reserve_;
  // Constant once it is open.
  uint64_t reserve_bytes_;
  // In the order of their groups.
  std::deque<Unsynced> unsynced_appends_;
  // When the last sync beside the commits began.
  Time sync_began_ = Time::min();
  // Until when ASYNC appends count as recent.
  Time mixed_until_ = Time::min();
  // The next attempt to start a segment, after one that failed.
  Time roll_due_ = Time::min();
  // The committer writes it.
  std::atomic<bool> low_space_{false};

  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kJournal);
  SteadyCondVar work_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> first_ ABSL_GUARDED_BY(mu_);
  // When the committer has to sync, or infinity. Not while a sync is in
  // progress, which may have ended.
  Time sync_due_ ABSL_GUARDED_BY(mu_) = Time::max();
  bool syncing_ ABSL_GUARDED_BY(mu_) = false;
  bool sync_ended_ ABSL_GUARDED_BY(mu_) = false;
  // Segments are to be removed: now, or after the next sync.
  bool trim_ ABSL_GUARDED_BY(mu_) = false;
  bool trim_behind_sync_ ABSL_GUARDED_BY(mu_) = false;
  // When to check for the reserve's room, or infinity.
  Time reserve_due_ ABSL_GUARDED_BY(mu_) = Time::max();
  // As of the last commit, from here on.
  LogEnd end_ ABSL_GUARDED_BY(mu_);
  std::deque<SegmentState> segments_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> ends_ ABSL_GUARDED_BY(mu_);
  // The oldest segment that each backup still needs.
  std::list<uint64_t> pins_ ABSL_GUARDED_BY(mu_);
  JournalStatistics statistics_ ABSL_GUARDED_BY(mu_);

  // The committer's.
  std::unique_ptr<BackgroundSync> background_;
  // Of the sync that has ended: how long it took, and the result of the trim
  // behind it.
  int64_t sync_took_us_ = 0;
  absl::Status trimmed_;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_LOCAL_JOURNAL_H_
