#include "server/log/local/segment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/coding.h"
#include "server/base/crc32c.h"

namespace timecache::server {
namespace {

constexpr absl::string_view kSegmentMagic = "TCJOURNL";
constexpr size_t kFixedHeaderBytes = 8 + 4 + 4 + kJournalIdBytes + 8 + 8;
constexpr uint32_t kGroupMagic = 0x52474a54;
constexpr size_t kGroupHeaderBytes = 40;
constexpr size_t kSectionBytes = 28;
// Where the bytes of a group's header begin that its CRC covers.
constexpr size_t kCoveredFrom = 8;
constexpr size_t kReadBytes = size_t{1} << 20;
// More than the largest header of a group, and so much less than kReadBytes
// that a search for one seldom reads bytes twice.
constexpr size_t kSearchBytes = size_t{64} << 10;
static_assert(kGroupHeaderBytes + kSectionBytes * kPartitionsMax <
              kSearchBytes);

absl::Status HeaderDamaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

}  // namespace

uint32_t JournalIdentity::seed() const { return Crc32c(0, id); }

size_t SegmentHeader::Bytes(uint32_t partitions) {
  return kFixedHeaderBytes + size_t{8} * partitions + 4;
}

std::string SegmentHeader::Encode() const {
  std::string bytes(kSegmentMagic);
  PutNumber(&bytes, kJournalVersion);
  PutNumber(&bytes, identity.partitions);
  bytes += identity.id;
  PutNumber(&bytes, number);
  PutNumber(&bytes, first_group);
  for (const uint64_t base : bases) PutNumber(&bytes, base);
  PutNumber(&bytes, Crc32c(0, bytes));
  return bytes;
}

void GroupEncoder::Start(const JournalIdentity& identity, uint64_t group,
                         uint64_t durable_group, uint32_t sections,
                         size_t body_bytes) {
  seed_ = identity.seed();
  sections_.clear();
  const size_t header_bytes = kGroupHeaderBytes + kSectionBytes * sections;
  bytes_.reserve(header_bytes + body_bytes);
  bytes_.assign(header_bytes, '\0');
  SetNumber(&bytes_, 0, kGroupMagic);
  SetNumber(&bytes_, 8, static_cast<uint32_t>(bytes_.size()));
  SetNumber(&bytes_, 12, sections);
  SetNumber(&bytes_, 24, group);
  SetNumber(&bytes_, 32, durable_group);
}

void GroupEncoder::StartSection(uint32_t partition, uint64_t first_position) {
  sections_.push_back({partition, 0, first_position, bytes_.size()});
}

void GroupEncoder::Add(absl::string_view record) {
  ++sections_.back().records;
  PutNumber(&bytes_, static_cast<uint32_t>(record.size()));
  bytes_.append(record.data(), record.size());
}

absl::string_view GroupEncoder::Finish() {
  const size_t header_bytes =
      kGroupHeaderBytes + kSectionBytes * sections_.size();
  SetNumber(&bytes_, 16, uint64_t{bytes_.size() - header_bytes});
  for (size_t i = 0; i < sections_.size(); ++i) {
    const Part& section = sections_[i];
    const size_t end =
        i + 1 < sections_.size() ? sections_[i + 1].begin : bytes_.size();
    const auto body =
        absl::string_view(bytes_).substr(section.begin, end - section.begin);
    const size_t at = kGroupHeaderBytes + kSectionBytes * i;
    SetNumber(&bytes_, at, section.partition);
    SetNumber(&bytes_, at + 4, section.records);
    SetNumber(&bytes_, at + 8, section.first_position);
    SetNumber(&bytes_, at + 16, uint64_t{body.size()});
    SetNumber(&bytes_, at + 24, Crc32c(seed_, body));
  }
  SetNumber(&bytes_, 4,
            Crc32c(seed_, absl::string_view(bytes_).substr(
                              kCoveredFrom, header_bytes - kCoveredFrom)));
  return bytes_;
}

absl::Status VisitRecords(
    const Section& section,
    absl::FunctionRef<absl::Status(uint64_t, absl::string_view)> visit) {
  absl::string_view rest = section.body;
  for (uint32_t i = 0; i < section.records; ++i) {
    const uint32_t bytes =
        rest.size() < 4 ? UINT32_MAX : NumberAt<uint32_t>(rest, 0);
    if (rest.size() < 4 || rest.size() - 4 < bytes) {
      return absl::DataLossError("a record is longer than its section");
    }
    absl::Status status =
        visit(section.first_position + i, rest.substr(4, bytes));
    if (!status.ok()) return status;
    rest.remove_prefix(4 + size_t{bytes});
  }
  return absl::OkStatus();
}

bool IsIntact(const JournalIdentity& identity, const Section& section) {
  return Crc32c(identity.seed(), section.body) == section.crc;
}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::Open(
    FileSystem* files, const std::string& path,
    const JournalIdentity* identity) {
  auto file = files->OpenToRead(path);
  if (!file.ok()) return file.status();
  const auto bytes = (*file)->Size();
  if (!bytes.ok()) return bytes.status();
  std::unique_ptr<SegmentReader> reader(
      new SegmentReader(*std::move(file), *bytes));
  absl::Status status = reader->ReadHeader(path, identity);
  if (!status.ok()) return status;
  return reader;
}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::OpenWithoutHeader(
    FileSystem* files, const std::string& path,
    const JournalIdentity& identity) {
  auto file = files->OpenToRead(path);
  if (!file.ok()) return file.status();
  const auto bytes = (*file)->Size();
  if (!bytes.ok()) return bytes.status();
  std::unique_ptr<SegmentReader> reader(
      new SegmentReader(*std::move(file), *bytes));
  reader->header_.identity = identity;
  reader->seed_ = identity.seed();
  return reader;
}

absl::Status SegmentReader::ReadHeader(const std::string& path,
                                       const JournalIdentity* identity) {
  auto fixed = Bytes(0, kFixedHeaderBytes);
  if (!fixed.ok()) return fixed.status();
  if (fixed->size() < kFixedHeaderBytes ||
      fixed->substr(0, kSegmentMagic.size()) != kSegmentMagic) {
    return HeaderDamaged(path, "not a segment of a journal");
  }
  header_.identity.partitions = NumberAt<uint32_t>(*fixed, 12);
  if (header_.identity.partitions > kPartitionsMax) {
    return HeaderDamaged(path, "its header is damaged");
  }
  const size_t header_bytes = SegmentHeader::Bytes(header_.identity.partitions);
  const auto all = Bytes(0, header_bytes);
  if (!all.ok()) return all.status();
  if (all->size() < header_bytes ||
      Crc32c(0, all->substr(0, header_bytes - 4)) !=
          NumberAt<uint32_t>(*all, header_bytes - 4) ||
      NumberAt<uint32_t>(*all, 8) != kJournalVersion) {
    return HeaderDamaged(path, "its header is damaged");
  }
  header_.identity.id = std::string(all->substr(16, kJournalIdBytes));
  header_.number = NumberAt<uint64_t>(*all, 32);
  header_.first_group = NumberAt<uint64_t>(*all, 40);
  for (uint32_t p = 0; p < header_.identity.partitions; ++p) {
    header_.bases.push_back(
        NumberAt<uint64_t>(*all, kFixedHeaderBytes + size_t{8} * p));
  }
  if (identity != nullptr && header_.identity != *identity) {
    return HeaderDamaged(path, "belongs to another journal");
  }
  seed_ = header_.identity.seed();
  offset_ = header_bytes;
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> SegmentReader::Bytes(uint64_t offset,
                                                       size_t bytes) {
  if (offset >= file_bytes_) return absl::string_view();
  bytes = std::min<uint64_t>(bytes, file_bytes_ - offset);
  if (offset < buffer_offset_ ||
      offset + bytes > buffer_offset_ + buffer_.size()) {
    buffer_.resize(
        std::min<uint64_t>(std::max(bytes, kReadBytes), file_bytes_ - offset));
    buffer_offset_ = offset;
    const auto read = file_->Read(offset, buffer_.size(), buffer_.data());
    if (!read.ok()) {
      buffer_.clear();
      return read.status();
    }
    buffer_.resize(*read);
  }
  return absl::string_view(buffer_).substr(offset - buffer_offset_, bytes);
}

absl::StatusOr<absl::string_view> SegmentReader::HeaderAt(uint64_t offset) {
  const auto fixed = Bytes(offset, kGroupHeaderBytes);
  if (!fixed.ok()) return fixed;
  if (fixed->size() < kGroupHeaderBytes ||
      NumberAt<uint32_t>(*fixed, 0) != kGroupMagic) {
    return absl::string_view();
  }
  const uint32_t header_bytes = NumberAt<uint32_t>(*fixed, 8);
  const uint64_t sections = NumberAt<uint32_t>(*fixed, 12);
  if (sections > header_.identity.partitions ||
      header_bytes != kGroupHeaderBytes + kSectionBytes * sections) {
    return absl::string_view();
  }
  const auto header = Bytes(offset, header_bytes);
  if (!header.ok()) return header;
  if (header->size() < header_bytes ||
      Crc32c(seed_, header->substr(kCoveredFrom)) !=
          NumberAt<uint32_t>(*header, 4)) {
    return absl::string_view();
  }
  return header;
}

absl::StatusOr<SegmentReader::Outcome> SegmentReader::Next(Group* group) {
  *group = {};
  group->offset = offset_;
  if (offset_ >= file_bytes_) return Outcome::kEnd;
  auto header = HeaderAt(offset_);
  if (!header.ok()) return header.status();
  if (header->empty()) return Outcome::kDamage;
  const size_t header_bytes = header->size();
  const uint64_t body_bytes = NumberAt<uint64_t>(*header, 16);
  group->number = NumberAt<uint64_t>(*header, 24);
  group->durable_group = NumberAt<uint64_t>(*header, 32);
  if (body_bytes > file_bytes_ - offset_ - header_bytes) {
    return Outcome::kDamage;
  }
  const auto all = Bytes(offset_, header_bytes + body_bytes);
  if (!all.ok()) return all.status();
  if (all->size() < header_bytes + body_bytes) return Outcome::kDamage;
  absl::string_view body = all->substr(header_bytes);
  for (size_t at = kGroupHeaderBytes; at < header_bytes; at += kSectionBytes) {
    const uint64_t bytes = NumberAt<uint64_t>(*all, at + 16);
    Section section = {.partition = NumberAt<uint32_t>(*all, at),
                       .records = NumberAt<uint32_t>(*all, at + 4),
                       .first_position = NumberAt<uint64_t>(*all, at + 8),
                       .crc = NumberAt<uint32_t>(*all, at + 24),
                       .body = body.substr(0, bytes)};
    if (bytes > body.size() ||
        section.partition >= header_.identity.partitions) {
      return Outcome::kDamage;
    }
    body.remove_prefix(bytes);
    group->sections.push_back(section);
  }
  offset_ += header_bytes + body_bytes;
  return Outcome::kGroup;
}

absl::StatusOr<bool> SegmentReader::Resynchronise(uint64_t from) {
  constexpr uint32_t kMagic = kGroupMagic;
  const absl::string_view magic(reinterpret_cast<const char*>(&kMagic), 4);
  uint64_t at = from;
  while (at + kGroupHeaderBytes <= file_bytes_) {
    const auto bytes = Bytes(at, kSearchBytes);
    if (!bytes.ok()) return bytes.status();
    if (bytes->size() < kGroupHeaderBytes) return false;
    const size_t found = bytes->find(magic);
    if (found == absl::string_view::npos) {
      at += bytes->size() - (magic.size() - 1);
      continue;
    }
    at += found;
    const auto header = HeaderAt(at);
    if (!header.ok()) return header.status();
    if (!header->empty()) {
      offset_ = at;
      return true;
    }
    ++at;
  }
  return false;
}

}  // namespace timecache::server
