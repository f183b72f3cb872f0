#include "timecache/recipes/event_log.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/recipes/member_key.h"
#include "client/cpp/src/recipes/random_id.h"
#include "client/cpp/src/recipes/record_bytes.h"
#include "timecache/batch.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// An offset behind every event of a chunk.
constexpr uint64_t kAllOfIt = std::numeric_limits<uint64_t>::max();

// The events of which a byte lies behind `offset`.
absl::StatusOr<std::vector<EventLog::Event>> DecodeFrom(std::string_view value,
                                                        uint64_t offset) {
  std::vector<EventLog::Event> events;
  absl::flat_hash_set<uint64_t> ids;
  std::string_view rest = value;
  while (!rest.empty()) {
    const uint64_t at = value.size() - rest.size();
    EventLog::Event event;
    int64_t time_us = 0;
    uint32_t size = 0;
    std::string_view data;
    if (!TakeNumber(&rest, &event.id) || !TakeNumber(&rest, &time_us) ||
        !TakeNumber(&rest, &size) || !TakeBytes(&rest, size, &data)) {
      return absl::DataLossError(
          absl::StrCat("the value is no chunk of events: byte ", at, " of ",
                       value.size(), " begins no whole one"));
    }
    // Repeated events were read the first time.
    if (!ids.insert(event.id).second || at < offset) continue;
    event.time = absl::FromUnixMicros(time_us);
    event.data = data;
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace

EventLog::EventLog(const Client& client, std::string_view name,
                   EventLogOptions options)
    : client_(client), key_prefix_(KeyPrefix(name)), options_(options) {}

uint64_t EventLog::NewId() { return RandomId(); }

absl::Status EventLog::Append(absl::Time time, std::string_view data) const {
  return Append({.time = time, .data = std::string(data), .id = NewId()});
}

absl::Status EventLog::Append(const Event& event) const {
  std::string record;
  AppendNumber(event.id, &record);
  AppendNumber(absl::ToUnixMicros(event.time), &record);
  AppendNumber(static_cast<uint32_t>(event.data.size()), &record);
  record += event.data;
  return client_
      .Append(KeyOf(ChunkOf(event.time)), record,
              {.ttl = options_.chunk * options_.chunks}, {.repeatable = true})
      .status();
}

absl::StatusOr<EventLog::Page> EventLog::Read(absl::Time from,
                                              absl::Time to) const {
  Page page;
  if (from >= to) return page;
  const int64_t last = ChunkOf(to - absl::Microseconds(1));
  const int64_t oldest = last - options_.chunks + 1;
  page.may_have_missed = ChunkOf(from) < oldest;
  const int64_t first = std::max(ChunkOf(from), oldest - 1);
  const auto values = Get(first, last);
  if (!values.ok()) return values.status();
  for (const std::string& value : *values) {
    auto events = DecodeFrom(value, 0);
    if (!events.ok()) return events.status();
    for (Event& event : *events) {
      if (event.time < from || event.time >= to) continue;
      page.events.push_back(std::move(event));
    }
  }
  std::stable_sort(
      page.events.begin(), page.events.end(),
      [](const Event& a, const Event& b) { return a.time < b.time; });
  return page;
}

EventLog::Position EventLog::PositionAt(absl::Time time) const {
  return {.chunk = ChunkOf(time), .previous_offset = kAllOfIt};
}

absl::StatusOr<EventLog::Page> EventLog::ReadNew(Position* position,
                                                 absl::Time now) const {
  const int64_t last = std::max(ChunkOf(now), position->chunk);
  const int64_t oldest = last - options_.chunks + 1;
  Page page;
  page.may_have_missed = position->chunk < oldest;
  // A chunk more may still live, and the one before the position's may have got
  // late events.
  const int64_t first = std::max(position->chunk - 1, oldest - 1);
  const auto values = Get(first, last);
  if (!values.ok()) return values.status();
  Position next = {.chunk = last};
  for (int64_t chunk = first; chunk <= last; ++chunk) {
    const std::string& value = (*values)[static_cast<size_t>(chunk - first)];
    const uint64_t offset = chunk == position->chunk ? position->offset
                            : chunk == position->chunk - 1
                                ? position->previous_offset
                                : 0;
    auto events = DecodeFrom(value, offset);
    if (!events.ok()) return events.status();
    std::move(events->begin(), events->end(), std::back_inserter(page.events));
    if (chunk == last) next.offset = value.size();
    if (chunk == last - 1) next.previous_offset = value.size();
  }
  *position = next;
  return page;
}

absl::StatusOr<std::vector<EventLog::Event>> EventLog::Decode(
    std::string_view value) {
  return DecodeFrom(value, 0);
}

int64_t EventLog::ChunkOf(absl::Time time) const {
  const int64_t chunk_us = absl::ToInt64Microseconds(options_.chunk);
  const int64_t time_us = absl::ToUnixMicros(time);
  return time_us / chunk_us - (time_us % chunk_us < 0 ? 1 : 0);
}

std::string EventLog::KeyOf(int64_t chunk) const {
  return absl::StrCat(key_prefix_, chunk);
}

absl::StatusOr<std::vector<std::string>> EventLog::Get(int64_t first,
                                                       int64_t last) const {
  std::vector<std::string> values(static_cast<size_t>(last - first + 1));
  std::vector<int64_t> wanted;
  for (int64_t chunk = first; chunk <= last; ++chunk) wanted.push_back(chunk);
  while (!wanted.empty()) {
    const size_t count = std::min(wanted.size(), Batch::kMaxOperations);
    Batch batch;
    for (size_t i = 0; i < count; ++i) {
      batch.Add(Operation::Get(KeyOf(wanted[i])));
    }
    auto results = client_.Execute(batch, {.repeatable = true});
    if (!results.ok()) return results.status();
    // What does not fit into this response fits into a later one: each has one
    // at least.
    std::vector<int64_t> left(wanted.begin() + static_cast<ptrdiff_t>(count),
                              wanted.end());
    for (size_t i = 0; i < count; ++i) {
      OperationResult& result = (*results)[i];
      if (HasReason(result.status, ErrorReason::kMaxResponseBytes)) {
        left.push_back(wanted[i]);
      } else if (!result.status.ok()) {
        return result.status;
      } else if (result.entry) {
        values[static_cast<size_t>(wanted[i] - first)] =
            std::move(result.entry->value);
      }
    }
    wanted = std::move(left);
  }
  return values;
}

}  // namespace timecache
