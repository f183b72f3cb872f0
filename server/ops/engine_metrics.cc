#include "server/ops/engine_metrics.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

using prometheus::MetricType;

// --- Reading.

struct NamespaceRow {
  std::string name;
  NamespaceStatistics statistics;
};

struct GroupRow {
  std::string map;
  std::string name;
  GroupStatistics statistics;
};

void Merge(const NamespaceStatistics& from, NamespaceStatistics* to) {
  to->entries += from.entries;
  to->bytes += from.bytes;
  to->memory_bytes += from.memory_bytes;
  to->live_buckets += from.live_buckets;
  to->expired += from.expired;
  to->evicted += from.evicted;
  to->rotated += from.rotated;
  to->events_retained += from.events_retained;
  to->events_retained_bytes += from.events_retained_bytes;
  to->events_reclaimed += from.events_reclaimed;
  to->oldest_retained_us =
      std::min(to->oldest_retained_us, from.oldest_retained_us);
  to->watchers += from.watchers;
  to->watch_owed += from.watch_owed;
  to->watch_delivered += from.watch_delivered;
  to->watch_lost += from.watch_lost;
  to->watch_left += from.watch_left;
  to->watch_pending += from.watch_pending;
  to->watch_lag = std::max(to->watch_lag, from.watch_lag);
  to->oldest_unread_us = std::min(to->oldest_unread_us, from.oldest_unread_us);
  to->watermark_us = std::min(to->watermark_us, from.watermark_us);
  to->bucket_width_us = std::min(to->bucket_width_us, from.bucket_width_us);
  to->lateness.Merge(from.lateness);
  to->delivery_lateness.Merge(from.delivery_lateness);
  to->bound_violations += from.bound_violations;
  to->expired_while_down += from.expired_while_down;
  to->operations.Add(from.operations);
  for (size_t i = 0; i < kLimitHits; ++i) to->refused[i] += from.refused[i];
  to->rate_limited += from.rate_limited;
  to->backlog_bytes += from.backlog_bytes;
  to->backlog_limit_bytes += from.backlog_limit_bytes;
  to->groups_expired += from.groups_expired;
}

void Merge(const GroupStatistics& from, GroupStatistics* to) {
  to->members += from.members;
  to->events += from.events;
  to->unresponsive_members += from.unresponsive_members;
  to->backlog += from.backlog;
  to->backlog_bytes += from.backlog_bytes;
  to->in_flight += from.in_flight;
  to->in_flight_bytes += from.in_flight_bytes;
  to->oldest_unsettled_us =
      std::min(to->oldest_unsettled_us, from.oldest_unsettled_us);
  to->delivered += from.delivered;
  to->redelivered += from.redelivered;
  to->acked += from.acked;
  to->nacked += from.nacked;
  to->put_back += from.put_back;
  to->timed_out += from.timed_out;
  to->dead_lettered += from.dead_lettered;
  to->dead_letter_failures += from.dead_letter_failures;
  to->dead_letters_denied += from.dead_letters_denied;
  to->dead_letters_dropped += from.dead_letters_dropped;
  to->lost += from.lost;
  to->returned += from.returned;
  to->extended += from.extended;
  to->suspects += from.suspects;
}

// Adds a row, or to the last one where it is one too many.
template <typename Row>
void AddRow(Row row, size_t max_rows, const std::string& other,
            std::vector<Row>* rows) {
  if (rows->size() < max_rows) {
    rows->push_back(std::move(row));
  } else if (rows->size() == max_rows) {
    row.name = other;
    rows->push_back(std::move(row));
  } else {
    Merge(row.statistics, &rows->back().statistics);
  }
}

// --- Metrics.

// Since `us` on the clock; 0 for kNeverUs.
double AgeSeconds(int64_t us, int64_t now_us) {
  if (us == kNeverUs || us >= now_us) return 0;
  return static_cast<double>(now_us - us) / kMicrosPerSecond;
}

template <typename Statistics>
struct Column {
  MetricInfo info;
  MetricType type;
  double (*value)(const Statistics& of, int64_t now_us);
};

