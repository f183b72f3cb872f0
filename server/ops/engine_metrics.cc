#include "server/ops/engine_metrics.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

// How those beyond the limit share a sample.
enum class Join { kSum, kLeast, kMost };

template <typename Statistics>
struct Column {
  MetricInfo info;
  double (*value)(const Statistics& of, int64_t now_us);
  Join join = Join::kSum;
};

template <auto kMember, typename Statistics>
double Number(const Statistics& of, int64_t) {
  return static_cast<double>(of.*kMember);
}
// Since a time of the clock; 0 for kNeverUs.
template <auto kMember, typename Statistics>
double Age(const Statistics& of, int64_t now_us) {
  const int64_t us = of.*kMember;
  if (us == kNeverUs || us >= now_us) return 0;
  return static_cast<double>(now_us - us) / kMicrosPerSecond;
}
// Of a map's operations.
template <auto kMember>
double Count(const NamespaceStatistics& of, int64_t) {
  return static_cast<double>(of.operations.*kMember);
}

using N = NamespaceStatistics;
using G = GroupStatistics;

constexpr Column<N> kNamespaceColumns[] = {
    {{"timecache_entries", "Live entries."}, Number<&N::entries>},
    {{"timecache_entry_bytes", "Bytes of the keys and values of live entries."},
     Number<&N::bytes>},
    {{"timecache_memory_bytes",
      "Memory of segments, index and tables, and of events shared by watches "
      "with a lead time; excludes the log."},
     Number<&N::memory_bytes>},
    {{"timecache_live_buckets", "Buckets with a live entry."},
     Number<&N::live_buckets>},
    {{"timecache_bucket_width_seconds",
      "The bound of lateness: ttl / (num_buckets - 1)."},
     [](const N& of, int64_t) {
       return static_cast<double>(of.bucket_width_us) / kMicrosPerSecond;
     },
     Join::kLeast},
    {{"timecache_watermark_lag_seconds",
      "Age of the moment up to which all deaths are published."},
     Age<&N::watermark_us>,
     Join::kMost},
    {{"timecache_log_events",
      "Events that a watch from the earliest would read."},
     Number<&N::events_retained>},
    {{"timecache_log_bytes", "Memory of these events."},
     Number<&N::events_retained_bytes>},
    {{"timecache_log_reclaimed_total",
      "Retained events dropped before event_retention was over, because the "
      "server needed the memory."},
     Number<&N::events_reclaimed>},
    {{"timecache_log_oldest_seconds",
      "Age of the oldest of these events; 0 if there is none."},
     Age<&N::oldest_retained_us>,
     Join::kMost},
    {{"timecache_change_log_changes",
      "Puts, renewals and removals that a WatchChanges from the earliest would "
      "read."},
     Number<&N::changes_retained>},
    {{"timecache_change_log_bytes", "Memory of the retained changes."},
     Number<&N::changes_retained_bytes>},
    {{"timecache_backlog_bytes",
      "Memory of the events that consumer groups have not settled, each batch "
      "once."},
     Number<&N::backlog_bytes>},
    {{"timecache_backlog_limit_bytes",
      "Limit of timecache_backlog_bytes; beyond it the group that keeps most "
      "loses its oldest events."},
     Number<&N::backlog_limit_bytes>},
    {{"timecache_groups_expired_total",
      "Consumer groups that were deleted because they had no member for their "
      "unused_ttl."},
     Number<&N::groups_expired>},
    {{"timecache_watchers",
      "Open watches; a stream on several namespaces is several watches. "
      "Excludes members of groups."},
     Number<&N::watchers>},
    {{"timecache_puts_total", "Entries put."}, Count<&OperationCounts::puts>},
    {{"timecache_hits_total", "Lookups (Get, Contains) that found an entry."},
     Count<&OperationCounts::hits>},
    {{"timecache_misses_total", "Lookups (Get, Contains) that found none."},
     Count<&OperationCounts::misses>},
    {{"timecache_removals_total", "Entries removed by Remove."},
     Count<&OperationCounts::removals>},
    {{"timecache_appends_total", "Appends that succeeded."},
     Count<&OperationCounts::appends>},
    {{"timecache_combines_total", "Combines that succeeded."},
     Count<&OperationCounts::combines>},
    {{"timecache_gathers_total",
      "Gathers that succeeded, duplicate parts included."},
     Count<&OperationCounts::gathers>},
    {{"timecache_rate_limited_total",
      "Operations refused by max_operations_per_second."},
     Number<&N::rate_limited>},
    {{"timecache_bound_violations_total",
      "Events published later than a bucket width after their death."},
     Number<&N::bound_violations>},
    {{"timecache_expired_while_down_total",
      "Of timecache_expired_total, entries that were due while the server was "
      "down, and died at its start. No violations of the bound, and in no "
      "lateness."},
     Number<&N::expired_while_down>},
    {{"timecache_watch_owed_total",
      "Events due to watches: deaths from where each watch started until now, "
      "or until it ended. Always the sum of timecache_watch_delivered_total, "
      "timecache_watch_lost_total, timecache_watch_left_total and "
      "timecache_watch_pending."},
     Number<&N::watch_owed>},
    {{"timecache_watch_delivered_total",
      "Of these, read for the watch: sent, or left out by its filter."},
     Number<&N::watch_delivered>},
    {{"timecache_watch_left_total",
      "Of these, not read when the watch ended; a watch that resumes there "
      "gets them again."},
     Number<&N::watch_left>},
    {{"timecache_watch_pending",
      "Of these, not read yet, of all open watches."},
     Number<&N::watch_pending>},
    {{"timecache_watch_lag_events",
      "Events that the slowest watch has not read yet."},
     Number<&N::watch_lag>,
     Join::kMost},
    {{"timecache_watch_lag_seconds",
      "Time since the death of the oldest retained event that a watch has not "
      "read yet; 0 if there is none."},
     Age<&N::oldest_unread_us>,
     Join::kMost},
    {{"timecache_watch_lost_total", "Events reported to watchers as lost."},
     Number<&N::watch_lost>},
};

