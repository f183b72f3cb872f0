#include "server/main/cluster_backup.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/log/local/record_backup.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Between two looks at whether the journal was stopped.
constexpr absl::Duration kReadInterval = absl::Milliseconds(100);
constexpr std::chrono::seconds kBrokersPatience{30};

absl::Status OwnershipEnded(const absl::Status& why) {
  return ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kOwnershipLost,
                         absl::StrCat(why.message(),
                                      ": run the backup again, it goes to the "
                                      "node that does"));
}

class ClusterBackup final : public BackupBytes {
 public:
  explicit ClusterBackup(KafkaJournal* journal)
      : journal_(*journal), estimate_(journal->statistics().disk_bytes) {}

  // The sizes of records are known when they are read.
  uint64_t total_bytes() const override {
    const uint64_t so_far =
        sent_bytes_ + (backup_.has_value() ? backup_->ready() : 0);
    return finished_ ? so_far : std::max(estimate_, so_far);
  }

  absl::StatusOr<std::string> Read(size_t bytes) override {
    absl::Status status = Fill(bytes);
    if (absl::IsFailedPrecondition(status) || absl::IsCancelled(status)) {
      status = OwnershipEnded(status);
    }
    if (!status.ok()) return status;
    std::string piece = backup_->Take(bytes);
    sent_bytes_ += piece.size();
    return piece;
  }

 private:
  // Here and not at the start of the call, as brokers may take a while.
  absl::Status Open() {
    auto snapshot = journal_.OpenSnapshot();
    if (!snapshot.ok()) return snapshot.status();
    snapshot_ = *std::move(snapshot);
    backup_.emplace(snapshot_->first());
    return absl::OkStatus();
  }

  absl::Status Fill(size_t bytes) {
    if (!backup_.has_value()) {
      if (absl::Status status = Open(); !status.ok()) return status;
    }
    auto heard = SteadyClock::now();
    while (!finished_ && backup_->ready() < bytes) {
      if (snapshot_->done()) {
        backup_->Finish();
        finished_ = true;
        // The owner may delete what it has trimmed.
        snapshot_ = nullptr;
        break;
      }
      const absl::Status status = snapshot_->Read(
          kReadInterval,
          [&](uint32_t partition, uint64_t position, absl::string_view record) {
            heard = SteadyClock::now();
            return backup_->Add(partition, position, record);
          });
      if (!status.ok()) return status;
      if (SteadyClock::now() - heard > kBrokersPatience) {
        return absl::UnavailableError(
            "no broker of Kafka has sent a record for 30 s: run the backup "
            "again once they answer (timecachectl cluster status)");
      }
    }
    return absl::OkStatus();
  }

  KafkaJournal& journal_;
  const uint64_t estimate_;
  std::unique_ptr<KafkaSnapshot> snapshot_;
  std::optional<RecordBackup> backup_;
  bool finished_ = false;
  uint64_t sent_bytes_ = 0;
};

}  // namespace

BackupSource BackupsOf(KafkaJournal* journal) {
  return [journal] { return std::make_unique<ClusterBackup>(journal); };
}

}  // namespace timecache::server
