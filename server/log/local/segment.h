// The files that hold records, and how they are read.
//
// A segment is a header and then groups, each as one commit wrote it. All
// numbers are little-endian.
//
//   header: "TCJOURNL" | u32 version | u32 partitions | journal id (16) |
//           u64 number | u64 first_group | u64 base for each partition |
//           u32 crc of all before
//   group:  u32 magic | u32 crc of the header from here on |
//           u32 header_bytes | u32 sections | u64 body_bytes | u64 group |
//           u64 durable_group | sections | body
//   section: u32 partition | u32 records | u64 first_position | u64 bytes |
//           u32 crc of its part of the body
//   its part of the body: for each record, u32 bytes | the bytes
//
// Every CRC starts from the journal's id, so that no record's bytes can pass
// for a group. `durable_group` records that all groups before it were synced
// when this one was written: that distinguishes damage from a torn tail. A
// section without records says that the positions before its first one are lost
// (salvage).

#ifndef TIMECACHED_SERVER_LOG_LOCAL_SEGMENT_H_
#define TIMECACHED_SERVER_LOG_LOCAL_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/log/local/file_system.h"

namespace timecache::server {

inline constexpr uint32_t kJournalVersion = 1;
inline constexpr uint32_t kPartitionsMax = 1024;
inline constexpr size_t kJournalIdBytes = 16;

// What all files of a journal agree on.
struct JournalIdentity {
  std::string id;  // kJournalIdBytes random bytes
  uint32_t partitions = 0;

  // What its CRCs start from.
  uint32_t seed() const;
  bool operator==(const JournalIdentity&) const = default;
};

struct SegmentHeader {
  JournalIdentity identity;
  uint64_t number = 0;
  uint64_t first_group = 0;
  // The position of the first record of each partition that comes in this
  // segment or later.
  std::vector<uint64_t> bases;

  std::string Encode() const;
  static size_t Bytes(uint32_t partitions);
};

struct Section {
  uint32_t partition = 0;
  uint32_t records = 0;
  uint64_t first_position = 0;
  uint32_t crc = 0;
  absl::string_view body;
};

struct Group {
  uint64_t offset = 0;  // in its segment
  uint64_t number = 0;
  uint64_t durable_group = 0;
  std::vector<Section> sections;
};

// Encodes one group, in place. Not thread-safe.
class GroupEncoder {
 public:
  // What a record takes in a group's body.
  static size_t BodyBytes(absl::string_view record) {
    return sizeof(uint32_t) + record.size();
  }

  // Drops what it has and starts the next one, of so many sections. With
  // `body_bytes`, if they are known, it takes its memory at once.
  void Start(const JournalIdentity& identity, uint64_t group,
             uint64_t durable_group, uint32_t sections, size_t body_bytes = 0);
  void StartSection(uint32_t partition, uint64_t first_position);
  void Add(absl::string_view record);
  // Good until the next Start or Take.
  absl::string_view Finish();
  // Gives away what Finish has returned; goes on in the memory of `spare`.
  std::string Take(std::string spare) {
    return std::exchange(bytes_, std::move(spare));
  }

 private:
  struct Part {
    uint32_t partition;
    uint32_t records;
    uint64_t first_position;
    size_t begin;  // of its body
  };

  uint32_t seed_ = 0;
  std::vector<Part> sections_;
  std::string bytes_;
};

// Calls `visit(position, record)` for the records of an intact section.
// DATA_LOSS if the lengths do not fit.
absl::Status VisitRecords(
    const Section& section,
    absl::FunctionRef<absl::Status(uint64_t, absl::string_view)> visit);
bool IsIntact(const JournalIdentity& identity, const Section& section);

// Reads the groups of one segment in order. Holds a mebibyte or the largest
// group. Not thread-safe.
class SegmentReader {
 public:
  enum class Outcome { kGroup, kEnd, kDamage };

  // DATA_LOSS if the header is damaged. With no `identity` any journal's will
  // do.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(
      FileSystem* files, const std::string& path,
      const JournalIdentity* identity);

  // One whose header is damaged: Resynchronise finds its groups.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> OpenWithoutHeader(
      FileSystem* files, const std::string& path,
      const JournalIdentity& identity);

  const SegmentHeader& header() const { return header_; }
  // Where the next group starts, and of the whole file.
  uint64_t offset() const { return offset_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // Reads no further than this.
  void LimitTo(uint64_t bytes) { file_bytes_ = bytes; }

  // The next group: its header is intact, its sections are not looked at, and
  // their bytes are good until the next call. After damage the offset stays; if
  // only the body is cut off, the group has its numbers, otherwise zeros.
  absl::StatusOr<Outcome> Next(Group* group);
  // Goes on at the first header of a group at or after `from`. False if there
  // is none.
  absl::StatusOr<bool> Resynchronise(uint64_t from);

 private:
  SegmentReader(std::unique_ptr<File> file, uint64_t file_bytes)
      : file_(std::move(file)), file_bytes_(file_bytes) {}
  // `bytes` at `offset`, fewer at the end.
  absl::StatusOr<absl::string_view> Bytes(uint64_t offset, size_t bytes);
  // The group's header at `offset`, or empty if there is none.
  absl::StatusOr<absl::string_view> HeaderAt(uint64_t offset);
  absl::Status ReadHeader(const std::string& path,
                          const JournalIdentity* identity);

  const std::unique_ptr<File> file_;
  uint64_t file_bytes_;
  SegmentHeader header_;
  uint32_t seed_ = 0;
  uint64_t offset_ = 0;
  std::string buffer_;
  uint64_t buffer_offset_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_SEGMENT_H_
