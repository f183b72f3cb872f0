#include "server/log/local/disk_reserve.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/log/local/journal_directory.h"

namespace timecache::server {
DiskReserve::DiskReserve(FileSystem* files, const std::string& directory)
    : files_(files), path_(absl::StrCat(directory, "/", kReserveFile)) {}

absl::Status DiskReserve::Take(uint64_t bytes) {
  if (bytes <= bytes_) {
    // One of another configuration.
    return held() ? absl::OkStatus() : RemoveIfThere(files_, path_);
  }
  absl::Status status = held() ? absl::OkStatus() : Open(bytes);
  if (status.ok()) status = file_->Allocate(bytes);
  if (status.ok()) {
    bytes_ = bytes;
  } else if (bytes_ == 0) {
    Free();
  }
  return status;
}

absl::Status DiskReserve::Open(uint64_t bytes) {
  auto file = files_->Open(path_);
  if (absl::IsNotFound(file.status())) file = files_->Create(path_);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  const auto size = file_->Size();
  if (!size.ok()) return size.status();
  const auto allocated = file_->Allocated();
  if (!allocated.ok()) return allocated.status();
  // Earlier versions filled it with zeros; a crash may have left a header; and
  // it may have been configured larger.
  if (*size > 0 || *allocated > bytes + kRoundedBytesMax) {
    return file_->Truncate(0);
  }
  if (*allocated > kRoundedBytesMax) {
    bytes_ = std::min(bytes, *allocated - kRoundedBytesMax);
  }
  return absl::OkStatus();
}

std::unique_ptr<File> DiskReserve::Give() {
  bytes_ = 0;
  return std::move(file_);
}

void DiskReserve::Free() {
  if (Give() != nullptr) files_->Remove(path_).IgnoreError();
}

}  // namespace timecache::server
