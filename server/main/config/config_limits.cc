#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/api/proto_time.h"
#include "server/base/units.h"
#include "server/main/config/config_fields.h"

namespace timecache::server {
namespace {

using Limits = config::v1::ServerLimits;
using google::protobuf::Duration;

constexpr absl::Duration kSecond = absl::Seconds(1);
constexpr absl::Duration kMinute = absl::Minutes(1);
constexpr absl::Duration kHour = absl::Hours(1);
constexpr absl::Duration kDay = absl::Hours(24);

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
  absl::Duration unset_means;
  absl::Duration min;
  absl::Duration max;
  bool may_be_0;
};

#define TIMECACHED_FIELD(name) #name, &Limits::has_##name, &Limits::name

constexpr NumberField kNumbers[] = {
    {TIMECACHED_FIELD(max_namespaces), &Limits::set_max_namespaces, 1'024, 1,
     100'000},
    {TIMECACHED_FIELD(max_watchers), &Limits::set_max_watchers, 10'000, 1,
     1'000'000},
    {TIMECACHED_FIELD(max_connections), &Limits::set_max_connections, 10'000, 1,
     1'000'000},
    {TIMECACHED_FIELD(max_new_connections_per_second),
     &Limits::set_max_new_connections_per_second, 100, 1, 1'000'000},
    {TIMECACHED_FIELD(max_calls_per_connection),
     &Limits::set_max_calls_per_connection, 1'000, 1, 1'000'000},
};

constexpr SizeField kSizes[] = {
    {"max_entries", &Limits::max_entries, 0},
    {"max_bytes", &Limits::max_bytes, 0},
    // With less there is no room for a batch of events besides entries.
    {"max_memory_bytes", &Limits::max_memory_bytes, 16 << 20},
    // With less there is no room for one large value and its successor.
    {"max_response_bytes", &Limits::max_response_bytes, 1 << 20},
};

const DurationField kDurations[] = {
    {TIMECACHED_FIELD(max_connection_age), &Limits::mutable_max_connection_age,
     absl::ZeroDuration(), kSecond, 7 * kDay, true},
    {TIMECACHED_FIELD(max_call_duration), &Limits::mutable_max_call_duration,
     kMinute, absl::Milliseconds(100), kHour, false},
    {TIMECACHED_FIELD(response_timeout), &Limits::mutable_response_timeout,
     30 * kSecond, kSecond, kHour, false},
};

#undef TIMECACHED_FIELD

std::optional<ConfigProblem> LimitProblem(const char* field, std::string what) {
  return ConfigProblem{absl::StrCat("limits.", field), std::move(what)};
}

std::optional<ConfigProblem> FindProblem(const DurationField& field,
                                         const Limits& limits) {
  const absl::Duration value = ToDuration((limits.*field.get)());
  if (value >= field.min && value <= field.max) return std::nullopt;
  if (value == absl::ZeroDuration() && field.may_be_0) return std::nullopt;
  return LimitProblem(
      field.name,
      absl::StrCat("must be ", field.may_be_0 ? "0 or " : "", "from ",
                   DurationText(field.min), " to ", DurationText(field.max),
                   ", got ", DurationText(value)));
}

}  // namespace

void FillLimitDefaults(config::v1::ServerConfig* config) {
  Limits* const limits = config->mutable_limits();
  for (const NumberField& field : kNumbers) {
    if (!(limits->*field.has)()) (limits->*field.set)(field.unset_means);
  }
  if (!limits->has_max_entries()) limits->set_max_entries(0);
  if (!limits->has_max_bytes()) limits->set_max_bytes(0);
  for (const DurationField& field : kDurations) {
    if ((limits->*field.has)()) continue;
    (limits->*field.mutable_get)()->set_seconds(
        absl::ToInt64Seconds(field.unset_means));
  }
}

std::optional<ConfigProblem> FindLimitProblem(
    const config::v1::ServerConfig& config) {
  const Limits& limits = config.limits();
  for (const NumberField& field : kNumbers) {
    const uint32_t value = (limits.*field.get)();
    if (value >= field.min && value <= field.max) continue;
    return LimitProblem(
        field.name, absl::StrCat("must be from ", field.min, " to ", field.max,
                                 ", got ", value));
  }
  for (const SizeField& field : kSizes) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    const uint64_t value = (limits.*field.get)();
    if (value == 0 || (value >= field.min_unless_0 && value <= kMost)) continue;
    return LimitProblem(
        field.name,
        field.min_unless_0 == 0
            ? absl::StrCat("must be from 0 to ", kMost, ", got ", value)
            : absl::StrCat("must be 0 or from ", field.min_unless_0, " to ",
                           kMost, ", got ", value));
  }
  for (const DurationField& field : kDurations) {
    if (auto problem = FindProblem(field, limits)) return problem;
  }
  return std::nullopt;
}

}  // namespace timecache::server
