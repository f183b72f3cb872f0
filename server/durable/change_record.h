// How the changes of a map are written into records of a journal.

#ifndef TIMECACHED_SERVER_DURABLE_CHANGE_RECORD_H_
#define TIMECACHED_SERVER_DURABLE_CHANGE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/groups/group_change.h"
#include "server/engine/shard/change.h"

namespace timecache::server {

// Gathers changes and ticks, in order, into one record. A put costs its key and
// value and some ten bytes, an append its key and bytes: times are differences
// from the change before, the death one from the deadline. The outcome of a row
// of events of a group costs five bytes, and the group's name if it differs
// from the previous one. Not thread-safe.
class ChangeRecord {
 public:
  // Each record begins with `prefix`, which is not passed to ReadChangeRecord.
  explicit ChangeRecord(std::string prefix = {})
      : prefix_(std::move(prefix)), bytes_(prefix_) {}

  void Add(int shard, const Change& change);
  void Add(const Tick& tick);
  void Add(const GroupChange& change);
  void Add(const RetainedEvents& events);
  // All changes that are added from here on are one atomic batch, which is then
  // the record. It must be empty.
  void BeginBatch();

  bool empty() const { return bytes_.size() == prefix_.size(); }
  size_t size() const { return bytes_.size(); }
  // What was added since the last Take.
  std::string Take() {
    base_ = Base();
    return std::exchange(bytes_, prefix_);
  }
  // An empty one is made in the memory of `spare`.
  void Use(std::string spare) {
    spare.assign(prefix_);
    bytes_ = std::move(spare);
  }

 private:
  friend class ChangeReader;

  // The values that numbers are differences from.
  struct Base {
    int64_t at_us = 0;
    uint64_t version = 0;
    uint64_t event = 0;
    std::string group;
  };

  void PutStore(int shard, const Change& change);
  void PutTimesItem(const Record& record);
  void PutTrace(absl::string_view trace);
  void PutVersion(uint64_t version);
  void PutTimes(const Change& change);
  void PutChange(int shard, const Change& change);
  void PutAnswer(int shard, const Change& change);
  void PutAt(int64_t at_us);
  void PutEvents(const GroupChange& change);
  void PutUnused(const GroupChange& change);
  void PutState(const GroupChange& change);
  void PutKept(const GroupChange& change);
  void PutEvent(const ExpiredEvent& event, const Death& death);
  void PutEventTimes(const ExpiredEvent& event);

  const std::string prefix_;
  std::string bytes_;
  Base base_;
};

// Visits what was added, in order; the views are into the record. An error of a
// visitor ends the walk, which returns it. DATA_LOSS: the bytes are not a
// ChangeRecord, or of a newer version.
using ChangeVisitor =
    absl::FunctionRef<absl::Status(int shard, const Change& change)>;
using TickVisitor = absl::FunctionRef<absl::Status(const Tick& tick)>;
using GroupVisitor = absl::FunctionRef<absl::Status(const GroupChange& change)>;
using RetainedVisitor =
    absl::FunctionRef<absl::Status(const RetainedEvents& events)>;
absl::Status ReadChangeRecord(absl::string_view record, ChangeVisitor change,
                              TickVisitor tick, GroupVisitor group,
                              RetainedVisitor retained);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_CHANGE_RECORD_H_
