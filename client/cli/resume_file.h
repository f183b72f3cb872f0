// Where a watch stopped, in a file that outlives its process.

#ifndef TIMECACHED_CLIENT_CLI_RESUME_FILE_H_
#define TIMECACHED_CLIENT_CLI_RESUME_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace timecache::cli {

// A small JSON file with the resume token of each namespace of one watch. What
// is on the disk is whole at every moment: it is written beside the file
// (<path>.tmp), synced, and renamed over it, with the mode and owner that it
// had; a new one gets mode 0600. While it is open no other ResumeFile of that
// path can be opened.
//
// Not thread-safe. Record costs an fsync.
class ResumeFile {
 public:
  static constexpr size_t kMaxFileBytes = 1 << 20;

  // Reads the file for a watch of `namespaces`, or makes it where there is
  // none. Fails, and says what to do, if it is damaged, of other namespaces, in
  // use, or cannot be written; it is then left as it is.
  static absl::StatusOr<ResumeFile> Open(
      const std::string& path, const std::vector<std::string>& namespaces);

  ResumeFile(ResumeFile&& other) noexcept;
  ResumeFile& operator=(ResumeFile&& other) = delete;
  ~ResumeFile();

  // To go on with: by namespace, the token that was recorded last, by this
  // process or an earlier one, where there is one.
  std::map<std::string, std::string> tokens() const;
  // Everything of the namespace that died up to then is behind its token;
  // absl::InfinitePast() if it has none.
  absl::Time watermark(const std::string& ns) const;

  // Goes on behind `token` from now on. Once it returns, this survives the end
  // of the process and of the machine.
  absl::Status Record(const std::string& ns, const std::string& token,
                      absl::Time watermark);

  // The error of a file whose content is of no use, and what to do about it.
  absl::Status Damaged(const std::string& why) const;

 private:
  struct Place {
    std::string token;  // Empty: none yet.
    absl::Time watermark = absl::InfinitePast();
  };

  ResumeFile(std::string path, const std::vector<std::string>& namespaces);

  absl::Status Read();
  absl::Status Parse(const std::string& text);
  absl::Status Save();
  absl::Status CheckStillOurs() const;
  // "<path>: what: error of the system".
  absl::Status SystemError(const char* what) const;
  std::string Text() const;

  std::string path_;
  std::map<std::string, Place> places_;  // One for each namespace.
  // The file as it was written or read last, locked; -1: none yet.
  int fd_ = -1;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_RESUME_FILE_H_