constexpr MetricType kGauge = MetricType::Gauge;
constexpr MetricType kCounter = MetricType::Counter;

template <auto kMember, typename Statistics>
double Number(const Statistics& of, int64_t) {
  return static_cast<double>(of.*kMember);
}
// Of a map's operations.
template <auto kMember>
double Count(const NamespaceStatistics& of, int64_t) {
  return static_cast<double>(of.operations.*kMember);
}

constexpr Column<NamespaceStatistics> kNamespaceColumns[] = {
    {{"timecache_entries", "Live entries."},
     kGauge,
     Number<&NamespaceStatistics::entries>},
    {{"timecache_entry_bytes", "Bytes of the keys and values of live entries."},
     kGauge,
     Number<&NamespaceStatistics::bytes>},
    {{"timecache_memory_bytes",
      "Memory of segments, index and tables, and of events shared by watches "
      "with a lead time; excludes the log."},
     kGauge,
     Number<&NamespaceStatistics::memory_bytes>},
    {{"timecache_live_buckets", "Buckets with a live entry."},
     kGauge,
     Number<&NamespaceStatistics::live_buckets>},
    {{"timecache_bucket_width_seconds",
      "The bound of lateness: ttl / (num_buckets - 1)."},
     kGauge,
     [](const NamespaceStatistics& of, int64_t) {
       return static_cast<double>(of.bucket_width_us) / kMicrosPerSecond;
     }},
    {{"timecache_watermark_lag_seconds",
      "Age of the moment up to which all deaths are published."},
     kGauge,
     [](const NamespaceStatistics& of, int64_t now_us) {
       return AgeSeconds(of.watermark_us, now_us);
     }},
    {{"timecache_log_events",
      "Events that a watch from the earliest would read."},
     kGauge,
     Number<&NamespaceStatistics::events_retained>},
    {{"timecache_log_bytes", "Memory of these events."},
     kGauge,
     Number<&NamespaceStatistics::events_retained_bytes>},
    {{"timecache_log_reclaimed_total",
      "Retained events dropped before event_retention was over, because the "
      "server needed the memory."},
     kCounter,
     Number<&NamespaceStatistics::events_reclaimed>},
    {{"timecache_log_oldest_seconds",
      "Age of the oldest of these events; 0 if there is none."},
     kGauge,
     [](const NamespaceStatistics& of, int64_t now_us) {
       return AgeSeconds(of.oldest_retained_us, now_us);
     }},
    {{"timecache_backlog_bytes",
      "Memory of the events that consumer groups have not settled, each batch "
      "once."},
     kGauge,
     Number<&NamespaceStatistics::backlog_bytes>},
    {{"timecache_backlog_limit_bytes",
      "Limit of timecache_backlog_bytes; beyond it the group that keeps most "
      "loses its oldest events."},
     kGauge,
     Number<&NamespaceStatistics::backlog_limit_bytes>},
    {{"timecache_groups_expired_total",
      "Consumer groups that were deleted because they had no member for their "
      "unused_ttl."},
     kCounter,
     Number<&NamespaceStatistics::groups_expired>},
    {{"timecache_watchers",
      "Open watches; a stream on several namespaces is several watches. "
      "Excludes members of groups."},
     kGauge,
     Number<&NamespaceStatistics::watchers>},
    {{"timecache_puts_total", "Entries put."},
     kCounter,
     Count<&OperationCounts::puts>},
    {{"timecache_hits_total", "Lookups (Get, Contains) that found an entry."},
     kCounter,
     Count<&OperationCounts::hits>},
    {{"timecache_misses_total", "Lookups (Get, Contains) that found none."},
     kCounter,
     Count<&OperationCounts::misses>},
    {{"timecache_removals_total", "Entries removed by Remove."},
     kCounter,
     Count<&OperationCounts::removals>},
    {{"timecache_appends_total", "Appends that succeeded."},
     kCounter,
     Count<&OperationCounts::appends>},
    {{"timecache_combines_total", "Combines that succeeded."},
     kCounter,
     Count<&OperationCounts::combines>},
    {{"timecache_gathers_total",
      "Gathers that succeeded, duplicate parts included."},
     kCounter,
     Count<&OperationCounts::gathers>},
    {{"timecache_rate_limited_total",
      "Operations refused by max_operations_per_second."},
     kCounter,
     Number<&NamespaceStatistics::rate_limited>},
    {{"timecache_bound_violations_total",
      "Events published later than a bucket width after their death."},
     kCounter,
     Number<&NamespaceStatistics::bound_violations>},
    {{"timecache_expired_while_down_total",
      "Of timecache_expired_total, entries that were due while the server was "
      "down, and died at its start. No violations of the bound, and in no "
      "lateness."},
     kCounter,
     Number<&NamespaceStatistics::expired_while_down>},
    {{"timecache_watch_owed_total",
      "Events due to watches: deaths from where each watch started until now, "
      "or until it ended. Always the sum of timecache_watch_delivered_total, "
      "timecache_watch_lost_total, timecache_watch_left_total and "
      "timecache_watch_pending."},
     kCounter,
     Number<&NamespaceStatistics::watch_owed>},
    {{"timecache_watch_delivered_total",
      "Of these, read for the watch: sent, or left out by its filter."},
     kCounter,
     Number<&NamespaceStatistics::watch_delivered>},
    {{"timecache_watch_left_total",
      "Of these, not read when the watch ended; a watch that resumes there "
      "gets them again."},
     kCounter,
     Number<&NamespaceStatistics::watch_left>},
    {{"timecache_watch_pending",
      "Of these, not read yet, of all open watches."},
     kGauge,
     Number<&NamespaceStatistics::watch_pending>},
    {{"timecache_watch_lag_events",
      "Events that the slowest watch has not read yet."},
     kGauge,
     Number<&NamespaceStatistics::watch_lag>},
    {{"timecache_watch_lag_seconds",
      "Time since the death of the oldest retained event that a watch has not "
      "read yet; 0 if there is none."},
     kGauge,
     [](const NamespaceStatistics& of, int64_t now_us) {
       return AgeSeconds(of.oldest_unread_us, now_us);
     }},
    {{"timecache_watch_lost_total", "Events reported to watchers as lost."},
     kCounter,
     Number<&NamespaceStatistics::watch_lost>},
};

