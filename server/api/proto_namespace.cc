#include "server/api/proto_namespace.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

// Sets an engine's limit from a message's number, which may be larger, if it
// is there.
template <typename From, typename To>
absl::Status SetNumberIf(bool has, From from, absl::string_view field, To* to) {
  if (!has) return absl::OkStatus();
  if (from > static_cast<uint64_t>(std::numeric_limits<To>::max())) {
    return InvalidField(
        field, absl::StrCat("must be at most ", std::numeric_limits<To>::max(),
                            ", not ", from));
  }
  *to = static_cast<To>(from);
  return absl::OkStatus();
}

absl::Status SetMicrosIf(bool has, const google::protobuf::Duration& from,
                         absl::string_view field, int64_t* to) {
  return has ? SetMicros(from, field, to) : absl::OkStatus();
}

absl::Status SetLimitPolicy(v1::LimitPolicy from, LimitPolicy* to) {
  switch (from) {
    case v1::LIMIT_POLICY_UNSPECIFIED:
      return absl::OkStatus();
    case v1::LIMIT_POLICY_REJECT:
      *to = LimitPolicy::kReject;
      return absl::OkStatus();
    case v1::LIMIT_POLICY_EVICT_OLDEST:
      *to = LimitPolicy::kEvictOldest;
      return absl::OkStatus();
    default:
      return InvalidField("limit_policy", absl::StrCat("has no value ", from));
  }
}

absl::Status SetDurability(v1::Durability from, NamespaceDurability* to) {
  switch (from) {
    case v1::DURABILITY_UNSPECIFIED:
      return absl::OkStatus();
    case v1::DURABILITY_MEMORY:
      *to = NamespaceDurability::kMemory;
      return absl::OkStatus();
    case v1::DURABILITY_ASYNC:
      *to = NamespaceDurability::kAsync;
      return absl::OkStatus();
    case v1::DURABILITY_SYNC:
      *to = NamespaceDurability::kSync;
      return absl::OkStatus();
    default:
      return InvalidField("durability", absl::StrCat("has no value ", from));
  }
}

v1::Durability FromDurability(NamespaceDurability durability) {
  switch (durability) {
    case NamespaceDurability::kMemory:
      return v1::DURABILITY_MEMORY;
    case NamespaceDurability::kAsync:
      return v1::DURABILITY_ASYNC;
    case NamespaceDurability::kSync:
      return v1::DURABILITY_SYNC;
  }
  return v1::DURABILITY_UNSPECIFIED;
}

absl::Status SetRestartPolicy(v1::RestartPolicy from, RestartPolicy* to) {
  switch (from) {
    case v1::RESTART_POLICY_UNSPECIFIED:
      return absl::OkStatus();
    case v1::RESTART_POLICY_FIRE:
      *to = RestartPolicy::kFire;
      return absl::OkStatus();
    case v1::RESTART_POLICY_PAUSE:
      *to = RestartPolicy::kPause;
      return absl::OkStatus();
    default:
      return InvalidField("restart_policy",
                          absl::StrCat("has no value ", from));
  }
}

absl::Status FixedAtCreation(absl::string_view field, absl::string_view value) {
  return InvalidField(
      field,
      absl::StrCat("is fixed at creation, to ", value,
                   ": to change it, delete the namespace and create it again"));
}

}  // namespace

absl::Status ApplyOptions(const v1::NamespaceOptions& from,
                          NamespaceOptions* to) {
  for (const absl::Status& status : {
           SetMicrosIf(from.has_ttl(), from.ttl(), "ttl", &to->ttl_us),
           SetNumberIf(from.has_num_buckets(), from.num_buckets(),
                       "num_buckets", &to->num_buckets),
           SetMicrosIf(from.has_max_ttl(), from.max_ttl(), "max_ttl",
                       &to->max_ttl_us),
           SetNumberIf(from.has_max_entries(), from.max_entries(),
                       "max_entries", &to->max_entries),
           SetNumberIf(from.has_max_bytes(), from.max_bytes(), "max_bytes",
                       &to->max_bytes),
           SetNumberIf(from.has_max_value_bytes(), from.max_value_bytes(),
                       "max_value_bytes", &to->max_value_bytes),
           SetMicrosIf(from.has_event_retention(), from.event_retention(),
                       "event_retention", &to->retention_us),
           SetNumberIf(from.has_event_retention_bytes(),
                       from.event_retention_bytes(), "event_retention_bytes",
                       &to->retention_bytes),
           SetNumberIf(from.has_num_shards(), from.num_shards(), "num_shards",
                       &to->num_shards),
           SetNumberIf(from.has_max_operations_per_second(),
                       from.max_operations_per_second(),
                       "max_operations_per_second",
                       &to->max_operations_per_second),
           SetNumberIf(from.has_max_backlog_bytes(), from.max_backlog_bytes(),
                       "max_backlog_bytes", &to->max_backlog_bytes),
           SetMicrosIf(from.has_unused_group_ttl(), from.unused_group_ttl(),
                       "unused_group_ttl", &to->unused_group_ttl_us),
       }) {
    if (!status.ok()) return status;
  }
  if (from.has_sliding()) to->sliding = from.sliding();
  if (from.has_dead_letter_namespace()) {
    to->dead_letter_namespace = from.dead_letter_namespace();
  }
  absl::Status status = SetLimitPolicy(from.limit_policy(), &to->limit_policy);
  if (status.ok()) status = SetDurability(from.durability(), &to->durability);
  if (status.ok()) {
    status = SetRestartPolicy(from.restart_policy(), &to->restart_policy);
  }
  return status;
}

