// The files that commands write.

#ifndef TIMECACHED_CLIENT_CLI_OUTPUT_FILE_H_
#define TIMECACHED_CLIENT_CLI_OUTPUT_FILE_H_

#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace timecache::cli {

// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  ~Descriptor();

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The absolute path of the file that `path` names, behind its symbolic links;
// also of one that does not exist yet. `path` itself if its directory does not
// exist.
std::string FollowLinks(const std::string& path);

// An empty file with this path, to be renamed over `target` once it is whole:
// locked until it is closed, with the mode of `existing`, and its owner where
// the process may set that; without one (null) with mode 0600. Fails if another
// process has it locked, or if it cannot be written; a file of another user at
// `path` is refused, because its owner could change it.
absl::StatusOr<Descriptor> OpenReplacement(const std::string& path,
                                           const std::string& target,
                                           const struct stat* existing);

// A file, device, FIFO or open descriptor (/dev/stdout, /dev/fd/3) that a
// command writes from its start to its end. Symbolic links are followed. What
// is not a regular file is written through and stays what it is. A regular file
// keeps its mode and owner; a new one gets mode 0600. Not thread-safe.
class OutputFile {
 public:
  enum class Replace {
    // A regular file gets its content at Finish, by a rename of PATH.partial,
    // unless that would change its owner or its other hard links, or the
    // directory takes no new file: then as with kInPlace.
    kWhenWhole,
    kInPlace,  // For a reader that follows the file.
  };

  // `path`: "-" is standard output. A FIFO waits for its reader.
  static absl::StatusOr<OutputFile> Open(const std::string& path,
                                         Replace replace);

  OutputFile(OutputFile&&) = default;
  // Removes PATH.partial without Finish.
  ~OutputFile();

  // Buffered; a write that fails may do so at Finish.
  absl::Status Write(std::string_view bytes);
  // Flushes; syncs a regular file, and gives it its name.
  absl::Status Finish();

  std::FILE* stream() const { return stream_.get(); }
  bool is_standard_output() const { return descriptor_ == 1; }
  bool is_regular() const { return is_regular_; }
  // The reader of a pipe has closed it.
  bool is_broken_pipe() const { return is_broken_pipe_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  explicit OutputFile(std::string name) : name_(std::move(name)) {}

  absl::Status OpenFile(Replace replace);
  absl::Status Take(Descriptor fd);
  absl::Status Error();

  std::string name_;     // As the caller gave it.
  std::string path_;     // Behind links.
  std::string partial_;  // Empty: written in place.
  int descriptor_ = -1;  // An open one that `name_` stands for.
  bool is_regular_ = false;
  bool is_broken_pipe_ = false;
  std::unique_ptr<std::FILE, Closer> stream_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_OUTPUT_FILE_H_
