#include "client/cli/commands/dump_binary.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/journal/coding.h"
#include "server/journal/crc32c.h"

namespace timecache::cli {
namespace {

using server::NumberAt;
using server::PutNumber;

constexpr char kHead = 'h';
constexpr char kEntry = 'e';
constexpr char kEnd = 'z';

std::string Frame(const std::string& body) {
  std::string frame;
  frame.reserve(kFrameHeadBytes + body.size() + kFrameTailBytes);
  PutNumber(&frame, static_cast<uint32_t>(body.size()));
  frame.append(body);
  PutNumber(&frame, server::Crc32c(0, body));
  return frame;
}

absl::Status Damaged() {
  return absl::DataLossError("the dump is damaged: a checksum does not fit");
}

absl::Time TimeAt(absl::string_view body, size_t at) {
  return absl::FromUnixMicros(NumberAt<int64_t>(body, at));
}

}  // namespace

std::string BinaryBegin(const DumpHead& head) {
  std::string body(1, kHead);
  PutNumber(&body, static_cast<uint32_t>(kDumpVersion));
  PutNumber(&body, absl::ToUnixMicros(head.time));
  body.append(head.ns);
  return std::string(kDumpMagic) + Frame(body);
}

std::string BinaryEntry(const Entry& entry) {
  std::string body(1, kEntry);
  PutNumber(&body, absl::ToUnixMicros(entry.deadline));
  PutNumber(&body, static_cast<uint32_t>(entry.key.size()));
  body.append(entry.key);
  body.append(entry.value);
  return Frame(body);
}

std::string BinaryEnd(uint64_t entries) {
  std::string body(1, kEnd);
  PutNumber(&body, entries);
  return Frame(body);
}

absl::StatusOr<size_t> FrameBytes(const std::string& head) {
  const auto bytes = NumberAt<uint32_t>(head, 0);
  if (bytes == 0 || bytes > kMaxFrameBytes) return Damaged();
  return bytes + kFrameTailBytes;
}

absl::StatusOr<std::variant<DumpMark, LoadEntry>> ParseFrame(
    const std::string& bytes) {
  const auto body =
      absl::string_view(bytes).substr(0, bytes.size() - kFrameTailBytes);
  if (server::Crc32c(0, body) != NumberAt<uint32_t>(bytes, body.size())) {
    return Damaged();
  }
  const char kind = body[0];
  if (kind == kHead && body.size() >= 13) {
    if (NumberAt<uint32_t>(body, 1) > kDumpVersion) {
      return absl::InvalidArgumentError(
          "a dump of a later version: take that version's timecachectl");
    }
    return DumpMark{.head = DumpHead{.ns = std::string(body.substr(13)),
                                     .time = TimeAt(body, 5)}};
  }
  if (kind == kEnd && body.size() == 9) {
    return DumpMark{.entries = NumberAt<uint64_t>(body, 1)};
  }
  if (kind == kEntry && body.size() >= 13) {
    const auto key_bytes = NumberAt<uint32_t>(body, 9);
    if (key_bytes <= body.size() - 13) {
      return LoadEntry{.key = std::string(body.substr(13, key_bytes)),
                       .value = std::string(body.substr(13 + key_bytes)),
                       .deadline = TimeAt(body, 1)};
    }
  }
  return absl::DataLossError("the dump is damaged: a record has no known form");
}

}  // namespace timecache::cli
