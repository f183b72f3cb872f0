#include "client/cli/dump/dump_binary.h"

#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/src/data/convert.h"
#include "server/base/coding.h"
#include "server/base/crc32c.h"
#include "timecache/v1/data.pb.h"

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
  v1::Entry proto;
  proto.set_key(entry.key);
  *proto.mutable_deadline() = ToProto(entry.deadline);
  if (entry.own_ttl) *proto.mutable_own_ttl() = ToProto(*entry.own_ttl);
  proto.set_traceparent(entry.traceparent);
  if (entry.parts) {
    v1::GatheredParts& parts = *proto.mutable_parts();
    parts.set_expected_parts(entry.parts->expected_parts);
    for (const std::string& name : entry.parts->expected_names) {
      parts.add_expected_names(name);
    }
    for (const GatheredPart& part : entry.parts->parts) {
      v1::GatheredPart& to = *parts.add_parts();
      to.set_name(part.name);
      to.set_value(part.value);
    }
  } else {
    proto.set_value(entry.value);
  }
  std::string body(1, kEntry);
  proto.AppendToString(&body);
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
  v1::Entry proto;
  if (kind == kEntry &&
      proto.ParseFromArray(body.data() + 1,
                           static_cast<int>(body.size() - 1))) {
    Entry entry = FromProto(std::move(proto));
    return LoadEntry{.key = std::move(entry.key),
                     .value = std::move(entry.value),
                     .parts = std::move(entry.parts),
                     .deadline = entry.deadline,
                     .own_ttl = entry.own_ttl,
                     .traceparent = std::move(entry.traceparent)};
  }
  return absl::DataLossError("the dump is damaged: a record has no known form");
}

}  // namespace timecache::cli
