#include "server/log/kafka/log_filter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/safety_rule.h"

namespace timecache::server {

absl::Status LogFilter::BeginAt(uint64_t offset, absl::string_view value) {
  const LogMessage message = DecodeLogMessage(value);
  const auto* const records = std::get_if<RecordsMessage>(&message);
  if (records == nullptr || records->piece != 0) {
    return absl::DataLossError(
        absl::StrCat("what is left begins at offset ", offset,
                     ", where no trim ends: messages before it are lost, as by "
                     "a retention"));
  }
  log_id_ = records->log_id;
  claim_ = records->claim;
  claim_offset_ = records->claim_offset;
  opened_ = true;
  next_ = records->first;
  first_ = records->first;
  return absl::OkStatus();
}

absl::Status LogFilter::Add(uint64_t offset, absl::string_view value,
                            Visitor visit) {
  LogMessage message = DecodeLogMessage(value);
  absl::Status status;
  if (auto* records = std::get_if<RecordsMessage>(&message);
      records != nullptr && !IsKept(SafetyRule::kClaims)) {
    records->claim = claim_;
    records->claim_offset = claim_offset_;
    records->first = next_;
  }
  if (const auto* claim = std::get_if<ClaimMessage>(&message)) {
    claim_ = claim->claim;
    claim_offset_ = offset;
    if (log_id_ == 0) log_id_ = claim_;
    opened_ = false;
    pieces_ = 0;
  } else if (const auto* records = std::get_if<RecordsMessage>(&message);
             records != nullptr && claim_ != 0 && offset >= records->end) {
    status = AddRecords(offset, *records, visit);
  } else {
    ++voids_;
  }
  bytes_ += value.size();
  return status;
}

absl::Status LogFilter::AddRecords(uint64_t offset,
                                   const RecordsMessage& message,
                                   Visitor visit) {
  const bool is_owners =
      message.claim == claim_ && message.claim_offset == claim_offset_;
  const bool missed_claim = !is_owners && message.log_id == log_id_ &&
                            message.claim_offset > claim_offset_;
  if (!is_owners && !missed_claim) {
    ++voids_;
    return absl::OkStatus();
  }
  if (missed_claim || message.log_id != log_id_ || message.first > next_ ||
      (!opened_ && message.first != next_)) {
    return absl::DataLossError(absl::StrCat(
        "the message at offset ", offset, " continues another log at position ",
        message.first, " in place of ", next_,
        ": the topic was made anew, or its brokers have lost messages"));
  }
  opened_ = true;
  if (message.first == next_ && message.piece == 0) {
    pieces_ = 0;
    attempt_ = message.attempt;
    group_offset_ = offset;
    group_bytes_before_ = bytes_;
    group_.clear();
  } else if (message.first != next_ || pieces_ == 0 ||
             message.piece != pieces_ || message.attempt != attempt_) {
    ++voids_;
    return absl::OkStatus();
  }
  ++pieces_;
  if (message.is_last && pieces_ == 1) {
    return Complete(message, message.bytes, visit);
  }
  if (group_.size() + message.bytes.size() > kGroupBytesMax) {
    return absl::DataLossError("a group of records is larger than any append");
  }
  group_.append(message.bytes.data(), message.bytes.size());
  if (!message.is_last) return absl::OkStatus();
  const std::string bytes = std::move(group_);
  group_ = std::string();
  return Complete(message, bytes, visit);
}

absl::Status LogFilter::Complete(const RecordsMessage& message,
                                 absl::string_view bytes, Visitor visit) {
  pieces_ = 0;
  AddBase(group_offset_, group_bytes_before_);
  SetTrimmed(message.trimmed);
  uint64_t position = next_;
  next_ += message.count;
  return VisitRecords(bytes, message.count, [&](absl::string_view record) {
    return visit(position++, record);
  });
}

void LogFilter::AddOwn(uint64_t offset, uint32_t count, uint64_t bytes,
                       uint64_t trimmed) {
  opened_ = true;
  pieces_ = 0;
  AddBase(offset, bytes_);
  SetTrimmed(trimmed);
  next_ += count;
  bytes_ += bytes;
}

void LogFilter::AddBase(uint64_t offset, uint64_t bytes_before) {
  if (bases_.empty() || bytes_before - bases_.back().bytes >= base_bytes_) {
    bases_.push_back({next_, offset, bytes_before});
  }
}

void LogFilter::SetTrimmed(uint64_t trimmed) {
  if (trimmed <= trimmed_) return;
  trimmed_ = trimmed;
  // At the owner they are gone already.
  while (bases_.size() > 1 && bases_[1].offset <= trimmed) bases_.pop_front();
  if (!bases_.empty() && bases_.front().offset <= trimmed) {
    first_ = std::max(first_, bases_.front().position);
  }
}

const LogFilter::Base* LogFilter::FindBase(uint64_t position) const {
  const auto after = std::partition_point(
      bases_.begin(), bases_.end(),
      [&](const Base& base) { return base.position <= position; });
  return after == bases_.begin() ? nullptr : &*std::prev(after);
}

uint64_t LogFilter::BaseOffset(uint64_t position) const {
  const Base* const base = FindBase(position);
  return base == nullptr ? 0 : base->offset;
}

uint64_t LogFilter::BytesBefore(uint64_t position) const {
  const Base* const base = FindBase(position);
  return base == nullptr ? 0 : base->bytes - bases_bytes();
}

void LogFilter::TrimBefore(uint64_t position) {
  if (position <= first_) return;
  first_ = position;
  while (bases_.size() > 1 && bases_[1].position <= position) {
    bases_.pop_front();
  }
}

}  // namespace timecache::server
