#include "server/main/cluster_backup.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/log/kafka/topic_snapshot.h"
#include "server/log/local/record_backup.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Between two looks at whether the journal was stopped.
constexpr absl::Duration kReadInterval = absl::Milliseconds(100);
constexpr std::chrono::seconds kBrokersPatience{30};
// For this node's heartbeats to come back.
constexpr absl::Duration kHoldPatience = absl::Seconds(10);

absl::Status RunAgain(const absl::Status& why) {
  return why.ok() ? why
                  : absl::UnavailableError(
                        absl::StrCat(why.message(), ": run the backup again"));
}

// What may be over at the next attempt.
absl::Status AnotherAttempt(const absl::Status& why) {
  if (absl::IsOutOfRange(why)) return RunAgain(why);
  if (!absl::IsFailedPrecondition(why) && !absl::IsCancelled(why)) return why;
  return ErrorWithReason(absl::StatusCode::kUnavailable, Reason::kOwnershipLost,
                         absl::StrCat(why.message(),
                                      ": run the backup again, it goes to the "
                                      "node that does"));
}

class ClusterBackup final : public BackupBytes {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<KafkaSnapshot>>()>;

  ClusterBackup(Open open, uint64_t estimate)
      : open_(std::move(open)), estimate_(estimate) {}

  // The sizes of records are known when they are read.
  uint64_t total_bytes() const override {
    const uint64_t so_far =
        sent_bytes_ + (backup_.has_value() ? backup_->ready() : 0);
    return finished_ ? so_far : std::max(estimate_, so_far);
  }

  absl::StatusOr<std::string> Read(size_t bytes) override {
    if (absl::Status status = Fill(bytes); !status.ok()) {
      return AnotherAttempt(status);
    }
    std::string piece = backup_->Take(bytes);
    sent_bytes_ += piece.size();
    return piece;
  }

 private:
  absl::Status Fill(size_t bytes) {
    if (!backup_.has_value()) {
      // Here and not at the start of the call, as brokers may take a while.
      auto snapshot = open_();
      if (!snapshot.ok()) return snapshot.status();
      snapshot_ = *std::move(snapshot);
      backup_.emplace(snapshot_->first());
    }
    auto heard = SteadyClock::now();
    while (!finished_ && backup_->ready() < bytes) {
      if (snapshot_->done()) {
        backup_->Finish();
        finished_ = true;
        // Owners may delete what they have trimmed.
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

  const Open open_;
  const uint64_t estimate_;
  std::unique_ptr<KafkaSnapshot> snapshot_;
  std::optional<RecordBackup> backup_;
  bool finished_ = false;
  uint64_t sent_bytes_ = 0;
};

// Of which owners delete nothing until it is destroyed.
class HeldSnapshot final : public KafkaSnapshot {
 public:
  static absl::StatusOr<std::unique_ptr<KafkaSnapshot>> Open(
      const SharedJournal& journal) {
    auto held = std::make_unique<HeldSnapshot>(journal.membership);
    absl::Status status = held->Await();
    if (!status.ok()) return status;
    auto snapshot = OpenTopicSnapshot(journal.kafka, journal.topic);
    if (!snapshot.ok()) return snapshot.status();
    held->snapshot_ = *std::move(snapshot);
    status = held->EndCut();
    if (!status.ok()) return status;
    return held;
  }

  explicit HeldSnapshot(ClusterMembership* membership)
      : membership_(*membership), hold_(membership->BeginHold(kBackupHold)) {}
  ~HeldSnapshot() override { membership_.EndHold(hold_); }

  const std::vector<uint64_t>& first() const override {
    return snapshot_->first();
  }
  bool done() const override { return snapshot_->done(); }
  absl::Status Read(absl::Duration timeout, Journal::Visitor visit) override {
    absl::Status status = membership_.CheckHold(hold_);
    if (absl::IsDeadlineExceeded(status)) {
      return absl::UnavailableError(
          "the backup has taken an hour, which is the longest time for which "
          "owners delete nothing: run it again, to where it is written faster");
    }
    if (!status.ok()) return RunAgain(status);
    return snapshot_->Read(timeout, visit);
  }

 private:
  absl::Status Await() {
    return RunAgain(membership_.AwaitHold(hold_, kHoldPatience));
  }
  absl::Status EndCut() {
    return RunAgain(membership_.EndCut(hold_, kHoldPatience));
  }

  ClusterMembership& membership_;
  const uint64_t hold_;
  std::unique_ptr<KafkaSnapshot> snapshot_;
};

}  // namespace

BackupSource BackupsOf(KafkaJournal* journal) {
  return [journal] {
    return std::make_unique<ClusterBackup>(
        [journal] { return journal->OpenSnapshot(); },
        journal->statistics().disk_bytes);
  };
}

BackupSource BackupsOf(SharedJournal journal) {
  return [journal = std::move(journal)] {
    return std::make_unique<ClusterBackup>(
        [journal] { return HeldSnapshot::Open(journal); }, journal.estimate());
  };
}

}  // namespace timecache::server