constexpr Column<G> kGroupColumns[] = {
    {{"timecache_group_members",
      "Streams that are members of the consumer group."},
     Number<&G::members>},
    {{"timecache_group_backlog", "Unsettled events that no member holds."},
     Number<&G::backlog>},
    {{"timecache_group_backlog_bytes", "Memory of all unsettled events."},
     Number<&G::backlog_bytes>},
    {{"timecache_group_unresponsive_members",
      "Members that let an event time out and have settled none since."},
     Number<&G::unresponsive_members>},
    {{"timecache_group_in_flight", "Events that members hold."},
     Number<&G::in_flight>},
    {{"timecache_group_in_flight_bytes", "Memory of these events."},
     Number<&G::in_flight_bytes>},
    {{"timecache_group_fetched",
      "Of timecache_group_in_flight, events that FetchExpired handed out."},
     Number<&G::fetched>},
    {{"timecache_group_lag_seconds",
      "Time since the death of the oldest unsettled event; 0 if there is "
      "none."},
     Age<&G::oldest_unsettled_us>,
     Join::kMost},
    {{"timecache_group_delivered_total", "Deliveries of an event to a member."},
     Number<&G::delivered>},
    {{"timecache_group_redelivered_total",
      "Of these, of an event that had been delivered before."},
     Number<&G::redelivered>},
    {{"timecache_group_acked_total", "Events settled by ACK."},
     Number<&G::acked>},
    {{"timecache_group_nacked_total", "NACKs."}, Number<&G::nacked>},
    {{"timecache_group_put_back_total", "Events settled by PUT_BACK."},
     Number<&G::put_back>},
    {{"timecache_group_terminated_total",
      "Events settled by TERMINATE, without a place for dead letters."},
     Number<&G::terminated>},
    {{"timecache_group_timed_out_total",
      "Times that a member did not settle in time."},
     Number<&G::timed_out>},
    {{"timecache_group_returned_total",
      "Deliveries that ended with the member's stream: no attempts."},
     Number<&G::returned>},
    {{"timecache_group_extended_total",
      "Times that a member asked for another ack_timeout."},
     Number<&G::extended>},
    {{"timecache_group_suspects",
      "Unsettled events that may crash their workers: they are delivered after "
      "growing pauses."},
     Number<&G::suspects>},
    {{"timecache_group_dead_lettered_total",
      "Events put into the dead letter namespace."},
     Number<&G::dead_lettered>},
    {{"timecache_group_dead_letter_failures_total",
      "Failed attempts to put a dead letter there."},
     Number<&G::dead_letter_failures>},
    {{"timecache_group_dead_letters_denied_total",
      "Of timecache_group_dead_letter_failures_total, those because the "
      "principal that created the group may not write there."},
     Number<&G::dead_letters_denied>},
    {{"timecache_group_events_total",
      "Events for the group since it was created: always the sum of the events "
      "acked, put back, dead-lettered, terminated and lost, of those that "
      "SeekGroup dropped, of the backlog and of the events in flight."},
     Number<&G::events>},
    {{"timecache_group_dead_letters_dropped_total",
      "Dead letters that can never fit there; also counted as lost."},
     Number<&G::dead_letters_dropped>},
    {{"timecache_group_lost_total", "Events dropped unsettled."},
     Number<&G::lost>},
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

// The sample with these labels, or null. Only those of kOther are added to, and
// they are the last.
prometheus::ClientMetric* FindSample(const MetricLabels& labels,
                                     MetricFamily* family) {
  for (auto it = family->metric.rbegin();
       it != family->metric.rend() && !it->label.empty() &&
       it->label.front().value == EngineMetrics::kOther;
       ++it) {
    if (it->label == labels) return &*it;
  }
  return nullptr;
}

void AddTo(MetricFamily* family, const MetricLabels& labels, double value,
           Join join = Join::kSum) {
  prometheus::ClientMetric* const found = FindSample(labels, family);
  if (found == nullptr) return AddSample(labels, value, family);
  double& all = family->type == MetricType::Counter ? found->counter.value
                                                    : found->gauge.value;
  all = join == Join::kSum     ? all + value
        : join == Join::kLeast ? std::min(all, value)
                               : std::max(all, value);
}

void AddTo(MetricFamily* family, const MetricLabels& labels,
           const DurationHistogram& histogram) {
  prometheus::ClientMetric sample = HistogramSample(labels, histogram);
  prometheus::ClientMetric* const found = FindSample(labels, family);
  if (found == nullptr) return family->metric.push_back(std::move(sample));
  auto& all = found->histogram;
  all.sample_count += sample.histogram.sample_count;
  all.sample_sum += sample.histogram.sample_sum;
  for (size_t i = 0; i < all.bucket.size(); ++i) {
    all.bucket[i].cumulative_count +=
        sample.histogram.bucket[i].cumulative_count;
  }
}

template <typename Columns>
std::vector<MetricFamily> FamiliesOf(const Columns& columns) {
  std::vector<MetricFamily> families;
  for (const auto& column : columns) families.push_back(NewFamily(column.info));
  return families;
}

template <typename Columns, typename Statistics>
void AddColumns(const Columns& columns, const MetricLabels& labels,
                const Statistics& of, int64_t now_us,
                std::vector<MetricFamily>* families) {
  for (size_t i = 0; i < families->size(); ++i) {
    AddTo(&(*families)[i], labels, columns[i].value(of, now_us),
          columns[i].join);
  }
}

MetricLabels With(const char* name, std::string value, MetricLabels labels) {
  labels.push_back({name, std::move(value)});
  return labels;
}

// Of a map that has samples of its own.
MetricLabels LabelsOf(const TimeCacheMap& map) {
  MetricLabels labels = {{"namespace", map.namespace_name()}};
  if (map.options().num_partitions == 1) return labels;
  return With("partition", absl::StrCat(map.partition()), std::move(labels));
}

// What dies and is refused, which have further labels, and histograms.
struct NamespaceRest {
  MetricFamily expired = NewFamily(kExpired);
  MetricFamily refused = NewFamily(kRefused);
  MetricFamily lateness = NewFamily(kLateness, MetricType::Histogram);
  MetricFamily delivery_lateness =
      NewFamily(kDeliveryLateness, MetricType::Histogram);

  void Add(const MetricLabels& labels, const NamespaceStatistics& of) {
    const auto died = [&](const char* cause, uint64_t count) {
      AddTo(&expired, With("cause", cause, labels), static_cast<double>(count));
    };
    died("expired", of.expired);
    died("evicted", of.evicted);
    died("rotated", of.rotated);
    for (size_t hit = 1; hit < kLimitHits; ++hit) {
      // Most never happen, and would double the number of samples.
      if (of.refused[hit] == 0) continue;
      const auto reason = ReasonName(LimitReason(static_cast<LimitHit>(hit)));
      AddTo(&refused, With("reason", std::string(reason), labels),
            static_cast<double>(of.refused[hit]));
    }
    AddTo(&lateness, labels, of.lateness);
    AddTo(&delivery_lateness, labels, of.delivery_lateness);
  }
};

}  // namespace

