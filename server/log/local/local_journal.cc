#include "server/log/local/local_journal.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/failpoint.h"

namespace timecache::server {
namespace {

void PrintAndAbort(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  std::abort();
}

// From here on this boot of the machine counts.
absl::Status NoteBoot(FileSystem* files, const std::string& directory,
                      const LocalJournalOptions& options) {
  const auto noted = ReadBoot(files, directory);
  if (!noted.ok()) return noted.status();
  if (*noted == options.boot_id) return absl::OkStatus();
  absl::Status status = WriteBoot(files, directory, options.boot_id);
  // Without it, the next start after a crash assumes another boot.
  return absl::IsResourceExhausted(status) ? absl::OkStatus() : status;
}

}  // namespace

absl::Status LocalJournal::NoPartition(uint32_t partition,
                                       uint32_t partitions) {
  return absl::InvalidArgumentError(
      absl::StrCat("partition ", partition, " of ", partitions));
}

absl::StatusOr<std::unique_ptr<LocalJournal>> LocalJournal::Open(
    const std::string& directory, LocalJournalOptions options) {
  if (options.partitions > kPartitionsMax) {
    return NoPartition(options.partitions, kPartitionsMax);
  }
  if (options.boot_id.empty()) options.boot_id = MachineBootId();
  if (!options.on_failure) options.on_failure = PrintAndAbort;
  FileSystem* const files = options.files;
  absl::Status status = files->CreateDirectory(directory);
  if (!status.ok()) return status;
  auto lock = files->Lock(directory, kLockFile, FileSystem::LockedBy::kWriter);
  if (!lock.ok()) return lock.status();
  const auto format = ReadFormat(files, directory);
  if (absl::IsNotFound(format.status())) {
    if (options.partitions == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(directory, ": no journal, and no number of partitions"));
    }
    status = CreateJournal(files, directory, options.partitions);
    if (!status.ok()) return status;
  }
  auto recovered = RecoverJournal(files, directory);
  if (absl::IsResourceExhausted(recovered.status()) &&
      files->Remove(absl::StrCat(directory, "/", kReserveFile)).ok()) {
    // A file system that needs room to write over what is there (btrfs).
    recovered = RecoverJournal(files, directory);
  }
  if (!recovered.ok()) return recovered.status();
  if (options.partitions != 0 &&
      options.partitions != recovered->identity.partitions) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, ": has ", recovered->identity.partitions,
                     " partitions, not ", options.partitions));
  }
  const auto copied = IsMarkedAsCopy(files, directory);
  if (!copied.ok()) return copied.status();
  const auto boot_id = ReadBoot(files, directory);
  if (!boot_id.ok()) return boot_id.status();
  const auto clock_behind_us = ReadClockBehind(files, directory);
  if (!clock_behind_us.ok()) return clock_behind_us.status();
  // A new one has nothing to lose.
  const bool may_have_lost_power =
      format.ok() && !recovered->closed &&
      (boot_id->empty() || *boot_id != options.boot_id);
  // What END said is said by BOOT before END is gone: nothing was lost before
  // this boot.
  if (!may_have_lost_power) status = NoteBoot(files, directory, options);
  // END is removed before the log grows, otherwise after a crash in between the
  // rest would seem missing.
  if (status.ok()) {
    status = RemoveIfThere(files, absl::StrCat(directory, "/", kEndFile));
  }
  if (status.ok()) status = files->SyncDirectory(directory);
  LogWriter writer(files, directory, lock->get(), *recovered);
  if (status.ok()) status = writer.Start();
  if (!status.ok()) return status;
  std::unique_ptr<LocalJournal> journal(
      new LocalJournal(directory, std::move(options), *std::move(lock),
                       std::move(writer), *std::move(recovered)));
  journal->copied_ = *copied;
  journal->clock_behind_us_ = *clock_behind_us;
  journal->may_have_lost_power_ = may_have_lost_power;
  status = journal->FindReserve();
  if (!status.ok()) return status;
  Failpoint("open.end");
  if (journal->options_.own_thread) {
    journal->background_ = std::make_unique<BackgroundSync>(
        [journal = journal.get()] { journal->OnSyncEnded(); });
    journal->thread_ =
        std::thread([journal = journal.get()] { journal->Run(); });
  }
  return journal;
}

LocalJournal::LocalJournal(std::string directory, LocalJournalOptions options,
                           std::unique_ptr<DirectoryLock> lock,
                           LogWriter writer, RecoveredJournal recovered)
    : directory_(std::move(directory)),
      options_(std::move(options)),
      files_(options_.files),
      lock_(std::move(lock)),
      writer_(std::move(writer)),
      trim_sequence_(recovered.trim.sequence),
      reserve_(files_, directory_),
      reserve_bytes_(options_.reserve_bytes),
      first_(std::move(recovered.trim.first)),
      end_(writer_.end()),
      segments_(recovered.segments.begin(), recovered.segments.end()),
      ends_(std::move(recovered.ends)) {}

