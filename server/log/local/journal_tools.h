// Tools for a journal's directory that no server has open.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_TOOLS_H_
#define TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_TOOLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/journal.h"
#include "server/log/local/file_system.h"
#include "server/log/local/segment.h"

namespace timecache::server {

// The readable part of a journal.
struct JournalReport {
  struct File {
    std::string path;
    uint64_t bytes = 0;
    uint64_t readable_bytes = 0;
    uint64_t groups = 0;
    // Empty for an intact one; otherwise the first problem, and where it is.
    std::string damage;
  };
  struct Partition {
    // The expected range, as far as is known, and its readable part.
    uint64_t first = 0;
    uint64_t end = 0;
    uint64_t records = 0;
    // Unless the journal is intact: records may be lost after the last readable
    // one.
    bool tail_lost = false;
  };
  JournalIdentity identity;
  std::vector<File> files;
  std::vector<Partition> partitions;
  // Why the journal cannot be opened; empty if it can.
  std::string damage;
  // Opening the journal and reading all of it succeeds. A torn tail, which
  // opening cuts, is damage to a file all the same.
  bool intact = false;

  // Whether there is such a tail.
  bool HasTornTail() const;
  // Records that can be read.
  uint64_t Records() const;
  // Records that are known to be missing; nothing is known of those after the
  // last readable one. 0 for an intact journal: those of a torn tail were never
  // acknowledged.
  uint64_t Lost() const;
  uint64_t Lost(const Partition& partition) const {
    return intact ? 0 : partition.end - partition.first - partition.records;
  }

  // One line for each file and each partition, and one for the whole.
  std::string ToString() const;
};

// Keeps every server from opening the journal until destroyed.
// FAILED_PRECONDITION: one has it open. Null if it cannot be locked: there may
// be no such directory.
absl::StatusOr<std::unique_ptr<DirectoryLock>> LockClosedJournal(
    FileSystem* files, const std::string& directory);

// Reads everything and changes nothing. NOT_FOUND: no journal. DATA_LOSS: not
// even its number of partitions can be read.
absl::StatusOr<JournalReport> CheckJournal(FileSystem* files,
                                           const std::string& directory);

// Visits the records of an intact journal, such as an unpacked backup or one that a
// server has closed: see Journal::Read, of all partitions from their first records on.
// Changes nothing. NOT_FOUND: no journal. DATA_LOSS: damaged.
absl::Status ReadClosedJournal(FileSystem* files, const std::string& directory,
                               Journal::Visitor visit);

// Copies what is readable into an empty or missing directory: a journal with
// another id, in which every record keeps its position; reads pass over the
// positions of lost ones. Where records may be lost at the end of a partition,
// one position is left out for them. Marked as a copy: lost events may have
// been delivered. Returns a report of the source. Errors: those of
// CheckJournal, and ALREADY_EXISTS for a directory that is not empty.
absl::StatusOr<JournalReport> SalvageJournal(FileSystem* files,
                                             const std::string& directory,
                                             const std::string& to);

// Copies an intact journal, such as an unpacked backup or one that a server has
// closed, to an empty or missing directory, with its id, and marks it as a
// copy. Returns a report of the copy. Errors: NOT_FOUND: no journal, also an
// unfinished backup. DATA_LOSS: it is not intact. Others as JournalCopy::Begin.
absl::StatusOr<JournalReport> RestoreJournal(FileSystem* files,
                                             const std::string& backup,
                                             const std::string& to);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_TOOLS_H_