constexpr Column<GroupStatistics> kGroupColumns[] = {
    {{"timecache_group_members",
      "Streams that are members of the consumer group."},
     kGauge,
     Number<&GroupStatistics::members>},
    {{"timecache_group_backlog", "Unsettled events that no member holds."},
     kGauge,
     Number<&GroupStatistics::backlog>},
    {{"timecache_group_backlog_bytes", "Memory of all unsettled events."},
     kGauge,
     Number<&GroupStatistics::backlog_bytes>},
    {{"timecache_group_unresponsive_members",
      "Members that let an event time out and have settled none since."},
     kGauge,
     Number<&GroupStatistics::unresponsive_members>},
    {{"timecache_group_in_flight", "Events that members hold."},
     kGauge,
     Number<&GroupStatistics::in_flight>},
    {{"timecache_group_in_flight_bytes", "Memory of these events."},
     kGauge,
     Number<&GroupStatistics::in_flight_bytes>},
    {{"timecache_group_lag_seconds",
      "Time since the death of the oldest unsettled event; 0 if there is "
      "none."},
     kGauge,
     [](const GroupStatistics& of, int64_t now_us) {
       return AgeSeconds(of.oldest_unsettled_us, now_us);
     }},
    {{"timecache_group_delivered_total", "Deliveries of an event to a member."},
     kCounter,
     Number<&GroupStatistics::delivered>},
    {{"timecache_group_redelivered_total",
      "Of these, of an event that had been delivered before."},
     kCounter,
     Number<&GroupStatistics::redelivered>},
    {{"timecache_group_acked_total", "Events settled by ACK."},
     kCounter,
     Number<&GroupStatistics::acked>},
    {{"timecache_group_nacked_total", "NACKs."},
     kCounter,
     Number<&GroupStatistics::nacked>},
    {{"timecache_group_put_back_total", "Events settled by PUT_BACK."},
     kCounter,
     Number<&GroupStatistics::put_back>},
    {{"timecache_group_timed_out_total",
      "Times that a member did not settle in time."},
     kCounter,
     Number<&GroupStatistics::timed_out>},
    {{"timecache_group_returned_total",
      "Deliveries that ended with the member's stream: no attempts."},
     kCounter,
     Number<&GroupStatistics::returned>},
    {{"timecache_group_extended_total",
      "Times that a member asked for another ack_timeout."},
     kCounter,
     Number<&GroupStatistics::extended>},
    {{"timecache_group_suspects",
      "Unsettled events that may crash their workers: they are delivered after "
      "growing pauses."},
     kGauge,
     Number<&GroupStatistics::suspects>},
    {{"timecache_group_dead_lettered_total",
      "Events put into the dead letter namespace."},
     kCounter,
     Number<&GroupStatistics::dead_lettered>},
    {{"timecache_group_dead_letter_failures_total",
      "Failed attempts to put a dead letter there."},
     kCounter,
     Number<&GroupStatistics::dead_letter_failures>},
    {{"timecache_group_dead_letters_denied_total",
      "Of timecache_group_dead_letter_failures_total, those because the "
      "principal that created the group may not write there."},
     kCounter,
     Number<&GroupStatistics::dead_letters_denied>},
    {{"timecache_group_events_total",
      "Events for the group since it was created: always the sum of the events "
      "acked, put back, dead-lettered and lost, the backlog and the events in "
      "flight."},
     kCounter,
     Number<&GroupStatistics::events>},
    {{"timecache_group_dead_letters_dropped_total",
      "Dead letters that can never fit there; also counted as lost."},
     kCounter,
     Number<&GroupStatistics::dead_letters_dropped>},
    {{"timecache_group_lost_total", "Events dropped unsettled."},
     kCounter,
     Number<&GroupStatistics::lost>},
};