LocalJournal::~LocalJournal() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    work_.Signal();
  }
  if (thread_.joinable()) thread_.join();
  while (HasPending()) RunOnce();
  EndSync(/*wait=*/true);
  absl::Status status = stopped();
  if (status.ok()) {
    Failpoint("close.begin");
    status = WithReserve([this] { return Sync(); });
    if (!status.ok()) HandleError(status);
  }
  FinishSynced();
  if (!status.ok()) return;
  TrimPositions trim;
  trim.sequence = ++trim_sequence_;
  {
    absl::MutexLock lock(&mu_);
    trim.first = first_;
  }
  // Without END, the journal is recovered as after a crash.
  OverwriteTrim(files_, directory_, writer_.identity(), trim).IgnoreError();
  // A start that ended before its recovery has not dealt with what may be lost:
  // END would hide it from the next one.
  if (writer_.Finish().ok() && !may_have_lost_power_) {
    WriteEnd(files_, directory_, writer_.end()).IgnoreError();
  }
  Failpoint("close.written");
}

absl::Status LocalJournal::NoteClockBehind(int64_t behind_us) {
  absl::Status status = WriteClockBehind(files_, directory_, behind_us);
  if (status.ok()) clock_behind_us_ = behind_us;
  return status;
}

absl::Status LocalJournal::NoteRecovered() {
  absl::Status status;
  if (copied_) status = UnmarkAsCopy(files_, directory_);
  if (status.ok()) status = NoteBoot(files_, directory_, options_);
  if (!status.ok()) return status;
  copied_ = false;
  may_have_lost_power_ = false;
  return absl::OkStatus();
}

void LocalJournal::Append(uint32_t partition, std::vector<std::string> records,
                          Durability durability, AppendDone done) {
  uint64_t bytes = 0;
  for (const std::string& record : records) bytes += record.size();
  absl::Status status;
  if (partition >= partitions()) {
    status = NoPartition(partition, partitions());
  } else if (records.empty() || bytes > kAppendBytesMax) {
    status = absl::InvalidArgumentError(
        absl::StrCat("an append of ", records.size(), " records and ", bytes,
                     " bytes; at most ", kAppendBytesMax));
  } else {
    absl::MutexLock lock(&mu_);
    status = stopped_;
    if (status.ok()) {
      Pending& pending = pending_.emplace_back();
      pending.partition = partition;
      pending.records = std::move(records);
      pending.durability = durability;
      pending.done = std::move(done);
      pending.bytes = bytes;
      // Otherwise the committer is awake, or was woken for earlier appends.
      if (pending_.size() == 1) work_.Signal();
    }
  }
  if (!status.ok()) done(status, std::move(records));
}

bool LocalJournal::HasPending() const {
  absl::MutexLock lock(&mu_);
  return !pending_.empty();
}

bool LocalJournal::HasWork() const {
  return !pending_.empty() || trim_ || sync_ended_ ||
         options_.now() >= NextDue();
}

LocalJournal::Time LocalJournal::NextDue() const {
  return std::min(syncing_ ? Time::max() : sync_due_, reserve_due_);
}

void LocalJournal::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      while (!HasWork()) {
        if (stopping_) return;
        const Time due = NextDue();
        if (due == Time::max()) {
          work_.Wait(&mu_);
        } else {
          work_.WaitUntil(&mu_, due);
        }
      }
    }
    RunOnce();
  }
}

void LocalJournal::RunOnce() {
  EndSync(/*wait=*/AwaitsSlowSync());
  FinishSynced();
  if (MayRoll()) Roll();
  std::vector<Pending> group;
  {
    absl::MutexLock lock(&mu_);
    group = TakeGroup();
  }
  if (!group.empty()) Commit(std::move(group));
  bool sync = false;
  bool trim = false;
  bool reserve = false;
  {
    absl::MutexLock lock(&mu_);
    sync = stopped_.ok() && !syncing_ && options_.now() >= sync_due_;
    if (background_ != nullptr && writer_.unsynced_bytes() > 0) {
      trim_behind_sync_ |= std::exchange(trim_, false);
    }
    trim = std::exchange(trim_, false) && stopped_.ok();
    reserve = stopped_.ok() && options_.now() >= reserve_due_;
  }
  if (sync) SyncDue();
  if (trim) {
    EndSync(/*wait=*/true);
    absl::Status status = WithReserve([this] { return RemoveTrimmed(); });
    if (!status.ok()) HandleError(status);
  }
  if (reserve) TakeReserve().IgnoreError();
  FinishSynced();
}

