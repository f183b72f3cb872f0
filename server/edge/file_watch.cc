#include "server/edge/file_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/read_file.h"

namespace timecache::server {
namespace {

// File systems store times with their own resolution: a file that was changed
// this shortly before it was read may change again without a new time.
constexpr int64_t kTimestampDoubtSeconds = 3;

// The result of stat for a file; all zero if it cannot be found.
struct Trace {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  timespec modified = {};
  timespec changed = {};

  bool operator==(const Trace& other) const {
    return device == other.device && inode == other.inode &&
           size == other.size && modified.tv_sec == other.modified.tv_sec &&
           modified.tv_nsec == other.modified.tv_nsec &&
           changed.tv_sec == other.changed.tv_sec &&
           changed.tv_nsec == other.changed.tv_nsec;
  }
};

Trace TraceOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim, info.st_ctim};
}

uint64_t HashOf(const absl::StatusOr<std::string>& content) {
  // The reason counts: "no permission" after "not found" is news.
  return content.ok() ? absl::HashOf(true, *content)
                      : absl::HashOf(false, content.status().code());
}

}  // namespace

struct FileWatch::File {
  std::string path;
  // Of the last successful read. None: read it whatever stat says.
  std::optional<Trace> trace = std::nullopt;
  uint64_t hash = 0;
};

struct FileWatch::Set {
  std::vector<File> files;
  Callback changed;
  bool reported = false;
  // When the callback is called again about an unreadable file.
  absl::Time next_reminder = absl::InfiniteFuture();
};

FileWatch::FileWatch(std::function<absl::Time()> now)
    : now_(std::move(now)),
      spare_fd_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

FileWatch::~FileWatch() {
  std::vector<std::unique_ptr<Housekeeping::Task>> looks;
  {
    absl::MutexLock lock(&mu_);
    looks.swap(looks_);
  }
  looks.clear();
  absl::MutexLock lock(&mu_);
  if (spare_fd_ >= 0) close(spare_fd_);
}

absl::StatusOr<std::string> FileWatch::Read(const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile(path, kMaxFileBytes);
  // As without descriptors: clients may hold them all.
  if (absl::IsResourceExhausted(content.status()) && spare_fd_ >= 0) {
    close(std::exchange(spare_fd_, -1));
    content = ReadFile(path, kMaxFileBytes);
  }
  if (spare_fd_ < 0) spare_fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return content;
}

absl::Status FileWatch::Add(std::vector<std::string> paths,
                            absl::Duration interval, Callback changed) {
  absl::MutexLock lock(&mu_);
  if (files_ + paths.size() > kMaxFiles) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMaxFiles, " files to watch"));
  }
  files_ += paths.size();
  auto set = std::make_unique<Set>();
  for (std::string& path : paths) set->files.push_back({std::move(path)});
  set->changed = std::move(changed);
  Look(true, set.get());
  looks_.push_back(housekeeping_.Every(absl::ToChronoMicroseconds(interval),
                                       [this, watched = set.get()] {
                                         absl::MutexLock lock(&mu_);
                                         Look(false, watched);
                                       }));
  sets_.push_back(std::move(set));
  return absl::OkStatus();
}

void FileWatch::Check() {
  absl::MutexLock lock(&mu_);
  for (const auto& set : sets_) Look(true, set.get());
}

void FileWatch::Look(bool read_all, Set* set) {
  std::vector<Trace> traces;
  bool read = read_all;
  for (const File& file : set->files) {
    traces.push_back(TraceOf(file.path));
    read = read || !file.trace.has_value() || !(*file.trace == traces.back());
  }
  if (!read) return;

  const absl::Time now = now_();
  const int64_t now_s = absl::ToUnixSeconds(now);
  Contents contents;
  bool changed = !set->reported || now >= set->next_reminder;
  bool failed = false;
  for (size_t i = 0; i < set->files.size(); ++i) {
    File& file = set->files[i];
    contents.push_back(Read(file.path));
    const bool ok = contents.back().ok();
    failed = failed || !ok;
    const uint64_t hash = HashOf(contents.back());
    changed = changed || hash != file.hash;
    file.hash = hash;
    // The state is older than the content: a change in between is detected next
    // time.
    const bool doubtful =
        traces[i].changed.tv_sec + kTimestampDoubtSeconds > now_s;
    file.trace =
        ok && !doubtful ? std::optional<Trace>(traces[i]) : std::nullopt;
  }
  if (!failed) set->next_reminder = absl::InfiniteFuture();
  if (!changed) return;
  set->reported = true;
  if (failed) set->next_reminder = now + kFailureReminder;
  set->changed(contents);
}

}  // namespace timecache::server
