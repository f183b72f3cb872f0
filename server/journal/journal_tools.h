// What is done with a journal's directory that no server has open.

#ifndef TIMECACHED_SERVER_JOURNAL_JOURNAL_TOOLS_H_
#define TIMECACHED_SERVER_JOURNAL_JOURNAL_TOOLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/journal/file_system.h"
#include "server/journal/segment.h"

namespace timecache::server {

// What can be read of a journal.
struct JournalReport {
  struct File {
    std::string path;
    uint64_t bytes = 0;
    uint64_t readable_bytes = 0;
    uint64_t groups = 0;
    // Empty for an intact one; otherwise what is wrong first, and where.
    std::string damage;
  };
  struct Partition {
    // The range that should be there, and how much of it is.
    uint64_t first = 0;
    uint64_t end = 0;
    uint64_t records = 0;
  };
  JournalIdentity identity;
  std::vector<File> files;
  std::vector<Partition> partitions;
  // Opening the journal and reading all of it succeeds. A torn tail, which
  // opening cuts, is damage to a file all the same.
  bool intact = false;

  // One line for each file and each partition, and one for the whole.
  std::string ToString() const;
};

// Reads everything and changes nothing. NOT_FOUND: no journal. DATA_LOSS: not
// even its number of partitions can be read.
absl::StatusOr<JournalReport> CheckJournal(FileSystem* files,
                                           const std::string& directory);

// Copies what is readable into an empty or missing directory: a journal with
// another id, in which every record keeps its position; reads pass over the
// positions of lost ones. Reports what was there. Errors: those of
// CheckJournal, and ALREADY_EXISTS for a directory that is not empty.
absl::StatusOr<JournalReport> SalvageJournal(FileSystem* files,
                                             const std::string& directory,
                                             const std::string& to);

// Copies an intact journal, such as LocalJournal::Backup makes, to an empty or
// missing directory, with its id. DATA_LOSS if it is not intact.
absl::Status RestoreJournal(FileSystem* files, const std::string& backup,
                            const std::string& to);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_JOURNAL_TOOLS_H_
