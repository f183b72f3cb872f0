#include "server/journal/local/disk_reserve.h"

#include "absl/strings/str_cat.h"
#include "server/journal/local/journal_directory.h"

namespace timecache::server {

DiskReserve::DiskReserve(FileSystem* files, const std::string& directory,
                         uint64_t bytes)
    : files_(files),
      path_(absl::StrCat(directory, "/", kReserveFile)),
      bytes_(bytes) {}

absl::Status DiskReserve::Take() {
  if (held_) return absl::OkStatus();
  if (bytes_ == 0) {
    // One of another configuration.
    return RemoveIfThere(files_, path_);
  }
  absl::Status status;
  {
    auto file = files_->Create(path_);
    if (!file.ok()) return file.status();
    status = (*file)->Allocate(bytes_);
  }
  held_ = status.ok();
  if (!held_) files_->Remove(path_).IgnoreError();
  return status;
}

bool DiskReserve::Give() {
  if (!held_) return false;
  held_ = false;
  return files_->Remove(path_).ok();
}

}  // namespace timecache::server