absl::Status ChangeOptions(const v1::NamespaceOptions& from,
                           NamespaceOptions* to) {
  const int num_shards = to->num_shards;
  const bool durable = IsDurable(*to);
  absl::Status status = ApplyOptions(from, to);
  if (status.ok() && to->num_shards != num_shards) {
    status = FixedAtCreation("num_shards", absl::StrCat(num_shards));
  }
  if (status.ok() && IsDurable(*to) != durable) {
    status =
        FixedAtCreation("durability", durable ? "async or sync" : "memory");
  }
  return status;
}

absl::StatusOr<NamespaceOptions> NewOptions(const v1::NamespaceOptions& from) {
  NamespaceOptions options;
  if (absl::Status status = ApplyOptions(from, &options); !status.ok()) {
    return status;
  }
  if (!from.has_max_ttl() && options.ttl_us > options.max_ttl_us) {
    options.max_ttl_us = options.ttl_us;
  }
  return options;
}

void SetOptions(const NamespaceOptions& options, v1::NamespaceOptions* to) {
  SetDuration(options.ttl_us, to->mutable_ttl());
  to->set_num_buckets(static_cast<uint32_t>(options.num_buckets));
  SetDuration(options.max_ttl_us, to->mutable_max_ttl());
  to->set_sliding(options.sliding);
  to->set_max_entries(static_cast<uint64_t>(options.max_entries));
  to->set_max_bytes(static_cast<uint64_t>(options.max_bytes));
  to->set_limit_policy(options.limit_policy == LimitPolicy::kEvictOldest
                           ? v1::LIMIT_POLICY_EVICT_OLDEST
                           : v1::LIMIT_POLICY_REJECT);
  to->set_max_value_bytes(static_cast<uint32_t>(options.max_value_bytes));
  SetDuration(options.retention_us, to->mutable_event_retention());
  to->set_event_retention_bytes(static_cast<uint64_t>(options.retention_bytes));
  to->set_num_shards(static_cast<uint32_t>(options.num_shards));
  to->set_dead_letter_namespace(options.dead_letter_namespace);
  to->set_max_operations_per_second(
      static_cast<uint32_t>(options.max_operations_per_second));
  to->set_max_backlog_bytes(static_cast<uint64_t>(options.max_backlog_bytes));
  SetDuration(options.unused_group_ttl_us, to->mutable_unused_group_ttl());
  to->set_durability(FromDurability(options.durability));
  to->set_restart_policy(options.restart_policy == RestartPolicy::kPause
                             ? v1::RESTART_POLICY_PAUSE
                             : v1::RESTART_POLICY_FIRE);
}