std::vector<LocalJournal::Pending> LocalJournal::TakeGroup() {
  std::vector<Pending> group;
  uint64_t bytes = 0;
  while (!pending_.empty() &&
         (group.empty() || bytes + pending_.front().bytes <= kGroupBytesMax)) {
    bytes += pending_.front().bytes;
    group.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  return group;
}

void LocalJournal::Commit(std::vector<Pending> group) {
  Failpoint("commit.begin");
  const Time began = options_.now();
  const bool rolls = IsFull();
  const bool behind = SyncsBehind(group, began);
  const bool sync = !behind && NeedsSync(group);
  if (rolls || sync || !writer_.MayWrite()) EndSync(/*wait=*/true);
  if (rolls) Roll();
  absl::Status status = stopped();
  if (status.ok()) {
    status = WithReserve([&] { return WriteGroup(&group, sync); });
    if (!status.ok()) HandleError(status);
    if (const absl::Status stop = stopped(); !stop.ok()) status = stop;
  }
  Publish(group, status, began, behind);
  if (!low_space_ && WantedReserve() > reserve_.bytes()) {
    TakeReserve().IgnoreError();
  }
  Failpoint("commit.published");
  const uint64_t number = writer_.end().next_group - 1;
  for (Pending& pending : group) {
    if (behind && status.ok() && pending.durability == Durability::kSync) {
      unsynced_appends_.push_back({std::move(pending), number, began});
      continue;
    }
    pending.done(status.ok() ? absl::StatusOr<uint64_t>(pending.position)
                             : absl::StatusOr<uint64_t>(status),
                 std::move(pending.records));
  }
  FinishSynced();
}

absl::Status LocalJournal::WriteGroup(std::vector<Pending>* group, bool sync) {
  std::vector<LogAppend*> appends;
  appends.reserve(group->size());
  for (Pending& pending : *group) appends.push_back(&pending);
  std::stable_sort(appends.begin(), appends.end(),
                   [](const LogAppend* a, const LogAppend* b) {
                     return a->partition < b->partition;
                   });
  return writer_.WriteGroup(appends, sync);
}

void LocalJournal::Publish(const std::vector<Pending>& group,
                           const absl::Status& status, Time began,
                           bool syncs_behind) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      options_.now() - began);
  absl::MutexLock lock(&mu_);
  CountSyncs();
  if (!status.ok()) return;
  ends_ = writer_.positions();
  statistics_.written_bytes += writer_.end().bytes - end_.bytes;
  end_ = writer_.end();
  segments_.back().bytes = end_.bytes;
  SetSyncDue(writer_.unsynced_bytes() > 0
                 ? std::min(sync_due_, syncs_behind
                                           ? began
                                           : began + options_.sync_interval)
                 : Time::max());
  for (const Pending& pending : group) {
    statistics_.appended_bytes += pending.bytes;
    statistics_.records += pending.records.size();
  }
  statistics_.appends += group.size();
  ++statistics_.commits;
  if (!syncs_behind) statistics_.commit_latency.Add(took.count());
}

bool LocalJournal::IsFull() const {
  const uint64_t bytes = writer_.end().bytes;
  if (bytes < options_.segment_bytes || !MayStartSegment()) return false;
  return background_ == nullptr || writer_.unsynced_bytes() == 0 ||
         bytes >= options_.segment_bytes + kUnsyncedBytesMax;
}

bool LocalJournal::MayRoll() const {
  return background_ != nullptr && !background_->under_way() &&
         writer_.end().bytes >= options_.segment_bytes && MayStartSegment() &&
         writer_.unsynced_bytes() <= kRollUnsyncedBytesMax && stopped().ok();
}

absl::Status LocalJournal::StartSegment(DiskReserve* reserve) {
  absl::Status status = writer_.StartSegment(reserve);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mu_);
  end_ = writer_.end();
  segments_.push_back({end_.segment, end_.bytes, writer_.positions()});
  statistics_.written_bytes += end_.bytes;
  trim_ = TrimmedSegments() > 0;
  return status;
}

void LocalJournal::HandleError(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    if (!stopped_.ok()) return;
    if (absl::IsResourceExhausted(status)) {
      ++statistics_.full_errors;
      return;
    }
    // Undone, as for a full disk, and retried by the appending thread.
    if (absl::IsUnavailable(status)) return;
    stopped_ = absl::FailedPreconditionError(
        absl::StrCat("the journal has stopped: ", status.ToString()));
    sync_due_ = Time::max();
  }
  options_.on_failure(absl::StrCat("timecached: journal ", directory_,
                                   " stops: ", status.ToString()));
}

absl::Status LocalJournal::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

uint64_t LocalJournal::First(uint32_t partition) const {
  absl::MutexLock lock(&mu_);
  return first_[partition];
}

uint64_t LocalJournal::End(uint32_t partition) const {
  absl::MutexLock lock(&mu_);
  return ends_[partition];
}

JournalStatistics LocalJournal::statistics() const {
  absl::MutexLock lock(&mu_);
  JournalStatistics statistics = statistics_;
  statistics.segments = segments_.size();
  statistics.low_space = low_space();
  const size_t unneeded = UnneededSegments();
  for (size_t i = 0; i < segments_.size(); ++i) {
    statistics.disk_bytes += segments_[i].bytes;
    // A backup may still have it.
    if (i < unneeded) continue;
    statistics.needed_bytes += segments_[i].bytes;
    if (i + 1 < segments_.size()) {
      statistics.closed_bytes += segments_[i].bytes;
    }
  }
  return statistics;
}

}  // namespace timecache::server
