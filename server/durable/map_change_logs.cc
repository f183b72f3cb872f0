// What the change logs of all maps share: the journal, its room, and the memory
// of records.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/durable/map_change_log.h"

namespace timecache::server {
namespace {

// The memory of a record is kept if it has at least this capacity, and all that
// is kept of all maps' together at most the other.
constexpr size_t kSpareBytesMin = size_t{1} << 10;
constexpr size_t kSpareBytesMax = size_t{16} << 20;
// When to retry: some commits later.
constexpr int64_t kRetryAfterUs = 20'000;

absl::Status DiskFull() {
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kDiskFull,
      "the disk of the server's journal is full: nothing is written until "
      "there is room");
}

}  // namespace

MapChangeLogs::MapChangeLogs(std::unique_ptr<Journal> journal,
                             MapChangeLogsOptions options)
    : options_(std::move(options)), journal_(std::move(journal)) {
  if (options_.confirm) {
    confirmations_ =
        std::make_shared<ReadConfirmations>(options_.confirm, &answers_);
  }
}

// A permit may still have a map, whose destruction reports its last changes.
// Changes that a full disk has not accepted by now are not retried: no call was
// answered as if they were stored. The journal is not reset here: its last
// commits may append more.
MapChangeLogs::~MapChangeLogs() {
  work_.Drain();
  if (confirmations_ != nullptr) confirmations_->Close();
  answers_.Drain();
}

std::string MapChangeLogs::TakeSpare() {
  absl::MutexLock lock(&spares_mu_);
  if (spares_.empty()) return {};
  std::string spare = std::move(spares_.back());
  spares_.pop_back();
  spare_bytes_ -= spare.capacity();
  return spare;
}

void MapChangeLogs::Recycle(std::vector<std::string> records) {
  absl::MutexLock lock(&spares_mu_);
  for (std::string& record : records) {
    if (record.capacity() < kSpareBytesMin ||
        spare_bytes_ + record.capacity() > kSpareBytesMax) {
      continue;
    }
    spare_bytes_ += record.capacity();
    spares_.push_back(std::move(record));
  }
}

std::shared_ptr<ChangeLog> MapChangeLogs::Begin(
    const std::shared_ptr<TimeCacheMap>& map) {
  auto log = std::make_shared<MapChangeLog>(this, map);
  log->AppendCreated();
  return log;
}

std::shared_ptr<MapChangeLog> MapChangeLogs::Resume(
    const std::shared_ptr<TimeCacheMap>& map) {
  return std::make_shared<MapChangeLog>(this, map);
}

absl::Status MapChangeLogs::OwnershipLost() {
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, Reason::kOwnershipLost,
      "this node has lost the ownership, or cannot reach the cluster's log, "
      "while the call waited: what it writes may or may not be stored");
}

MapChangeLog* MapChangeLogs::Of(const TimeCacheMap& map) const {
  return static_cast<MapChangeLog*>(map.change_log());
}

// A cluster's journal has no room only where it has stopped.
absl::Status MapChangeLogs::NoRoom() const {
  return options_.kind == JournalKind::kCluster ? OwnershipLost() : DiskFull();
}

absl::Status MapChangeLogs::CheckRoom() const {
  return disk_full() ? NoRoom() : CheckBacklog();
}

absl::Status MapChangeLogs::CheckBacklog() const {
  const int64_t bytes = open_bytes();
  if (bytes <= open_bytes_max()) return absl::OkStatus();
  return WithRetryAfter(
      ErrorWithReason(absl::StatusCode::kResourceExhausted,
                      Reason::kJournalBacklog,
                      absl::StrCat("the server's journal is too slow: ", bytes,
                                   " bytes wait for it, and at most ",
                                   open_bytes_max(), " may")),
      kRetryAfterUs);
}

}  // namespace timecache::server
