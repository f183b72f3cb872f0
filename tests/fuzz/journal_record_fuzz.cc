// Records of maps in a journal: whatever its bytes are, one is read or refused,
// and what was read is the same after it is written and read again.

#include <string>

#include "absl/strings/str_cat.h"
#include "server/durable/change_record.h"
#include "server/durable/map_record.h"
#include "server/engine/store/namespace_options.h"
#include "tests/fuzz/fuzz.h"

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

std::string TextOf(int shard, const Change& change) {
  const Record& record = change.record;
  return absl::StrCat(
      "change ", static_cast<int>(change.kind), " ", shard, " at ",
      change.at_us, " death ", change.death_us, " kill ", change.kill, " ",
      static_cast<int>(change.cause), " base ", change.base_version, " ",
      change.renewed, " parts ", record.parts, " of ", record.version, " ",
      record.put_us, " ", record.life_us, " ", record.own_ttl_us, " ",
      record.create_us, " \"", record.key, "\" \"", record.value, "\"\n");
}

std::string TextOf(const Tick& tick) {
  return absl::StrCat("tick ", tick.watermark_us, " ", tick.next_event, " ",
                      tick.retained_event, " ", tick.kills, "\n");
}

std::string TextOf(const GroupChange& change) {
  const GroupOptions& options = change.options;
  const GroupStatistics& statistics = change.statistics;
  std::string text = absl::StrCat(
      "group ", static_cast<int>(change.kind), " \"", change.name, "\" ",
      change.first, " to ", change.end, " attempt ", change.attempt, " ready ",
      change.ready_us, " returns ", change.returns, " ", change.returned, " ",
      static_cast<int>(change.reason), " unused ", change.unused_since_us,
      " unreported ", change.unreported, " by \"", change.created_by,
      "\" options ", options.ack_timeout_us, " ", options.max_attempts, " ",
      options.max_backlog_bytes, " ", options.unused_ttl_us);
  absl::StrAppend(&text, " counts ", statistics.events, " ", statistics.acked,
                  " ", statistics.nacked, " ", statistics.put_back, " ",
                  statistics.timed_out, " ", statistics.dead_lettered, " ",
                  statistics.lost, " ", statistics.returned, " ",
                  statistics.extended);
  const ExpiredEvent& event = change.event;
  return absl::StrCat(text, " event ", event.parts, " \"", event.key, "\" \"",
                      event.value, "\" ", event.version, " ", event.put_us, " ",
                      event.deadline_us, " ", event.create_us, " ",
                      event.own_ttl_us, " died ", change.death.death_us, " ",
                      change.death.published_us, " ",
                      static_cast<int>(change.death.cause), "\n");
}

std::string TextOf(const RetainedEvents& events) {
  std::string text = absl::StrCat(
      "retained ", events.first_event, " appended ", events.appended_us,
      " died ", events.death.death_us, " ", events.death.published_us, " ",
      static_cast<int>(events.death.cause));
  for (const ExpiredEvent& event : events.events) {
    absl::StrAppend(&text, " event ", event.parts, " \"", event.key, "\" \"",
                    event.value, "\" ", event.version, " ", event.put_us, " ",
                    event.deadline_us, " ", event.create_us, " ",
                    event.own_ttl_us);
  }
  return text + "\n";
}

Reading ReadChanges(absl::string_view bytes) {
  Reading reading;
  ChangeRecord again;
  reading.status = ReadChangeRecord(
      bytes,
      [&](int shard, const Change& change) {
        reading.text += TextOf(shard, change);
        reading.bad_shard = reading.bad_shard || shard < 0;
        again.Add(shard, change);
        return absl::OkStatus();
      },
      [&](const Tick& tick) {
        reading.text += TextOf(tick);
        again.Add(tick);
        return absl::OkStatus();
      },
      [&](const GroupChange& change) {
        Require(!change.name.empty(), "a group without a name");
        reading.text += TextOf(change);
        again.Add(change);
        return absl::OkStatus();
      },
      [&](const RetainedEvents& events) {
        Require(!events.events.empty(), "no events");
        reading.text += TextOf(events);
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
  } else {
    CheckDescription(*record);
  }
  return 0;
}

}  // namespace timecache::server