constexpr MetricInfo kNamespaces = {"timecache_namespaces", "Namespaces."};
constexpr MetricInfo kExpired = {
    "timecache_expired_total",
    "Entries that died: their time was up (expired), they made room (evicted), "
    "or RotateNamespace killed their bucket (rotated)."};
constexpr MetricInfo kRefused = {"timecache_refused_total",
                                 "Operations refused by a limit or the "
                                 "journal's disk, by reason."};
constexpr MetricInfo kLateness = {
    "timecache_lateness_seconds",
    "Time from an entry's death to the publication of its event."};
constexpr MetricInfo kDeliveryLateness = {
    "timecache_delivery_lateness_seconds",
    "Time from an entry's death, or from when a slow watcher could accept "
    "more, until its event was handed to that watcher's stream."};
constexpr MetricInfo kSweeps = {
    "timecache_sweep_seconds",
    "Time that the reaper took to sweep a namespace's due buckets, including "
    "the turns of other namespaces."};

MetricLabels LabelsOf(const NamespaceRow& row) {
  return {{"namespace", row.name}};
}
MetricLabels LabelsOf(const GroupRow& row) {
  return {{"namespace", row.map}, {"group", row.name}};
}

MetricLabels With(MetricLabels labels, const char* name, std::string value) {
  labels.push_back({name, std::move(value)});
  return labels;
}

template <typename Row, typename Columns>
void AddColumns(const std::vector<Row>& rows, const Columns& columns,
                int64_t now_us,
                std::vector<prometheus::MetricFamily>* families) {
  for (const auto& column : columns) {
    prometheus::MetricFamily& family =
        families->emplace_back(NewFamily(column.info, column.type));
    family.metric.reserve(rows.size());
    for (const Row& row : rows) {
      AddSample(LabelsOf(row), column.value(row.statistics, now_us), &family);
    }
  }
}

