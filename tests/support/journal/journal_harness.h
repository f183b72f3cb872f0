// A journal that a test commits by hand, beside what it must have.

#ifndef TIMECACHED_TESTS_SUPPORT_JOURNAL_JOURNAL_HARNESS_H_
#define TIMECACHED_TESTS_SUPPORT_JOURNAL_JOURNAL_HARNESS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/log/local/local_journal.h"
#include "tests/support/journal/memory_file_system.h"

namespace timecache::server {

inline constexpr char kTestDirectory[] = "/journal";

// The records of a partition by position.
using RecordsByPosition = std::map<uint64_t, std::string>;

// All records of all partitions from First on, or why they cannot be read.
struct ReadResult {
  absl::Status status;
  std::vector<RecordsByPosition> partitions;
};
ReadResult ReadAll(const Journal& journal);

// Puts a backup of the journal into a directory, in pieces of so many bytes.
absl::Status BackUp(LocalJournal* journal, FileSystem* files,
                    const std::string& to, size_t piece_bytes = 1 << 20);
// The archive of one.
std::string ArchiveOf(LocalJournal* journal);
// Makes a directory of it.
absl::Status Unpack(const std::string& archive, FileSystem* files,
                    const std::string& to, size_t piece_bytes = 1 << 20);

// A journal on a disk in memory, without a thread, at a time that stands still.
class JournalHarness {
 public:
  explicit JournalHarness(uint32_t partitions = 2,
                          uint64_t segment_bytes = 4096);

  // Closes and opens again. Returns why it was not opened.
  absl::Status Open();
  void Close() { journal_ = nullptr; }
  // Leaves it as kill -9 does: what was written is there, nothing is closed.
  void Crash();

  // Appends, and returns the index of its result in `results`.
  size_t Append(uint32_t partition, std::vector<std::string> records,
                Durability durability = Durability::kSync);
  // Appends, commits and returns the position.
  absl::StatusOr<uint64_t> AppendNow(uint32_t partition, std::string record,
                                     Durability durability = Durability::kSync);
  void RunOnce() { journal_->RunOnce(); }
  // Until all trimmed segments are removed, one in each round.
  void RunUntilTrimmed() {
    uint64_t before;
    do {
      before = journal_->statistics().segments;
      RunOnce();
    } while (journal_->statistics().segments < before);
  }

  LocalJournal& journal() { return *journal_; }
  MemoryFileSystem& files() { return *files_; }
  void UseFiles(std::unique_ptr<MemoryFileSystem> files);
  LocalJournalOptions& options() { return options_; }
  void Advance(std::chrono::microseconds by) { now_ += by; }
  const std::vector<absl::StatusOr<uint64_t>>& results() const {
    return results_;
  }
  const std::vector<std::string>& failures() const { return failures_; }
  // The last segment's path.
  std::string LastSegment() const;

 private:
  std::unique_ptr<MemoryFileSystem> files_ =
      std::make_unique<MemoryFileSystem>();
  // Disks that were left by a crash, with journals that still refer to them.
  std::vector<std::unique_ptr<MemoryFileSystem>> old_files_;
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  LocalJournalOptions options_;
  std::vector<absl::StatusOr<uint64_t>> results_;
  std::vector<std::string> failures_;
  std::unique_ptr<LocalJournal> journal_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_JOURNAL_JOURNAL_HARNESS_H_
