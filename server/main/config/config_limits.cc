#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "server/api/proto_time.h"
#include "server/base/units.h"
#include "server/engine/store/namespace_options.h"
#include "server/main/config/config_fields.h"

namespace timecache::server {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Numbers as they are, durations in microseconds.
struct Range {
  const char* path;
  uint64_t unset_means;
  uint64_t min;
  uint64_t max;
  bool or_0 = false;
};

constexpr uint64_t kNoDefault = std::numeric_limits<uint64_t>::max();
// Sizes are counted in signed 64 bits; 0 is no limit.
constexpr uint64_t kMaxSize = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMillion = 1'000'000;
constexpr uint64_t kMillisecond = 1'000;
constexpr uint64_t kSecond = 1'000 * kMillisecond;
constexpr uint64_t kMinute = 60 * kSecond;
constexpr uint64_t kHour = 60 * kMinute;
constexpr uint64_t kDay = 24 * kHour;

constexpr Range kRanges[] = {
    {"limits.max_namespaces", 1'024, 1, 100'000},
    {"limits.max_watchers", 10'000, 1, kMillion},
    {"limits.max_connections", 10'000, 1, kMillion},
    {"limits.max_new_connections_per_second", 100, 1, kMillion},
    {"limits.max_calls_per_connection", 1'000, 1, kMillion},
    {"limits.max_entries", 0, 0, kMaxSize},
    {"limits.max_bytes", 0, 0, kMaxSize},
    // With less there is no room for a batch of events besides entries.
    {"limits.max_memory_bytes", kNoDefault, 16 << 20, kMaxSize, true},
    // With less there is no room for one large value and its successor.
    {"limits.max_response_bytes", kNoDefault, 1 << 20, kMaxSize, true},
    {"limits.max_connection_age", 0, kSecond, 7 * kDay, true},
    {"limits.max_call_duration", kMinute, 100 * kMillisecond, kHour},
    {"limits.response_timeout", 30 * kSecond, kSecond, kHour},
    {"log.slow_call", 100 * kMillisecond, 0, kHour},
    {"grace_period", 10 * kSecond, 0, kHour},
    {"drain_delay", 0, 0, 5 * kMinute},
    {"default_partitions", 1, 1, kMaxPartitions},
    {"stall_grace", 500 * kMillisecond, 200 * kMillisecond, kHour},
    {"journal.reserve_bytes", uint64_t{128} << 20, 0, uint64_t{1} << 40},
    {"journal.max_clock_lag", kNoDefault, 0, 3'650 * kDay},
    // A restored backup of some months starts, and a clock that is years ahead
    // is refused.
    {"journal.max_clock_lead", 366 * kDay, 0, 36'500 * kDay},
    {"cluster.lease", kSecond, 200 * kMillisecond, kMinute},
    {"cluster.failure_timeout", kNoDefault, 400 * kMillisecond, 10 * kMinute},
    {"cluster.max_clock_skew", 500 * kMillisecond, 10 * kMillisecond, kHour},
};

void SetDefault(const Range& range, Message* section,
                const FieldDescriptor* field) {
  const auto* const reflection = section->GetReflection();
  if (reflection->HasField(*section, field)) return;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    reflection->SetUInt32(section, field,
                          static_cast<uint32_t>(range.unset_means));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
    reflection->SetUInt64(section, field, range.unset_means);
  } else {
    SetDuration(
        static_cast<int64_t>(range.unset_means),
        static_cast<Duration*>(reflection->MutableMessage(section, field)));
  }
}

uint64_t ValueOf(const Message& section, const FieldDescriptor* field) {
  const auto* const reflection = section.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    return reflection->GetUInt32(section, field);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
    return reflection->GetUInt64(section, field);
  }
  const auto& duration =
      static_cast<const Duration&>(reflection->GetMessage(section, field));
  return static_cast<uint64_t>(absl::ToInt64Microseconds(ToDuration(duration)));
}

std::string TextOf(uint64_t value, const FieldDescriptor* field) {
  return field->message_type() == nullptr
             ? absl::StrCat(value)
             : DurationText(absl::Microseconds(static_cast<int64_t>(value)));
}

}  // namespace

void FillRangeDefaults(config::v1::ServerConfig* config) {
  for (const Range& range : kRanges) {
    if (range.unset_means == kNoDefault) continue;
    Message* section = config;
    const FieldDescriptor* field = nullptr;
    for (const absl::string_view name : absl::StrSplit(range.path, '.')) {
      if (field != nullptr) {
        section = section->GetReflection()->MutableMessage(section, field);
      }
      field = section->GetDescriptor()->FindFieldByName(std::string(name));
    }
    SetDefault(range, section, field);
  }
}

std::optional<ConfigProblem> FindRangeProblem(
    const config::v1::ServerConfig& config) {
  for (const Range& range : kRanges) {
    const Message* section = &config;
    const FieldDescriptor* field = nullptr;
    for (const absl::string_view name : absl::StrSplit(range.path, '.')) {
      if (field != nullptr) {
        section = &section->GetReflection()->GetMessage(*section, field);
      }
      field = section->GetDescriptor()->FindFieldByName(std::string(name));
    }
    const uint64_t value = ValueOf(*section, field);
    const bool is_unset = value == 0 && range.or_0;
    if (is_unset || (value >= range.min && value <= range.max)) continue;
    return ConfigProblem{
        range.path,
        absl::StrCat("must be ", range.or_0 ? "0 or " : "", "from ",
                     TextOf(range.min, field), " to ", TextOf(range.max, field),
                     ", got ", TextOf(value, field))};
  }
  return std::nullopt;
}

}  // namespace timecache::server
