#include "server/log/local/backup_archive.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace timecache::server {
namespace {

// The fields of a POSIX header: their positions and lengths.
struct Field {
  size_t at;
  size_t bytes;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kOwner{108, 8};
constexpr Field kGroup{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kTime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr size_t kTypeAt = 156;
constexpr Field kMagic{257, 8};
constexpr char kUstar[] = "ustar";
// Regular files, also as archives had them before POSIX.
constexpr char kRegular = '0';
constexpr char kOldRegular = '\0';

void PutOctal(Field field, uint64_t number, std::string* block) {
  const std::string digits =
      absl::StrFormat("%0*o", static_cast<int>(field.bytes - 1), number);
  block->replace(field.at, digits.size(), digits);
}

std::optional<uint64_t> OctalAt(absl::string_view block, Field field) {
  uint64_t number = 0;
  bool any = false;
  for (const char c : block.substr(field.at, field.bytes)) {
    if (c == ' ' && !any) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7' || number >> 60 != 0) return std::nullopt;
    number = number * 8 + static_cast<uint64_t>(c - '0');
    any = true;
  }
  if (!any) return std::nullopt;
  return number;
}

// Of all bytes, with the checksum's own as spaces.
uint64_t SumOf(absl::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool own = i - kChecksum.at < kChecksum.bytes;
    sum += own ? ' ' : static_cast<uint8_t>(block[i]);
  }
  return sum;
}

uint64_t PaddingOf(uint64_t bytes) {
  return (kArchiveBlockBytes - bytes % kArchiveBlockBytes) % kArchiveBlockBytes;
}

absl::Status NoArchive(uint64_t offset, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a backup of timecached, or a damaged one: byte ",
                   offset, ": ", what));
}

}  // namespace

std::string ArchiveHeader(absl::string_view name, uint64_t bytes,
                          int64_t time_s) {
  std::string block(kArchiveBlockBytes, '\0');
  block.replace(kName.at, name.size(), name.data(), name.size());
  PutOctal(kMode, 0600, &block);
  PutOctal(kOwner, 0, &block);
  PutOctal(kGroup, 0, &block);
  PutOctal(kSize, bytes, &block);
  PutOctal(kTime, static_cast<uint64_t>(std::max<int64_t>(time_s, 0)), &block);
  block[kTypeAt] = kRegular;
  block.replace(kMagic.at, sizeof(kUstar) + 2, "ustar\00000", kMagic.bytes);
  const std::string sum = absl::StrFormat("%06o", SumOf(block));
  block.replace(kChecksum.at, kChecksum.bytes, sum + std::string("\0 ", 2));
  return block;
}

std::string ArchivePadding(uint64_t bytes) {
  return std::string(PaddingOf(bytes), '\0');
}

std::string ArchiveEnd() { return std::string(2 * kArchiveBlockBytes, '\0'); }

absl::Status ArchiveReader::Add(absl::string_view bytes) {
  while (!bytes.empty()) {
    size_t taken = bytes.size();
    absl::Status status;
    switch (state_) {
      case State::kHeader:
        taken = std::min(taken, kArchiveBlockBytes - block_.size());
        block_.append(bytes.data(), taken);
        if (block_.size() == kArchiveBlockBytes) status = AddBlock();
        break;
      case State::kFile:
      case State::kSkipped:
        taken = static_cast<size_t>(std::min<uint64_t>(taken, left_));
        left_ -= taken;
        if (state_ == State::kFile) {
          status = sink_.AddBytes(bytes.substr(0, taken));
          if (status.ok() && left_ == 0) status = sink_.EndFile();
        }
        if (left_ == 0) state_ = State::kPadding;
        break;
      case State::kPadding:
        taken = static_cast<size_t>(std::min<uint64_t>(taken, padding_));
        padding_ -= taken;
        if (padding_ == 0) state_ = State::kHeader;
        break;
      case State::kEnd:
        // More zeros, up to the writer's blocking factor.
        break;
    }
    if (!status.ok()) return status;
    bytes.remove_prefix(taken);
    offset_ += taken;
  }
  return absl::OkStatus();
}

absl::Status ArchiveReader::AddBlock() {
  const std::string block = std::exchange(block_, std::string());
  const uint64_t at = offset_ / kArchiveBlockBytes * kArchiveBlockBytes;
  if (block.find_first_not_of('\0') == block.npos) {
    // One such block is enough to know.
    state_ = State::kEnd;
    return absl::OkStatus();
  }
  const auto sum = OctalAt(block, kChecksum);
  const auto size = OctalAt(block, kSize);
  if (block.compare(kMagic.at, sizeof(kUstar) - 1, kUstar) != 0 ||
      !sum.has_value() || *sum != SumOf(block) || !size.has_value()) {
    return NoArchive(at, "no header of a file");
  }
  std::string name = block.substr(kName.at, kName.bytes);
  name.resize(std::min(name.find('\0'), name.size()));
  name.erase(0, name.rfind('/') + 1);
  const char type = block[kTypeAt];
  const bool regular = type == kRegular || type == kOldRegular;
  left_ = *size;
  padding_ = PaddingOf(left_);
  absl::Status status;
  if (regular) {
    status = sink_.BeginFile(name, left_);
    if (status.ok() && left_ == 0) status = sink_.EndFile();
  }
  state_ = regular ? State::kFile : State::kSkipped;
  if (left_ == 0) state_ = State::kHeader;
  return status;
}

absl::Status ArchiveReader::Finish() const {
  if (state_ == State::kEnd) return absl::OkStatus();
  if (offset_ == 0) return absl::DataLossError("the backup is empty");
  return absl::DataLossError(
      absl::StrCat("the backup is cut off after byte ", offset_));
}

}  // namespace timecache::server
