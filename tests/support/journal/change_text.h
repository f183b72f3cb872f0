// What a map tells its journal, as text: a difference can be read.

#ifndef TIMECACHED_TESTS_SUPPORT_JOURNAL_CHANGE_TEXT_H_
#define TIMECACHED_TESTS_SUPPORT_JOURNAL_CHANGE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/durable/change_record.h"

namespace timecache::server {

inline std::string TraceText(absl::string_view trace) {
  if (trace.empty()) return "none";
  char text[kTraceTextBytes];
  FormatTrace(trace, text);
  return std::string(text, sizeof(text));
}

inline std::string TextOf(const ExpiredEvent& event, const Death& death) {
  return absl::StrCat(" event ", event.key, "=", event.value,
                      event.parts ? " parts" : "", " version ", event.version,
                      " put ", event.put_us, " deadline ", event.deadline_us,
                      " created ", event.create_us, " own ", event.own_ttl_us,
                      " trace ", TraceText(event.trace), " death ",
                      death.death_us, " ", death.published_us, " ",
                      static_cast<int>(death.cause));
}

inline std::string TextOf(int shard, const Change& change) {
  const Record& record = change.record;
  return absl::StrCat(
      shard, " ", static_cast<int>(change.kind), " ", record.key, "=",
      record.value, record.parts ? " parts" : "", " version ", record.version,
      " of ", change.base_version, change.renewed ? " renewed" : "", " put ",
      record.put_us, " life ", record.life_us, " own ", record.own_ttl_us,
      " created ", record.create_us, " trace ", TraceText(record.view().trace),
      " death ", change.death_us, " at ", change.at_us, " kill ", change.kill,
      " ", static_cast<int>(change.cause));
}

inline std::string TextOf(const Tick& tick) {
  return absl::StrCat("tick ", tick.watermark_us, " ", tick.next_event, " ",
                      tick.retained_event, " ", tick.kills);
}

inline std::string TextOf(const GroupChange& change) {
  const GroupOptions& o = change.options;
  const GroupStatistics& s = change.statistics;
  return absl::StrCat(
      "group ", change.name, " ", static_cast<int>(change.kind), " events ",
      change.first, " ", change.end, " attempt ", change.attempt, " ready ",
      change.ready_us, " returns ", change.returns, change.returned,
      static_cast<int>(change.reason), change.reason_text, " id ", change.id,
      " options ",
      absl::StrJoin(
          {o.ack_timeout_us, int64_t{o.max_attempts}, o.max_backlog_bytes,
           o.unused_ttl_us, o.retry_delay_us, int64_t{o.retry_multiplier},
           o.max_retry_delay_us, int64_t{o.retry_jitter_percent},
           int64_t{o.paused}, int64_t{o.single_active}},
          " "),
      " by ", change.created_by, " unused ", change.unused_since_us, " lost ",
      change.unreported, " counts ",
      absl::StrJoin(
          {s.events, s.delivered, s.redelivered, s.acked, s.nacked, s.put_back,
           s.timed_out, s.dead_lettered, s.dead_letter_failures,
           s.dead_letters_denied, s.dead_letters_dropped, s.lost, s.returned,
           s.extended, s.terminated, s.moved, s.skipped},
          " "),
      " prefix ", o.key_prefix, " delays ",
      absl::StrJoin(o.retry_delays_us, " "),
      TextOf(change.event, change.death));
}

inline std::string TextOf(const RetainedEvents& events) {
  std::string text = absl::StrCat("retained ", events.first_event, " appended ",
                                  events.appended_us);
  for (const ExpiredEvent& event : events.events) {
    text += TextOf(event, events.death);
  }
  return text;
}

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_JOURNAL_CHANGE_TEXT_H_
