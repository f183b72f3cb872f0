#include "server/config/config_limits.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/config/duration_text.h"

namespace timecache {
namespace {

using Limits = config::v1::ServerLimits;
using google::protobuf::Duration;

constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;
constexpr int64_t kMillisPerSecond = 1'000;
constexpr int32_t kNanosPerMilli = 1'000'000;

struct NumberField {
  const char* name;
  bool (Limits::*has)() const;
  uint32_t (Limits::*get)() const;
  void (Limits::*set)(uint32_t);
  uint32_t unset_means;
  uint32_t min;
  uint32_t max;
};

// Sizes are counted in signed 64 bits; 0 is no limit.
struct SizeField {
  const char* name;
  uint64_t (Limits::*get)() const;
  uint64_t min_unless_0;
};

struct DurationField {
  const char* name;
  bool (Limits::*has)() const;
  const Duration& (Limits::*get)() const;
  Duration* (Limits::*mutable_get)();
  int64_t unset_means_s;
  int64_t min_ms;
  int64_t max_s;
  bool may_be_0;
};

#define TIMECACHED_FIELD(name) #name, &Limits::has_##name, &Limits::name

constexpr NumberField kNumbers[] = {
    {TIMECACHED_FIELD(max_namespaces), &Limits::set_max_namespaces, 1'024, 1,
     100'000},
    {TIMECACHED_FIELD(max_watchers), &Limits::set_max_watchers, 10'000, 1,
     1'000'000},
    {TIMECACHED_FIELD(max_expiring_watchers),
     &Limits::set_max_expiring_watchers, 256, 1, 1'000'000},
    {TIMECACHED_FIELD(max_connections), &Limits::set_max_connections, 10'000, 1,
     1'000'000},
    {TIMECACHED_FIELD(max_new_connections_per_second),
     &Limits::set_max_new_connections_per_second, 100, 1, 1'000'000},
    {TIMECACHED_FIELD(max_calls_per_connection),
     &Limits::set_max_calls_per_connection, 1'000, 1, 1'000'000},
    {TIMECACHED_FIELD(max_metadata_bytes), &Limits::set_max_metadata_bytes,
     8 << 10, 1 << 10, 64 << 10},
};

constexpr SizeField kSizes[] = {
    {"max_entries", &Limits::max_entries, 0},
    {"max_bytes", &Limits::max_bytes, 0},
    // With less there is no room for a batch of events beside entries.
    {"max_memory_bytes", &Limits::max_memory_bytes, 16 << 20},
    // With less there is no room for one large value and its successor.
    {"max_response_bytes", &Limits::max_response_bytes, 1 << 20},
};

constexpr DurationField kDurations[] = {
    {TIMECACHED_FIELD(max_connection_age), &Limits::mutable_max_connection_age,
     0, 1'000, 7 * kDay, true},
    {TIMECACHED_FIELD(connection_age_grace),
     &Limits::mutable_connection_age_grace, kMinute, 1'000, kHour, false},
    {TIMECACHED_FIELD(keepalive_interval), &Limits::mutable_keepalive_interval,
     kMinute, 1'000, kDay, false},
    {TIMECACHED_FIELD(keepalive_timeout), &Limits::mutable_keepalive_timeout,
     20, 1'000, kHour, false},
    {TIMECACHED_FIELD(min_ping_interval), &Limits::mutable_min_ping_interval,
     10, 1'000, kHour, false},
    {TIMECACHED_FIELD(max_call_duration), &Limits::mutable_max_call_duration,
     kMinute, 100, kHour, false},
    {TIMECACHED_FIELD(response_timeout), &Limits::mutable_response_timeout, 30,
     1'000, kHour, false},
};

#undef TIMECACHED_FIELD

Duration OfMillis(int64_t ms) {
  Duration duration;
  duration.set_seconds(ms / kMillisPerSecond);
  duration.set_nanos(static_cast<int32_t>(ms % kMillisPerSecond) *
                     kNanosPerMilli);
  return duration;
}

bool operator<(const Duration& a, const Duration& b) {
  return a.seconds() != b.seconds() ? a.seconds() < b.seconds()
                                    : a.nanos() < b.nanos();
}

std::optional<LimitProblem> FindProblem(const DurationField& field,
                                        const Limits& limits) {
  const Duration& value = (limits.*field.get)();
  const Duration min = OfMillis(field.min_ms);
  const Duration max = OfMillis(field.max_s * kMillisPerSecond);
  if (!(value < min) && !(max < value)) return std::nullopt;
  const bool zero = value.seconds() == 0 && value.nanos() == 0;
  if (zero && field.may_be_0) return std::nullopt;
  return LimitProblem{
      field.name,
      absl::StrCat("must be ", field.may_be_0 ? "0 or " : "", "from ",
                   FormatDurationText(min), " to ", FormatDurationText(max),
                   ", got ", FormatDurationText(value))};
}

}  // namespace

void FillLimitDefaults(config::v1::ServerLimits* limits) {
  for (const NumberField& field : kNumbers) {
    if (!(limits->*field.has)()) (limits->*field.set)(field.unset_means);
  }
  if (!limits->has_max_entries()) limits->set_max_entries(0);
  if (!limits->has_max_bytes()) limits->set_max_bytes(0);
  for (const DurationField& field : kDurations) {
    if ((limits->*field.has)()) continue;
    (limits->*field.mutable_get)()->set_seconds(field.unset_means_s);
  }
}

std::optional<LimitProblem> FindLimitProblem(
    const config::v1::ServerLimits& limits) {
  for (const NumberField& field : kNumbers) {
    const uint32_t value = (limits.*field.get)();
    if (value >= field.min && value <= field.max) continue;
    return LimitProblem{
        field.name, absl::StrCat("must be from ", field.min, " to ", field.max,
                                 ", got ", value)};
  }
  for (const SizeField& field : kSizes) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    const uint64_t value = (limits.*field.get)();
    if (value == 0 || (value >= field.min_unless_0 && value <= kMost)) continue;
    return LimitProblem{
        field.name,
        field.min_unless_0 == 0
            ? absl::StrCat("must be from 0 to ", kMost, ", got ", value)
            : absl::StrCat("must be 0 or from ", field.min_unless_0, " to ",
                           kMost, ", got ", value)};
  }
  for (const DurationField& field : kDurations) {
    if (auto problem = FindProblem(field, limits)) return problem;
  }
  return std::nullopt;
}

}  // namespace timecache
