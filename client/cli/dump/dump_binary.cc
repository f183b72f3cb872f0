#include "client/cli/dump/dump_binary.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/coding.h"
#include "server/log/local/crc32c.h"

namespace timecache::cli {
namespace {

using server::NumberAt;
using server::PutNumber;

constexpr char kHead = 'h';
constexpr char kEntry = 'e';
constexpr char kParts = 'g';
constexpr char kOwnEntry = 'o';
constexpr char kOwnParts = 'p';
constexpr char kEnd = 'z';

std::string Frame(const std::string& body) {
  std::string frame;
  frame.reserve(kFrameHeadBytes + body.size() + kFrameTailBytes);
  PutNumber(&frame, static_cast<uint32_t>(body.size()));
  frame.append(body);
  PutNumber(&frame, server::Crc32c(0, body));
  return frame;
}

void PutText(std::string* to, absl::string_view text) {
  PutNumber(to, static_cast<uint32_t>(text.size()));
  to->append(text.data(), text.size());
}

// Takes numbers and texts from the front, until one is missing.
class PartReader {
 public:
  explicit PartReader(absl::string_view left) : left_(left) {}

  uint32_t Number() {
    if (left_.size() < sizeof(uint32_t)) return Fail();
    const auto number = NumberAt<uint32_t>(left_, 0);
    left_.remove_prefix(sizeof(uint32_t));
    return number;
  }
  std::string Text() {
    const uint32_t size = Number();
    if (size > left_.size()) {
      Fail();
      return {};
    }
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && left_.empty(); }

 private:
  uint32_t Fail() {
    ok_ = false;
    left_ = {};
    return 0;
  }

  absl::string_view left_;
  bool ok_ = true;
};

void PutParts(std::string* to, const GatheredParts& parts) {
  PutNumber(to, parts.expected_parts);
  PutNumber(to, static_cast<uint32_t>(parts.expected_names.size()));
  for (const std::string& name : parts.expected_names) PutText(to, name);
  for (const GatheredPart& part : parts.parts) {
    PutText(to, part.name);
    PutText(to, part.value);
  }
}

// Nothing that PutParts wrote: nullopt.
std::optional<GatheredParts> TakeParts(absl::string_view from) {
  PartReader reader(from);
  GatheredParts parts;
  parts.expected_parts = reader.Number();
  for (uint32_t left = reader.Number(); left > 0 && reader.ok(); --left) {
    parts.expected_names.push_back(reader.Text());
  }
  while (reader.ok() && !reader.done()) {
    std::string name = reader.Text();
    parts.parts.push_back({.name = std::move(name), .value = reader.Text()});
  }
  if (!reader.done() || parts.parts.empty()) return std::nullopt;
  return parts;
}

absl::Status Damaged() {
  return absl::DataLossError("the dump is damaged: a checksum does not fit");
}

absl::Time TimeAt(absl::string_view body, size_t at) {
  return absl::FromUnixMicros(NumberAt<int64_t>(body, at));
}

// Nothing that BinaryEntry wrote: nullopt.
std::optional<LoadEntry> TakeEntry(absl::string_view body) {
  constexpr size_t kFixedBytes = sizeof(int64_t) + sizeof(uint32_t);
  const char kind = body[0];
  body.remove_prefix(1);
  const bool own = kind == kOwnEntry || kind == kOwnParts;
  const bool parts = kind == kParts || kind == kOwnParts;
  if (!own && !parts && kind != kEntry) return std::nullopt;
  LoadEntry entry;
  if (own && body.size() >= sizeof(int64_t)) {
    entry.own_ttl = absl::Microseconds(NumberAt<int64_t>(body, 0));
    body.remove_prefix(sizeof(int64_t));
  }
  if (body.size() < kFixedBytes || own != entry.own_ttl.has_value()) {
    return std::nullopt;
  }
  entry.deadline = TimeAt(body, 0);
  const auto key_bytes = NumberAt<uint32_t>(body, sizeof(int64_t));
  body.remove_prefix(kFixedBytes);
  if (key_bytes > body.size()) return std::nullopt;
  entry.key = std::string(body.substr(0, key_bytes));
  body.remove_prefix(key_bytes);
  if (!parts) {
    entry.value = std::string(body);
    return entry;
  }
  entry.parts = TakeParts(body);
  if (!entry.parts) return std::nullopt;
  return entry;
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
  const bool own = entry.own_ttl.has_value();
  std::string body(
      1, entry.parts ? (own ? kOwnParts : kParts) : (own ? kOwnEntry : kEntry));
  if (own) PutNumber(&body, absl::ToInt64Microseconds(*entry.own_ttl));
  PutNumber(&body, absl::ToUnixMicros(entry.deadline));
  PutNumber(&body, static_cast<uint32_t>(entry.key.size()));
  body.append(entry.key);
  if (entry.parts) {
    PutParts(&body, *entry.parts);
  } else {
    body.append(entry.value);
  }
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
  std::optional<LoadEntry> entry = TakeEntry(body);
  if (entry) return *std::move(entry);
  return absl::DataLossError("the dump is damaged: a record has no known form");
}

}  // namespace timecache::cli
