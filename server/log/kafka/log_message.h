// What a message of a cluster's journal is, in bytes.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_LOG_MESSAGE_H_
#define TIMECACHED_SERVER_LOG_KAFKA_LOG_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace timecache::server {

// A node becomes the partition's owner.
struct ClaimMessage {
  // Random, and never 0: the records of this claim name it. Each attempt to claim
  // has another, so that one message has it.
  uint64_t claim = 0;
  uint64_t incarnation = 0;
  absl::string_view node;
};

// A piece of a group of records, which all count or none.
struct RecordsMessage {
  // The first claim that the partition has had: that of another one was made anew.
  uint64_t log_id = 0;
  uint64_t claim = 0;
  // The offset of that claim.
  uint64_t claim_offset = 0;
  // The owner knows all messages before this offset.
  uint64_t end = 0;
  // The position of the group's first record.
  uint64_t first = 0;
  // The owner may have deleted what is before this offset.
  uint64_t trimmed = 0;
  // Pieces of different attempts do not belong together.
  uint32_t attempt = 0;
  // Of all pieces; 0 in a message that says `trimmed` alone.
  uint32_t count = 0;
  // From 0.
  uint32_t piece = 0;
  bool is_last = true;
  // The part of the group's bytes, each record after its length in 4 bytes.
  absl::string_view bytes;
};

// A message that counts for no reader, of whichever version: its offset alone says
// something, to whoever appends it. `id`: random.
std::string EncodeMark(uint64_t id);

inline constexpr size_t kRecordsHeaderBytes = 64;
inline constexpr size_t kRecordHeaderBytes = 4;

std::string EncodeClaim(const ClaimMessage& message);
// Appends the header alone: the bytes follow.
void PutRecordsHeader(std::string* to, const RecordsMessage& message);

// Neither: not a message of this log, or of a version that is not known.
using LogMessage = std::variant<std::monostate, ClaimMessage, RecordsMessage>;
// Of any bytes, which must outlive what is returned. Costs no copy.
LogMessage DecodeLogMessage(absl::string_view value);

// The records of a whole group. DATA_LOSS: they are not `count`, or not whole. An
// error of the visitor ends it.
absl::Status VisitRecords(
    absl::string_view bytes, uint32_t count,
    absl::FunctionRef<absl::Status(absl::string_view record)> visit);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_LOG_MESSAGE_H_
