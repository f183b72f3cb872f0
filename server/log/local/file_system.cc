#include "server/log/local/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

constexpr size_t kSmallFileBytesMax = size_t{1} << 20;
// Of st_blocks, on any file system.
constexpr uint64_t kStatBlockBytes = 512;

absl::Status Error(const std::string& path, int number) {
  absl::Status status = absl::ErrnoToStatus(number, path);
  // Only the disk's room is RESOURCE_EXHAUSTED here: these end by themselves.
  return number == EMFILE || number == ENFILE || number == ENOMEM
             ? absl::UnavailableError(status.message())
             : status;
}

class PosixFile final : public File {
 public:
  PosixFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  ~PosixFile() override { close(descriptor_); }

  absl::StatusOr<size_t> Read(uint64_t offset, size_t bytes,
                              char* to) const override {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t n = pread(descriptor_, to + done, bytes - done,
                              static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Error(path_, errno);
      if (n == 0) break;
      done += n;
    }
    return done;
  }

  absl::Status Write(uint64_t offset, absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = pwrite(descriptor_, data.data(), data.size(),
                               static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Error(path_, errno);
      data.remove_prefix(n);
      offset += n;
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t bytes) override {
    return Check(ftruncate(descriptor_, static_cast<off_t>(bytes)));
  }

  absl::Status Allocate(uint64_t bytes) override {
    WriteInPlace();
    int result;
    do {
      result = fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0,
                         static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    if (result == 0) return absl::OkStatus();
    absl::Status status = Error(path_, errno);
    return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL
               ? absl::UnimplementedError(status.message())
               : status;
  }

  absl::StatusOr<uint64_t> Allocated() const override {
    struct stat status;
    if (fstat(descriptor_, &status) != 0) return Error(path_, errno);
    return status.st_blocks * kStatBlockBytes;
  }

  absl::Status Sync() override { return Check(fdatasync(descriptor_)); }

  absl::StatusOr<uint64_t> Size() const override {
    struct stat status;
    if (fstat(descriptor_, &status) != 0) return Error(path_, errno);
    return status.st_size;
  }

 private:
  absl::Status Check(int result) const {
    return result == 0 ? absl::OkStatus() : Error(path_, errno);
  }

  // A file system that copies what is written over (btrfs) needs room for that
  // on each write to a block that is not new, unless the file got this flag
  // while it was empty. Others refuse it.
  void WriteInPlace() {
    int flags = 0;
    if (ioctl(descriptor_, FS_IOC_GETFLAGS, &flags) != 0) return;
    flags |= FS_NOCOW_FL;
    ioctl(descriptor_, FS_IOC_SETFLAGS, &flags);
  }

  const std::string path_;
  const int descriptor_;
};

class PosixLock final : public DirectoryLock {
 public:
  PosixLock(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  ~PosixLock() override {
    close(descriptor_);
    if (file_ >= 0) close(file_);
  }

  absl::Status Sync() override {
    return fsync(descriptor_) == 0 ? absl::OkStatus() : Error(path_, errno);
  }

  // Another lock that ends with this one.
  void Add(int file) { file_ = file; }

 private:
  const std::string path_;
  const int descriptor_;
  int file_ = -1;
};

class PosixFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path) override {
    return OpenFile(path, O_RDWR);
  }
  absl::StatusOr<std::unique_ptr<File>> OpenToRead(
      const std::string& path) override {
    return OpenFile(path, O_RDONLY);
  }
  absl::StatusOr<std::unique_ptr<File>> Create(
      const std::string& path) override {
    return OpenFile(path, O_RDWR | O_CREAT | O_TRUNC);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Check(from, rename(from.c_str(), to.c_str()));
  }
  absl::Status Remove(const std::string& path) override {
    return Check(path, unlink(path.c_str()));
  }
  absl::Status CreateDirectory(const std::string& path) override {
    if (mkdir(path.c_str(), 0700) == 0) {
      const size_t end = path.find_last_of('/');
      if (end == std::string::npos) return SyncDirectory(".");
      return SyncDirectory(path.substr(0, std::max<size_t>(end, 1)));
    }
    return errno == EEXIST ? absl::OkStatus() : Error(path, errno);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    const int descriptor =
        open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return Error(path, errno);
    const absl::Status status = Check(path, fsync(descriptor));
    close(descriptor);
    return status;
  }
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override {
    DIR* const directory = opendir(path.c_str());
    if (directory == nullptr) return Error(path, errno);
    std::vector<std::string> names;
    while (const dirent* const entry = readdir(directory)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    closedir(directory);
    return names;
  }
  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(
      const std::string& directory, const std::string& lock_file,
      LockedBy by) override {
    const int descriptor =
        open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return Error(directory, errno);
    auto lock = std::make_unique<PosixLock>(directory, descriptor);
    // NFS has no locks of directories.
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError(
          absl::StrCat(directory, ": in use by another server"));
    }
    const std::string path = absl::StrCat(directory, "/", lock_file);
    const int create = by == LockedBy::kWriter ? O_CREAT : 0;
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | create, 0600);
    if (file < 0) {
      if (by == LockedBy::kReader) return lock;
      return Error(path, errno);
    }
    lock->Add(file);
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK) return Error(path, errno);
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": in use by another server"));
  }

 private:
  static absl::Status Check(const std::string& path, int result) {
    return result == 0 ? absl::OkStatus() : Error(path, errno);
  }
  static absl::StatusOr<std::unique_ptr<File>> OpenFile(const std::string& path,
                                                        int flags) {
    const int descriptor = open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (descriptor < 0) return Error(path, errno);
    return std::make_unique<PosixFile>(path, descriptor);
  }
};

}  // namespace

FileSystem* FileSystem::Posix() {
  static auto* const posix = new PosixFileSystem;
  return posix;
}

absl::StatusOr<std::string> ReadSmallFile(FileSystem* files,
                                          const std::string& path) {
  auto file = files->OpenToRead(path);
  if (!file.ok()) return file.status();
  const auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  if (*size > kSmallFileBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": too long"));
  }
  std::string data(*size, '\0');
  const auto read = (*file)->Read(0, data.size(), data.data());
  if (!read.ok()) return read.status();
  data.resize(*read);
  return data;
}

absl::Status WriteFileAtomically(FileSystem* files,
                                 const std::string& directory,
                                 const std::string& name,
                                 absl::string_view data) {
  const std::string path = absl::StrCat(directory, "/", name);
  const std::string temporary = absl::StrCat(path, kTemporarySuffix);
  auto file = files->Create(temporary);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Write(0, data);
  if (status.ok()) status = (*file)->Sync();
  if (status.ok()) status = files->Rename(temporary, path);
  if (!status.ok()) {
    files->Remove(temporary).IgnoreError();
    return status;
  }
  return files->SyncDirectory(directory);
}

absl::Status RemoveIfThere(FileSystem* files, const std::string& path) {
  absl::Status status = files->Remove(path);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status CreateEmptyDirectory(FileSystem* files, const std::string& path) {
  absl::Status status = files->CreateDirectory(path);
  if (!status.ok()) return status;
  const auto names = files->List(path);
  if (!names.ok()) return names.status();
  if (!names->empty()) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": is not empty"));
  }
  return status;
}

}  // namespace timecache::server