std::vector<MetricFamily> EngineMetrics::Collect() const {
  std::vector<MetricFamily> families = FamiliesOf(kNamespaceColumns);
  std::vector<MetricFamily> group_families = FamiliesOf(kGroupColumns);
  NamespaceRest rest;
  size_t namespaces = 0;
  size_t labelled = 0;
  size_t groups = 0;
  registries_->ForEachMap([&](const auto& map, int64_t now_us) {
    if (map->partition() == 0) ++namespaces;
    const MetricLabels own = LabelsOf(*map);
    const MetricLabels labels = labelled++ < max_namespaces_
                                    ? own
                                    : MetricLabels{{"namespace", kOther}};
    const NamespaceStatistics statistics = map->GetStatistics(now_us);
    AddColumns(kNamespaceColumns, labels, statistics, now_us, &families);
    rest.Add(labels, statistics);
    for (const auto& group : map->groups().List()) {
      const bool is_other = groups++ >= max_groups_;
      AddColumns(kGroupColumns,
                 is_other
                     ? MetricLabels{{"namespace", kOther}, {"group", kOther}}
                     : With("group", group->name(), own),
                 group->GetStatistics(), now_us, &group_families);
    }
  });
  for (auto* family : {&rest.expired, &rest.refused, &rest.lateness,
                       &rest.delivery_lateness}) {
    families.push_back(std::move(*family));
  }
  std::move(group_families.begin(), group_families.end(),
            std::back_inserter(families));
  AddSample({}, static_cast<double>(namespaces),
            &families.emplace_back(NewFamily(kNamespaces)));
  families.emplace_back(NewFamily(kSweeps, MetricType::Histogram))
      .metric.push_back(HistogramSample({}, registries_->sweeps()));
  return families;
}

}  // namespace timecache::server
