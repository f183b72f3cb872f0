// Records of maps in a journal: whatever its bytes are, one is read or refused,
// and what was read is the same after it is written and read again.

#include <string>

#include "absl/strings/str_cat.h"
#include "server/durable/change_record.h"
#include "server/durable/map_record.h"
#include "server/engine/store/namespace_options.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/journal/change_text.h"

namespace timecache::server {
namespace {

using fuzz::Require;

// What was read of a record: as text, which tells differences, and written
// again.
struct Reading {
  absl::Status status;
  // No map has these.
  bool bad_shard = false;
  std::string text;
  std::string bytes;
};

Reading ReadChanges(absl::string_view bytes) {
  Reading reading;
  ChangeRecord again;
  reading.status = ReadChangeRecord(
      bytes,
      [&](int shard, const Change& change) {
        absl::StrAppend(&reading.text, TextOf(shard, change), "\n");
        reading.bad_shard = reading.bad_shard || shard < 0;
        again.Add(shard, change);
        return absl::OkStatus();
      },
      [&](const Tick& tick) {
        absl::StrAppend(&reading.text, TextOf(tick), "\n");
        again.Add(tick);
        return absl::OkStatus();
      },
      [&](const GroupChange& change) {
        Require(!change.name.empty(), "a group without a name");
        absl::StrAppend(&reading.text, TextOf(change), "\n");
        again.Add(change);
        return absl::OkStatus();
      },
      [&](const RetainedEvents& events) {
        Require(!events.events.empty(), "no events");
        absl::StrAppend(&reading.text, TextOf(events), "\n");
        again.Add(events);
        return absl::OkStatus();
      });
  reading.bytes = again.Take();
  return reading;
}

void CheckChanges(absl::string_view bytes) {
  const Reading first = ReadChanges(bytes);
  // What was before the damage was visited.
  Require(first.status.ok() || absl::IsDataLoss(first.status),
          first.status.ToString());
  if (first.bad_shard) return;
  const Reading second = ReadChanges(first.bytes);
  Require(second.status.ok(), second.status.ToString());
  Require(second.text == first.text, first.text + second.text);
  Require(second.bytes == first.bytes, first.text);
}

void CheckDescription(const MapRecord& record) {
  const absl::StatusOr<MapDescription> map = DecodeMap(record);
  if (!map.ok()) {
    Require(absl::IsDataLoss(map.status()), map.status().ToString());
    return;
  }
  Require(ValidateNamespaceName(map->name).ok() && Validate(map->options).ok(),
          map->name);
  const std::string bytes = EncodeMap(record.kind, *map);
  const absl::StatusOr<MapRecord> read = ReadMapRecord(bytes);
  Require(
      read.ok() && read->kind == record.kind && read->log_id == record.log_id,
      map->name);
  const absl::StatusOr<MapDescription> again = DecodeMap(*read);
  Require(again.ok(), again.status().ToString());
  Require(EncodeMap(read->kind, *again) == bytes, map->name);
}

void CheckCheckpoint(const MapRecord& record, const std::string& bytes) {
  const absl::StatusOr<CheckpointMark> mark = DecodeCheckpoint(record);
  if (mark.ok()) {
    Require(EncodeCheckpoint(record.log_id, *mark) == bytes, "another mark");
  } else {
    Require(absl::IsDataLoss(mark.status()), mark.status().ToString());
  }
}

void CheckTimeSkip(const MapRecord& record, const std::string& bytes) {
  const absl::StatusOr<TimeSkip> skip = DecodeTimeSkip(record);
  if (skip.ok()) {
    Require(EncodeTimeSkip(record.log_id, *skip) == bytes, "another skip");
  } else {
    Require(absl::IsDataLoss(skip.status()), skip.status().ToString());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes = fuzz::Bytes(data, size);
  const absl::StatusOr<MapRecord> record = ReadMapRecord(bytes);
  if (!record.ok()) {
    Require(absl::IsDataLoss(record.status()), record.status().ToString());
    return 0;
  }
  if (record->kind == MapRecordKind::kChanges) {
    CheckChanges(record->body);
  } else if (record->kind == MapRecordKind::kTimeSkip ||
             record->kind == MapRecordKind::kDowntime) {
    CheckTimeSkip(*record, bytes);
  } else if (record->kind == MapRecordKind::kCheckpoint) {
    CheckCheckpoint(*record, bytes);
  } else if (record->kind == MapRecordKind::kRestoreEnds) {
    const absl::StatusOr<int64_t> at_us = DecodeRestoreEnds(*record);
    Require(at_us.ok() || absl::IsDataLoss(at_us.status()), "another error");
  } else if (record->kind != MapRecordKind::kRestoreBegins) {
    CheckDescription(*record);
  }
  return 0;
}

}  // namespace timecache::server