void SetStatistics(const NamespaceStatistics& from,
                   v1::NamespaceStatistics* statistics) {
  statistics->set_entries(static_cast<uint64_t>(from.entries));
  statistics->set_bytes(static_cast<uint64_t>(from.bytes));
  statistics->set_memory_bytes(static_cast<uint64_t>(from.memory_bytes));
  statistics->set_live_buckets(static_cast<uint64_t>(from.live_buckets));
  statistics->set_expired(from.expired);
  statistics->set_evicted(from.evicted);
  statistics->set_rotated(from.rotated);
  statistics->set_events_retained(from.events_retained);
  statistics->set_events_retained_bytes(
      static_cast<uint64_t>(from.events_retained_bytes));
  statistics->set_events_reclaimed(from.events_reclaimed);
  statistics->set_watchers(static_cast<uint64_t>(from.watchers));
  SetTime(from.watermark_us, statistics->mutable_watermark());
  DurationHistogram lateness = from.lateness;
  lateness.Merge(from.delivery_lateness);
  SetDuration(lateness.QuantileUs(0.5), statistics->mutable_lateness_p50());
  SetDuration(lateness.QuantileUs(0.99), statistics->mutable_lateness_p99());
  SetDuration(lateness.max_us(), statistics->mutable_lateness_max());
  statistics->set_bound_violations(from.bound_violations);
  statistics->set_expired_while_down(from.expired_while_down);
  statistics->set_rate_limited(from.rate_limited);
  statistics->set_puts(from.operations.puts);
  statistics->set_hits(from.operations.hits);
  statistics->set_misses(from.operations.misses);
  statistics->set_backlog_bytes(static_cast<uint64_t>(from.backlog_bytes));
  statistics->set_backlog_limit_bytes(
      static_cast<uint64_t>(from.backlog_limit_bytes));
  statistics->set_groups_expired(from.groups_expired);
  statistics->set_appends(from.operations.appends);
  statistics->set_combines(from.operations.combines);
  statistics->set_gathers(from.operations.gathers);
}

void SetNamespace(const NamespaceInfo& from, v1::Namespace* to) {
  to->set_name(from.name);
  SetOptions(from.options, to->mutable_options());
  SetDuration(BucketWidthUs(from.options), to->mutable_bucket_width());
  if (from.statistics != nullptr) {
    SetStatistics(*from.statistics, to->mutable_statistics());
  }
}

absl::Status ApplyOptions(const v1::GroupOptions& from, GroupOptions* to) {
  for (const absl::Status& status : {
           SetMicrosIf(from.has_ack_timeout(), from.ack_timeout(),
                       "ack_timeout", &to->ack_timeout_us),
           SetNumberIf(from.has_max_attempts(), from.max_attempts(),
                       "max_attempts", &to->max_attempts),
           SetNumberIf(from.has_max_backlog_bytes(), from.max_backlog_bytes(),
                       "max_backlog_bytes", &to->max_backlog_bytes),
           SetMicrosIf(from.has_unused_ttl(), from.unused_ttl(), "unused_ttl",
                       &to->unused_ttl_us),
       }) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void SetOptions(const GroupOptions& options, v1::GroupOptions* to) {
  SetDuration(options.ack_timeout_us, to->mutable_ack_timeout());
  to->set_max_attempts(static_cast<uint32_t>(options.max_attempts));
  to->set_max_backlog_bytes(static_cast<uint64_t>(options.max_backlog_bytes));
  SetDuration(options.unused_ttl_us, to->mutable_unused_ttl());
}

void SetStatistics(const GroupStatistics& from, v1::GroupStatistics* to) {
  to->set_members(static_cast<uint64_t>(from.members));
  to->set_backlog(from.backlog);
  to->set_backlog_bytes(static_cast<uint64_t>(from.backlog_bytes));
  to->set_in_flight(from.in_flight);
  if (from.oldest_unsettled_us != kNeverUs) {
    SetTime(from.oldest_unsettled_us, to->mutable_oldest_unsettled());
  }
  to->set_delivered(from.delivered);
  to->set_redelivered(from.redelivered);
  to->set_acked(from.acked);
  to->set_nacked(from.nacked);
  to->set_put_back(from.put_back);
  to->set_timed_out(from.timed_out);
  to->set_returned(from.returned);
  to->set_extended(from.extended);
  to->set_suspects(from.suspects);
  to->set_dead_lettered(from.dead_lettered);
  to->set_dead_letter_failures(from.dead_letter_failures);
  to->set_lost(from.lost);
  to->set_unresponsive_members(
      static_cast<uint64_t>(from.unresponsive_members));
  to->set_dead_letters_dropped(from.dead_letters_dropped);
  to->set_in_flight_bytes(static_cast<uint64_t>(from.in_flight_bytes));
  to->set_dead_letters_denied(from.dead_letters_denied);
  if (from.unused_since_us != kNeverUs) {
    SetTime(from.unused_since_us, to->mutable_unused_since());
  }
}

void SetGroup(const GroupInfo& from, v1::Group* to) {
  to->set_name(from.name);
  to->set_namespace_(from.namespace_name);
  SetOptions(from.options, to->mutable_options());
  to->set_created_by(from.created_by);
  if (from.statistics != nullptr) {
    SetStatistics(*from.statistics, to->mutable_statistics());
  }
}

}  // namespace timecache::server