// Buckets end at powers of two: from 2^kLeastWidth microseconds, 64 us, to
// 2^kMostWidth, 8.4 s.
constexpr size_t kLeastWidth = 6;
constexpr size_t kMostWidth = 23;

void AddHistogram(MetricLabels labels, const DurationHistogram& histogram,
                  prometheus::MetricFamily* family) {
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  metric.label = std::move(labels);
  metric.histogram.sample_count = histogram.total();
  metric.histogram.sample_sum = histogram.sum_us() / kMicrosPerSecond;
  for (size_t width = kLeastWidth; width <= kMostWidth; ++width) {
    const int64_t bound_us = int64_t{1} << width;
    metric.histogram.bucket.push_back(
        {histogram.CountAtMost(width),
         static_cast<double>(bound_us) / kMicrosPerSecond});
  }
}

std::vector<prometheus::MetricFamily> NamespaceFamilies(
    const std::vector<NamespaceRow>& rows, int64_t now_us) {
  std::vector<prometheus::MetricFamily> families;
  AddColumns(rows, kNamespaceColumns, now_us, &families);
  prometheus::MetricFamily expired = NewFamily(kExpired, kCounter);
  prometheus::MetricFamily refused = NewFamily(kRefused, kCounter);
  prometheus::MetricFamily lateness =
      NewFamily(kLateness, MetricType::Histogram);
  prometheus::MetricFamily delivery_lateness =
      NewFamily(kDeliveryLateness, MetricType::Histogram);
  for (const NamespaceRow& row : rows) {
    const NamespaceStatistics& statistics = row.statistics;
    const auto died = [&](const char* cause, uint64_t count) {
      AddSample(With(LabelsOf(row), "cause", cause), static_cast<double>(count),
                &expired);
    };
    died("expired", statistics.expired);
    died("evicted", statistics.evicted);
    died("rotated", statistics.rotated);
    for (size_t hit = 1; hit < kLimitHits; ++hit) {
      // Most never happen, and would double the number of samples.
      if (statistics.refused[hit] == 0) continue;
      AddSample(With(LabelsOf(row), "reason",
                     std::string(
                         ReasonName(LimitReason(static_cast<LimitHit>(hit))))),
                static_cast<double>(statistics.refused[hit]), &refused);
    }
    AddHistogram(LabelsOf(row), statistics.lateness, &lateness);
    AddHistogram(LabelsOf(row), statistics.delivery_lateness,
                 &delivery_lateness);
  }
  for (auto* family : {&expired, &refused, &lateness, &delivery_lateness}) {
    families.push_back(std::move(*family));
  }
  return families;
}

}  // namespace

std::vector<prometheus::MetricFamily> EngineMetrics::Collect() const {
  const int64_t now_us = clock_->NowUs();
  std::vector<NamespaceRow> namespaces;
  std::vector<GroupRow> groups;
  const std::vector<std::shared_ptr<TimeCacheMap>> maps = registry_->List();
  for (const auto& map : maps) {
    AddRow(NamespaceRow{map->name(), map->GetStatistics(now_us)},
           max_namespaces_, kOther, &namespaces);
    for (const auto& group : map->groups().List()) {
      AddRow(GroupRow{map->name(), group->name(), group->GetStatistics()},
             max_groups_, kOther, &groups);
    }
  }
  if (groups.size() > max_groups_) groups.back().map = kOther;

  std::vector<prometheus::MetricFamily> families =
      NamespaceFamilies(namespaces, now_us);
  AddColumns(groups, kGroupColumns, now_us, &families);
  prometheus::MetricFamily count = NewFamily(kNamespaces, kGauge);
  AddSample({}, static_cast<double>(maps.size()), &count);
  families.push_back(std::move(count));
  prometheus::MetricFamily sweeps = NewFamily(kSweeps, MetricType::Histogram);
  AddHistogram({}, reaper_->sweeps(), &sweeps);
  families.push_back(std::move(sweeps));
  return families;
}

}  // namespace timecache::server
