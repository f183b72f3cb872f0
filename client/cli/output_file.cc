#include "client/cli/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace timecache::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kStandardOutput[] = "/dev/stdout";
constexpr mode_t kNewMode = 0600;
constexpr mode_t kModeBits = 0777;
// As the kernel does.
constexpr int kMaxLinks = 40;

fs::path DirectoryOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Where the process's open descriptors have names, such as /proc/7/fd.
fs::path DescriptorDirectory() {
  std::error_code error;
  return fs::canonical("/proc/self/fd", error);
}

// The descriptor that a path from FollowLinks stands for, or -1. Opened by its
// name, a file would be written from its start, and a socket not at all.
int DescriptorOf(const fs::path& path) {
  int descriptor = -1;
  const bool is_one = path.parent_path() == DescriptorDirectory() &&
                      absl::SimpleAtoi(path.filename().string(), &descriptor);
  return is_one ? descriptor : -1;
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

absl::Status CannotCreate(const std::string& target) {
  return absl::ErrnoToStatus(errno,
                             absl::StrCat(target, ": cannot create a file in ",
                                          DirectoryOf(target).string()));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

std::string FollowLinks(const std::string& path) {
  const fs::path descriptors = DescriptorDirectory();
  fs::path current = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    std::error_code error;
    const fs::path parent = fs::canonical(DirectoryOf(current), error);
    if (error) return path;
    current = parent / current.filename();
    if (parent == descriptors) return current;
    const fs::path target = fs::read_symlink(current, error);
    if (error) return current;
    current = parent / target;
  }
  return path;
}

absl::StatusOr<Descriptor> OpenReplacement(const std::string& path,
                                           const std::string& target,
                                           const struct stat* existing) {
  Descriptor file(
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kNewMode));
  if (file.get() < 0) return CannotCreate(target);
  struct stat opened;
  struct stat named;
  // Another process may also have renamed it before it was locked here.
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0 ||
      fstat(file.get(), &opened) != 0 || lstat(path.c_str(), &named) != 0 ||
      !IsSameFile(opened, named)) {
    return absl::AbortedError(
        absl::StrCat(target, ": is in use by another timecachectl"));
  }
  if (!S_ISREG(opened.st_mode) || opened.st_uid != geteuid() ||
      opened.st_nlink != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": is not a file of this command: remove it, or write to a file "
        "of another name"));
  }
  const mode_t mode =
      existing == nullptr ? kNewMode : existing->st_mode & kModeBits;
  if (existing != nullptr) {
    // Only root may do so; the caller sees the result.
    [[maybe_unused]] const int owned =
        fchown(file.get(), existing->st_uid, existing->st_gid);
  }
  if (fchmod(file.get(), mode) != 0 || ftruncate(file.get(), 0) != 0) {
    return CannotCreate(target);
  }
  return file;
}

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path,
                                            Replace replace) {
  OutputFile file(path == "-" ? "standard output" : path);
  file.path_ = FollowLinks(path == "-" ? kStandardOutput : path);
  file.descriptor_ = path == "-" ? STDOUT_FILENO : DescriptorOf(file.path_);
  absl::Status status =
      file.descriptor_ >= 0
          ? file.Take(Descriptor(fcntl(file.descriptor_, F_DUPFD_CLOEXEC, 0)))
          : file.OpenFile(replace);
  if (!status.ok()) return status;
  return file;
}

OutputFile::~OutputFile() {
  // Of one that was moved from both are empty.
  if (stream_ != nullptr && !partial_.empty()) unlink(partial_.c_str());
}

absl::Status OutputFile::OpenFile(Replace replace) {
  // A file that may not be written is not replaced either.
  Descriptor there(open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  const bool exists = there.get() >= 0;
  if (!exists && errno != ENOENT) return Error();
  struct stat old = {};
  if (exists && fstat(there.get(), &old) != 0) return Error();
  if (exists && !S_ISREG(old.st_mode)) return Take(std::move(there));
  if (replace == Replace::kWhenWhole && old.st_nlink <= 1) {
    const std::string partial = path_ + ".partial";
    auto beside = OpenReplacement(partial, path_, exists ? &old : nullptr);
    struct stat now = {};
    const bool is_as_old =
        beside.ok() && fstat(beside->get(), &now) == 0 &&
        (!exists || (now.st_uid == old.st_uid && now.st_gid == old.st_gid));
    if (is_as_old) {
      partial_ = partial;
      return Take(*std::move(beside));
    }
    if (beside.ok()) unlink(partial.c_str());
    if (!beside.ok() &&
        !(exists && absl::IsPermissionDenied(beside.status()))) {
      return beside.status();
    }
  }
  if (exists) {
    if (ftruncate(there.get(), 0) != 0) return Error();
    return Take(std::move(there));
  }
  Descriptor made(
      open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewMode));
  return made.get() < 0 ? CannotCreate(path_) : Take(std::move(made));
}

absl::Status OutputFile::Take(Descriptor fd) {
  struct stat status;
  if (fd.get() < 0 || fstat(fd.get(), &status) != 0) return Error();
  is_regular_ = S_ISREG(status.st_mode);
  stream_.reset(fdopen(fd.get(), "w"));
  if (stream_ == nullptr) return Error();
  fd.Release();
  return absl::OkStatus();
}

absl::Status OutputFile::Write(std::string_view bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), stream()) == bytes.size()
             ? absl::OkStatus()
             : Error();
}

absl::Status OutputFile::Finish() {
  if (std::fflush(stream()) != 0) return Error();
  // A shell's redirection is not this command's to sync.
  const bool is_own = is_regular_ && descriptor_ < 0;
  if (is_own && fsync(fileno(stream())) != 0) return Error();
  if (partial_.empty()) return absl::OkStatus();
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) return Error();
  partial_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Error() {
  is_broken_pipe_ = errno == EPIPE;
  return absl::ErrnoToStatus(errno, name_);
}

}  // namespace timecache::cli
