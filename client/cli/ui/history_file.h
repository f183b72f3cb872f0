// The lines that a user has typed, kept for the next time.

#ifndef TIMECACHED_CLIENT_CLI_UI_HISTORY_FILE_H_
#define TIMECACHED_CLIENT_CLI_UI_HISTORY_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace timecache::cli {

// The last kMaxLines of them, which may have values in them, in a file that only
// the user may read. A line that begins with a space is not kept, as in bash. A
// file that cannot be read or written is as if there were none. Not thread-safe.
class HistoryFile {
 public:
  static constexpr size_t kMaxLines = 1'000;
  // A longer line is not kept.
  static constexpr size_t kMaxLineBytes = 4'096;

  // Empty: none is kept.
  explicit HistoryFile(std::string path);

  // The oldest first.
  const std::vector<std::string>& lines() const { return lines_; }
  void Add(const std::string& line);

 private:
  void Rewrite() const;

  const std::string path_;
  std::vector<std::string> lines_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_HISTORY_FILE_H_
