#include "server/durable/shared_read.h"

#include <utility>

namespace timecache::server {

SharedRead::SharedRead(const Journal* journal,
                       const std::vector<Partitions>& parts)
    : journal_(journal),
      part_of_(journal->partitions()),
      from_of_(journal->partitions()) {
  for (const Partitions& from : parts) {
    parts_.push_back(std::make_unique<Part>());
    for (const Journal::ReadFrom& each : from) {
      part_of_[each.partition] = parts_.back().get();
      from_of_[each.partition] = from_.size();
      from_.push_back(each);
    }
  }
}

absl::Status SharedRead::Run(const More& more) {
  absl::Status status;
  do {
    status = ReadOnce();
  } while (status.ok() && more && more());
  return End(status);
}

absl::Status SharedRead::ReadOnce() {
  const Partitions from = from_;
  absl::Status status = journal_->Read(
      from,
      [this](uint32_t partition, uint64_t position, absl::string_view record) {
        from_[from_of_[partition]].position = position + 1;
        Part* const part = part_of_[partition];
        part->open.records.push_back({partition, position, record.size()});
        part->open.bytes.append(record.data(), record.size());
        return part->open.bytes.size() < kBatchBytes ? absl::OkStatus()
                                                     : Push(part);
      });
  for (const auto& part : parts_) {
    if (status.ok()) status = Push(part.get());
  }
  return status;
}

absl::Status SharedRead::Read(size_t part, Journal::Visitor visit) {
  while (const auto batch = Pop(parts_[part].get())) {
    absl::Status status = Visit(*batch, visit);
    if (!status.ok()) return End(std::move(status));
  }
  absl::MutexLock lock(&mu_);
  return status_;
}

absl::Status SharedRead::Push(Part* part) {
  Batch batch = std::exchange(part->open, Batch());
  const size_t bytes = batch.bytes.size();
  const auto has_room = [&] {
    mu_.AssertReaderHeld();
    return ended_ || part->queued_bytes == 0 ||
           part->queued_bytes + bytes <= kQueueBytes;
  };
  absl::MutexLock lock(&mu_, absl::Condition(&has_room));
  if (ended_) return status_;
  part->queued_bytes += bytes;
  part->queue.push_back(std::move(batch));
  return absl::OkStatus();
}

std::unique_ptr<SharedRead::Batch> SharedRead::Pop(Part* part) {
  const auto has_some = [&] {
    mu_.AssertReaderHeld();
    return ended_ || !part->queue.empty();
  };
  absl::MutexLock lock(&mu_, absl::Condition(&has_some));
  if (part->queue.empty() || !status_.ok()) return nullptr;
  auto batch = std::make_unique<Batch>(std::move(part->queue.front()));
  part->queue.pop_front();
  part->queued_bytes -= batch->bytes.size();
  return batch;
}

absl::Status SharedRead::Visit(const Batch& batch, Journal::Visitor visit) {
  absl::string_view left = batch.bytes;
  for (const Batch::Record& record : batch.records) {
    absl::Status status =
        visit(record.partition, record.position, left.substr(0, record.bytes));
    if (!status.ok()) return status;
    left.remove_prefix(record.bytes);
  }
  return absl::OkStatus();
}

absl::Status SharedRead::End(absl::Status status) {
  absl::MutexLock lock(&mu_);
  ended_ = true;
  status_.Update(std::move(status));
  return status_;
}

}  // namespace timecache::server
