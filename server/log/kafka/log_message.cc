#include "server/log/kafka/log_message.h"

#include "server/base/coding.h"

namespace timecache::server {
namespace {

constexpr uint8_t kLogVersion = 1;
constexpr size_t kClaimHeaderBytes = 2 + 2 * sizeof(uint64_t);

// The second byte. Of records: whether it is the group's last piece.
enum class LogMessageKind : uint8_t {
  kClaim = 1,
  kRecords = 2,
  kLast = 3,
  kMark = 4
};

}  // namespace

std::string EncodeClaim(const ClaimMessage& message) {
  std::string value;
  value.reserve(kClaimHeaderBytes + message.node.size());
  PutNumber(&value, kLogVersion);
  PutNumber(&value, LogMessageKind::kClaim);
  PutNumber(&value, message.claim);
  PutNumber(&value, message.incarnation);
  value.append(message.node.data(), message.node.size());
  return value;
}

std::string EncodeMark(uint64_t id) {
  std::string value;
  PutNumber(&value, kLogVersion);
  PutNumber(&value, LogMessageKind::kMark);
  PutNumber(&value, id);
  return value;
}

void PutRecordsHeader(std::string* to, const RecordsMessage& message) {
  PutNumber(to, kLogVersion);
  PutNumber(to,
            message.is_last ? LogMessageKind::kLast : LogMessageKind::kRecords);
  PutNumber(to, uint16_t{0});
  PutNumber(to, message.attempt);
  PutNumber(to, message.count);
  PutNumber(to, message.piece);
  PutNumber(to, message.log_id);
  PutNumber(to, message.claim);
  PutNumber(to, message.first);
  PutNumber(to, message.trimmed);
  PutNumber(to, message.claim_offset);
  PutNumber(to, message.end);
}

LogMessage DecodeLogMessage(absl::string_view value) {
  if (value.size() < kClaimHeaderBytes ||
      NumberAt<uint8_t>(value, 0) != kLogVersion) {
    return {};
  }
  const auto kind = NumberAt<LogMessageKind>(value, 1);
  if (kind == LogMessageKind::kClaim) {
    ClaimMessage message;
    message.claim = NumberAt<uint64_t>(value, 2);
    message.incarnation = NumberAt<uint64_t>(value, 10);
    message.node = value.substr(kClaimHeaderBytes);
    if (message.claim == 0) return {};
    return message;
  }
  if ((kind != LogMessageKind::kRecords && kind != LogMessageKind::kLast) ||
      value.size() < kRecordsHeaderBytes) {
    return {};
  }
  RecordsMessage message;
  message.is_last = kind == LogMessageKind::kLast;
  message.attempt = NumberAt<uint32_t>(value, 4);
  message.count = NumberAt<uint32_t>(value, 8);
  message.piece = NumberAt<uint32_t>(value, 12);
  message.log_id = NumberAt<uint64_t>(value, 16);
  message.claim = NumberAt<uint64_t>(value, 24);
  message.first = NumberAt<uint64_t>(value, 32);
  message.trimmed = NumberAt<uint64_t>(value, 40);
  message.claim_offset = NumberAt<uint64_t>(value, 48);
  message.end = NumberAt<uint64_t>(value, 56);
  message.bytes = value.substr(kRecordsHeaderBytes);
  return message;
}

absl::Status VisitRecords(
    absl::string_view bytes, uint32_t count,
    absl::FunctionRef<absl::Status(absl::string_view record)> visit) {
  for (uint32_t i = 0; i < count; ++i) {
    if (bytes.size() < kRecordHeaderBytes) {
      return absl::DataLossError("a group of records is cut off");
    }
    const auto size = NumberAt<uint32_t>(bytes, 0);
    bytes.remove_prefix(kRecordHeaderBytes);
    if (bytes.size() < size) {
      return absl::DataLossError("a record is cut off");
    }
    if (absl::Status status = visit(bytes.substr(0, size)); !status.ok()) {
      return status;
    }
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) {
    return absl::DataLossError(
        "a group of records has more bytes than records");
  }
  return absl::OkStatus();
}

}  // namespace timecache::server
