#include "server/api/proto_namespace.h"

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// See VisitOptions.
static_assert(v1::LIMIT_POLICY_EVICT_OLDEST ==
                  static_cast<int>(LimitPolicy::kEvictOldest) + 1 &&
              v1::DURABILITY_REPLICATED ==
                  static_cast<int>(NamespaceDurability::kReplicated) + 1 &&
              v1::RESTART_POLICY_PAUSE ==
                  static_cast<int>(RestartPolicy::kPause) + 1);

uint64_t NumberOf(const Message& from, const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
             ? from.GetReflection()->GetUInt32(from, field)
             : from.GetReflection()->GetUInt64(from, field);
}

void SetNumber(uint64_t number, const FieldDescriptor* field, Message* to) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    to->GetReflection()->SetUInt32(to, field, static_cast<uint32_t>(number));
  } else {
    to->GetReflection()->SetUInt64(to, field, number);
  }
}

// An option of a message. Of a number, which may be larger, INVALID_ARGUMENT.
template <typename To>
absl::Status ReadOption(const Message& from, const FieldDescriptor* field,
                        bool is_duration, To* to) {
  const Reflection* const reflection = from.GetReflection();
  const std::string& name = field->name();
  if constexpr (std::is_same_v<To, std::string>) {
    *to = reflection->GetString(from, field);
  } else if constexpr (std::is_same_v<To, bool>) {
    *to = reflection->GetBool(from, field);
  } else if constexpr (std::is_enum_v<To>) {
    const int value = reflection->GetEnumValue(from, field);
    if (field->enum_type()->FindValueByNumber(value) == nullptr) {
      return InvalidField(name, absl::StrCat("has no value ", value));
    }
    *to = static_cast<To>(value - 1);
  } else if (is_duration) {
    const absl::StatusOr<int64_t> micros = ToMicros(
        static_cast<const Duration&>(reflection->GetMessage(from, field)),
        name);
    if (!micros.ok()) return micros.status();
    *to = static_cast<To>(*micros);
  } else {
    constexpr auto kMost = std::numeric_limits<To>::max();
    const uint64_t number = NumberOf(from, field);
    if (number > static_cast<uint64_t>(kMost)) {
      return InvalidField(
          name, absl::StrCat("must be at most ", kMost, ", not ", number));
    }
    *to = static_cast<To>(number);
  }
  return absl::OkStatus();
}

template <typename From>
void WriteOption(const From& from, const FieldDescriptor* field,
                 bool is_duration, Message* to) {
  const Reflection* const reflection = to->GetReflection();
  if constexpr (std::is_same_v<From, std::string>) {
    reflection->SetString(to, field, from);
  } else if constexpr (std::is_same_v<From, bool>) {
    reflection->SetBool(to, field, from);
  } else if constexpr (std::is_enum_v<From>) {
    reflection->SetEnumValue(to, field, static_cast<int>(from) + 1);
  } else if (is_duration) {
    SetDuration(from,
                static_cast<Duration*>(reflection->MutableMessage(to, field)));
  } else {
    SetNumber(static_cast<uint64_t>(from), field, to);
  }
}

template <typename Options>
absl::Status ReadOptions(const Message& from, Options* to) {
  absl::Status status;
  VisitOptions(
      to, [&](const char* name, auto* option, const OptionRange& range) {
        const auto* const field = from.GetDescriptor()->FindFieldByName(name);
        if (!from.GetReflection()->HasField(from, field)) return;
        status.Update(ReadOption(from, field, range.is_duration, option));
      });
  return status;
}

template <typename Options>
void WriteOptions(const Options& from, Message* to) {
  VisitOptions(&from, [&](const char* name, const auto* option,
                          const OptionRange& range) {
    WriteOption(*option, to->GetDescriptor()->FindFieldByName(name),
                range.is_duration, to);
  });
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
  return ReadOptions(from, to);
}

absl::Status ChangeOptions(const v1::NamespaceOptions& from,
                           NamespaceOptions* to) {
  const int num_shards = to->num_shards;
  const int num_partitions = to->num_partitions;
  const bool durable = IsDurable(*to);
  const char* const before = to->durability == NamespaceDurability::kReplicated
                                 ? "replicated"
                             : durable ? "async or sync"
                                       : "memory";
  absl::Status status = ApplyOptions(from, to);
  if (status.ok() && to->num_shards != num_shards) {
    status = FixedAtCreation("num_shards", absl::StrCat(num_shards));
  }
  if (status.ok() && to->num_partitions != num_partitions) {
    status = FixedAtCreation("num_partitions", absl::StrCat(num_partitions));
  }
  if (status.ok() && IsDurable(*to) != durable) {
    status = FixedAtCreation("durability", before);
  }
  return status;
}

absl::StatusOr<NamespaceOptions> NewOptions(const v1::NamespaceOptions& from,
                                            int default_partitions) {
  NamespaceOptions options;
  options.num_partitions = default_partitions;
  if (absl::Status status = ApplyOptions(from, &options); !status.ok()) {
    return status;
  }
  if (!from.has_max_ttl() && options.ttl_us > options.max_ttl_us) {
    options.max_ttl_us = options.ttl_us;
  }
  return options;
}

void SetOptions(const NamespaceOptions& options, v1::NamespaceOptions* to) {
  WriteOptions(options, to);
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
  statistics->set_changes_retained(from.changes_retained);
  statistics->set_changes_retained_bytes(
      static_cast<uint64_t>(from.changes_retained_bytes));
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
  if (from.has_key_prefix()) to->key_prefix = from.key_prefix();
  if (from.retry_delays_size() > 0) {
    to->retry_delays_us.clear();
    for (const Duration& delay : from.retry_delays()) {
      const absl::StatusOr<int64_t> micros = ToMicros(delay, "retry_delays");
      if (!micros.ok()) return micros.status();
      to->retry_delays_us.push_back(*micros);
    }
  }
  return ReadOptions(from, to);
}

absl::Status ChangeOptions(const v1::GroupOptions& from, GroupOptions* to) {
  if (from.has_key_prefix() && from.key_prefix() != to->key_prefix) {
    return InvalidField("key_prefix",
                        "is fixed when the group is made: to change it, delete "
                        "the group and create it again");
  }
  return ApplyOptions(from, to);
}

void SetOptions(const GroupOptions& options, v1::GroupOptions* to) {
  WriteOptions(options, to);
  to->set_key_prefix(options.key_prefix);
  for (const int64_t delay_us : options.retry_delays_us) {
    SetDuration(delay_us, to->add_retry_delays());
  }
}

void SetStatistics(const GroupStatistics& from, v1::GroupStatistics* to) {
  to->set_members(static_cast<uint64_t>(from.members));
  to->set_backlog(from.backlog);
  to->set_backlog_bytes(static_cast<uint64_t>(from.backlog_bytes));
  to->set_in_flight(from.in_flight);
  to->set_fetched(from.fetched);
  if (from.oldest_unsettled_us != kNeverUs) {
    SetTime(from.oldest_unsettled_us, to->mutable_oldest_unsettled());
  }
  to->set_delivered(from.delivered);
  to->set_redelivered(from.redelivered);
  to->set_acked(from.acked);
  to->set_nacked(from.nacked);
  to->set_put_back(from.put_back);
  to->set_terminated(from.terminated);
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
