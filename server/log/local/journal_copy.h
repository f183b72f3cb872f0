// A journal that is put into a directory, file by file.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_COPY_H_
#define TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_COPY_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/log/local/backup_archive.h"
#include "server/log/local/file_system.h"
#include "server/log/local/journal_tools.h"

namespace timecache::server {

// Until Finish, the directory is not a journal in any case: the next copy
// removes the files that a crash leaves, and a server does not start with them.
// When Finish returns, all files are on the disk and have been verified.
//
// Not thread-safe.
class JournalCopy final : public ArchiveSink {
 public:
  // Into a directory that is missing, empty, or that an interrupted copy has
  // left. ALREADY_EXISTS: it holds a journal, or something else.
  // FAILED_PRECONDITION: in use by a server, or by another copy.
  static absl::StatusOr<std::unique_ptr<JournalCopy>> Begin(
      FileSystem* files, const std::string& directory);
  // Without Finish, removes the files that were put there.
  ~JournalCopy() override;
  JournalCopy(const JournalCopy&) = delete;
  JournalCopy& operator=(const JournalCopy&) = delete;

  // INVALID_ARGUMENT: not a file of a journal. LOCK, RESERVE and temporary
  // files are skipped. RESOURCE_EXHAUSTED: no room on the disk.
  absl::Status BeginFile(const std::string& name, uint64_t bytes) override;
  absl::Status AddBytes(absl::string_view bytes) override;
  absl::Status EndFile() override;

  // A whole archive, in pieces that `read` returns, none at its end.
  absl::Status AddArchive(
      absl::FunctionRef<absl::StatusOr<std::string>()> read);

  // Marks the journal as a copy (kCopyFile), and reads all of it. DATA_LOSS: it
  // is incomplete or damaged.
  absl::StatusOr<JournalReport> Finish();

 private:
  JournalCopy(FileSystem* files, std::string directory,
              std::unique_ptr<DirectoryLock> lock)
      : files_(files),
        directory_(std::move(directory)),
        lock_(std::move(lock)) {}
  std::string PathOf(const std::string& name) const;
  // All files that a copy may have put there.
  absl::Status Clear();

  FileSystem* const files_;
  const std::string directory_;
  std::unique_ptr<DirectoryLock> lock_;
  // Those that are there.
  std::set<std::string> names_;
  // Written at the end.
  std::string format_;
  // The one that is being written; passed over if there is no file_.
  std::string name_;
  std::unique_ptr<File> file_;
  uint64_t offset_ = 0;
  bool finished_ = false;
};

// Copies the archive on standard input into the directory. Errors as JournalCopy;
// INVALID_ARGUMENT: standard input is a terminal.
absl::StatusOr<JournalReport> RestoreInput(const std::string& directory);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_COPY_H_
