#include "server/service/call/convert.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "server/engine/error.h"

namespace timecache::server {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int32_t kNanosPerMicro = 1'000;
constexpr int32_t kNanosPerSecond = 1'000'000'000;

int64_t CeilMicros(int64_t seconds, int32_t nanos) {
  // Rounded towards zero below zero, which is upwards.
  const int64_t micros = nanos > 0
                             ? (nanos + kNanosPerMicro - 1) / kNanosPerMicro
                             : nanos / kNanosPerMicro;
  return seconds * kMicrosPerSecond + micros;
}

// Sets an engine's limit from a message's number, which may be larger.
template <typename From, typename To>
absl::Status SetNumber(From from, absl::string_view field, To* to) {
  if (from > static_cast<uint64_t>(std::numeric_limits<To>::max())) {
    return InvalidField(
        field, absl::StrCat("must be at most ", std::numeric_limits<To>::max(),
                            ", not ", from));
  }
  *to = static_cast<To>(from);
  return absl::OkStatus();
}

absl::Status SetMicros(const google::protobuf::Duration& from,
                       absl::string_view field, int64_t* to) {
  absl::StatusOr<int64_t> micros = ToMicros(from, field);
  if (micros.ok()) *to = *micros;
  return micros.status();
}

// The same for a field that may be unset.
template <typename From, typename To>
absl::Status SetNumberIf(bool has, From from, absl::string_view field, To* to) {
  return has ? SetNumber(from, field, to) : absl::OkStatus();
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

absl::Status SetDurability(v1::Durability from, MapDurability* to) {
  switch (from) {
    case v1::DURABILITY_UNSPECIFIED:
      return absl::OkStatus();
    case v1::DURABILITY_MEMORY:
      *to = MapDurability::kMemory;
      return absl::OkStatus();
    case v1::DURABILITY_ASYNC:
      *to = MapDurability::kAsync;
      return absl::OkStatus();
    case v1::DURABILITY_SYNC:
      *to = MapDurability::kSync;
      return absl::OkStatus();
    default:
      return InvalidField("durability", absl::StrCat("has no value ", from));
  }
}

v1::Durability FromDurability(MapDurability durability) {
  switch (durability) {
    case MapDurability::kMemory:
      return v1::DURABILITY_MEMORY;
    case MapDurability::kAsync:
      return v1::DURABILITY_ASYNC;
    case MapDurability::kSync:
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

absl::Status SetTtl(const google::protobuf::Duration& ttl, Operation* op) {
  op->has_ttl = true;
  return SetMicros(ttl, "ttl", &op->ttl_us);
}

absl::Status SetIfVersion(uint64_t version, Operation* op) {
  if (version == 0) {
    return InvalidField("if_version",
                        "must not be 0, which no entry has: for a key "
                        "that must not be there use IF_ABSENT");
  }
  op->condition = Condition::kIfVersion;
  op->if_version = version;
  return absl::OkStatus();
}

// The same of requests that may have them.

template <typename Request>
absl::Status SetTtlIf(const Request& request, Operation* op) {
  return request.has_ttl() ? SetTtl(request.ttl(), op) : absl::OkStatus();
}

template <typename Request>
absl::Status SetIfVersionIf(const Request& request, Operation* op) {
  return request.has_if_version() ? SetIfVersion(request.if_version(), op)
                                  : absl::OkStatus();
}

template <typename Request>
absl::Status SetPrecondition(const Request& request, Operation* op) {
  switch (request.condition()) {
    case v1::PUT_CONDITION_UNSPECIFIED:
      break;
    case v1::PUT_CONDITION_IF_ABSENT:
      op->condition = Condition::kIfAbsent;
      break;
    case v1::PUT_CONDITION_IF_PRESENT:
      op->condition = Condition::kIfPresent;
      break;
    default:
      return InvalidField("condition",
                          absl::StrCat("has no value ", request.condition()));
  }
  return SetIfVersionIf(request, op);
}

}  // namespace

absl::StatusOr<int64_t> ToMicros(const google::protobuf::Duration& duration,
                                 absl::string_view field) {
  return DurationToMicros(duration.seconds(), duration.nanos(), field);
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

absl::StatusOr<int64_t> DurationToMicros(int64_t seconds, int32_t nanos,
                                         absl::string_view field) {
  if (seconds > TimeUtil::kDurationMaxSeconds ||
      seconds < TimeUtil::kDurationMinSeconds || nanos >= kNanosPerSecond ||
      nanos <= -kNanosPerSecond || (seconds > 0 && nanos < 0) ||
      (seconds < 0 && nanos > 0)) {
    return InvalidField(field, "is not a valid google.protobuf.Duration");
  }
  return CeilMicros(seconds, nanos);
}

absl::StatusOr<int64_t> ToMicros(const google::protobuf::Timestamp& time,
                                 absl::string_view field) {
  if (time.seconds() > TimeUtil::kTimestampMaxSeconds ||
      time.seconds() < TimeUtil::kTimestampMinSeconds || time.nanos() < 0 ||
      time.nanos() >= kNanosPerSecond) {
    return InvalidField(field, "is not a valid google.protobuf.Timestamp");
  }
  return CeilMicros(time.seconds(), time.nanos());
}

void SetTime(int64_t time_us, google::protobuf::Timestamp* time) {
  const TimeParts parts = PartsOfTime(time_us);
  time->set_seconds(parts.seconds);
  time->set_nanos(parts.nanos);
}

void SetDuration(int64_t duration_us, google::protobuf::Duration* duration) {
  duration->set_seconds(duration_us / kMicrosPerSecond);
  duration->set_nanos(static_cast<int32_t>(duration_us % kMicrosPerSecond) *
                      kNanosPerMicro);
}

absl::StatusOr<Operation> ToOperation(const v1::PutRequest& request) {
  Operation op = Operation::Put(request.key(), request.value());
  op.return_previous = request.return_previous();
  op.keep_deadline = request.keep_deadline();
  absl::Status status = SetPrecondition(request, &op);
  if (status.ok()) status = SetTtlIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::GetRequest& request) {
  Operation op = Operation::Get(request.key());
  op.touch = request.touch();
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::RemoveRequest& request) {
  Operation op = Operation::Remove(request.key());
  op.return_previous = request.return_previous();
  if (absl::Status s = SetIfVersionIf(request, &op); !s.ok()) return s;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::ContainsRequest& request) {
  return Operation::Contains(request.key());
}

absl::StatusOr<Operation> ToOperation(const v1::TouchRequest& request) {
  Operation op = Operation::Touch(request.key());
  absl::Status status = SetTtlIf(request, &op);
  if (status.ok()) status = SetIfVersionIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::AppendRequest& request) {
  Operation op = Operation::Append(request.key(), request.value());
  op.touch = request.touch();
  absl::Status status = SetPrecondition(request, &op);
  if (status.ok()) status = SetTtlIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::CombineRequest& request) {
  Operation op = Operation::Combine(request.key(), Combination::kAdd, 0);
  switch (request.operand_case()) {
    case v1::CombineRequest::kAdd:
      op.operand = request.add();
      break;
    case v1::CombineRequest::kXor:
      op.combination = Combination::kXor;
      op.operand = request.xor_();
      break;
    case v1::CombineRequest::OPERAND_NOT_SET:
      return InvalidField("operand", "must be set to one of add, xor");
  }
  op.initial = request.initial();
  op.remove_if_zero = request.remove_if_zero();
  op.touch = request.touch();
  absl::Status status = SetTtlIf(request, &op);
  if (status.ok()) status = SetIfVersionIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::GatherRequest& request,
                                      Gathering* gathering) {
  Operation op = Operation::Gather(request.key(), gathering, request.value());
  op.touch = request.touch();
  const std::vector<absl::string_view> names(request.expected_names().begin(),
                                             request.expected_names().end());
  absl::Status status =
      gathering->Set(request.part(), request.expected_parts(), names);
  if (status.ok()) status = SetTtlIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

void SetParts(absl::string_view value, int field,
              google::protobuf::Message* to) {
  to->GetReflection()->MutableUnknownFields(to)->AddLengthDelimited(
      field, std::string(value));
}

void SetEntry(absl::string_view key, Entry* entry, v1::Entry* to) {
  to->set_key(key.data(), key.size());
  if (entry->parts) {
    SetParts(entry->value, v1::Entry::kPartsFieldNumber, to);
  } else {
    to->set_value(std::move(entry->value));
  }
  to->set_version(entry->version);
  SetTime(entry->put_us, to->mutable_put_time());
  SetTime(entry->deadline_us, to->mutable_deadline());
}

absl::Status ApplyOptions(const v1::NamespaceOptions& from, MapOptions* to) {
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
    to->dead_letter_map = from.dead_letter_namespace();
  }
  absl::Status status = SetLimitPolicy(from.limit_policy(), &to->limit_policy);
  if (status.ok()) status = SetDurability(from.durability(), &to->durability);
  if (status.ok()) {
    status = SetRestartPolicy(from.restart_policy(), &to->restart_policy);
  }
  return status;
}

absl::Status ChangeOptions(const v1::NamespaceOptions& from, MapOptions* to) {
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

absl::StatusOr<MapOptions> NewOptions(const v1::NamespaceOptions& from) {
  MapOptions options;
  if (absl::Status status = ApplyOptions(from, &options); !status.ok())
    return status;
  if (!from.has_max_ttl() && options.ttl_us > options.max_ttl_us) {
    options.max_ttl_us = options.ttl_us;
  }
  return options;
}

void SetOptions(const MapOptions& options, v1::NamespaceOptions* to) {
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
  to->set_dead_letter_namespace(options.dead_letter_map);
  to->set_max_operations_per_second(
      static_cast<uint32_t>(options.max_operations_per_second));
  to->set_max_backlog_bytes(static_cast<uint64_t>(options.max_backlog_bytes));
  SetDuration(options.unused_group_ttl_us, to->mutable_unused_group_ttl());
  to->set_durability(FromDurability(options.durability));
  to->set_restart_policy(options.restart_policy == RestartPolicy::kPause
                             ? v1::RESTART_POLICY_PAUSE
                             : v1::RESTART_POLICY_FIRE);
}

void SetStatistics(const MapStatistics& from,
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
