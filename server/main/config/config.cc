#include "server/main/config/config.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/api/proto_time.h"
#include "server/api/yaml_to_proto.h"
#include "server/base/address.h"
#include "server/base/read_file.h"
#include "server/base/units.h"
#include "server/main/config/config_fields.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

constexpr char kDefaultNamespace[] = "default";
constexpr int32_t kDefaultSlowCallNanos = 100'000'000;
constexpr absl::Duration kMaxSlowCall = absl::Hours(1);
constexpr int64_t kDefaultGracePeriodSeconds = 10;
constexpr absl::Duration kMaxGracePeriod = absl::Hours(1);
constexpr absl::Duration kMaxDrainDelay = absl::Minutes(5);
constexpr int32_t kDefaultStallGraceNanos = 500'000'000;
constexpr absl::Duration kMinStallGrace = absl::Milliseconds(200);
constexpr absl::Duration kMaxStallGrace = absl::Hours(1);
// 366 days: a restored backup of some months starts, and a clock that is years
// ahead is refused.
constexpr int64_t kDefaultClockLeadSeconds = int64_t{366} * 86'400;
constexpr uint64_t kDefaultReserveBytes = uint64_t{128} << 20;
constexpr uint64_t kMaxReserveBytes = uint64_t{1} << 40;
// 10 years.
constexpr absl::Duration kMaxClockLag = absl::Hours(24 * 3650);
// 100 years.
constexpr absl::Duration kMaxClockLead = absl::Hours(24 * 36500);

// Sets every field of config.proto that is unset.
void FillDefaults(config::v1::ServerConfig* config) {
  FillListenerDefaults(config);
  FillLimitDefaults(config);
  if (config->namespaces().empty()) {
    config->add_namespaces()->set_name(kDefaultNamespace);
  }
  config::v1::LogConfig& log = *config->mutable_log();
  if (log.level() == config::v1::LOG_LEVEL_UNSPECIFIED) {
    log.set_level(config::v1::LOG_LEVEL_INFO);
  }
  if (log.format() == config::v1::LOG_FORMAT_UNSPECIFIED) {
    log.set_format(config::v1::LOG_FORMAT_TEXT);
  }
  if (!log.has_slow_call()) {
    log.mutable_slow_call()->set_nanos(kDefaultSlowCallNanos);
  }
  config::v1::AccessConfig& access = *config->mutable_access();
  if (!access.has_file()) access.set_file("");
  config::v1::DebugConfig& debug = *config->mutable_debug();
  if (!debug.has_reflection()) debug.set_reflection(true);
  if (!config->has_grace_period()) {
    config->mutable_grace_period()->set_seconds(kDefaultGracePeriodSeconds);
  }
  config->mutable_drain_delay();
  if (!config->has_stall_grace()) {
    config->mutable_stall_grace()->set_nanos(kDefaultStallGraceNanos);
  }
  if (!config->http().has_address()) config->mutable_http()->set_address("");
  config::v1::JournalConfig& journal = *config->mutable_journal();
  if (!journal.has_directory()) journal.set_directory("");
  if (!journal.has_max_clock_lead()) {
    journal.mutable_max_clock_lead()->set_seconds(kDefaultClockLeadSeconds);
  }
  if (!journal.has_reserve_bytes()) {
    journal.set_reserve_bytes(kDefaultReserveBytes);
  }
}

// Checks a configuration whose defaults are filled in against config.proto's
// limits.
class Validator {
 public:
  Validator(absl::string_view source_name, const FieldLines& lines)
      : source_name_(source_name), lines_(lines) {}

  absl::Status Validate(const config::v1::ServerConfig& config) const {
    absl::Status status = Check(FindListenerProblem(config));
    if (status.ok()) status = Check(FindLimitProblem(config));
    if (status.ok()) status = ValidateNamespaces(config);
    if (status.ok()) status = ValidateHttp(config);
    if (status.ok()) {
      status = ValidateUpTo("log.slow_call", config.log().slow_call(),
                            kMaxSlowCall, "0s (none)");
    }
    if (status.ok()) {
      status =
          ValidateUpTo("grace_period", config.grace_period(), kMaxGracePeriod);
    }
    if (status.ok()) {
      status =
          ValidateUpTo("drain_delay", config.drain_delay(), kMaxDrainDelay);
    }
    if (status.ok()) {
      const absl::Duration stall_grace = ToDuration(config.stall_grace());
      if (stall_grace < kMinStallGrace || stall_grace > kMaxStallGrace) {
        status = Error("stall_grace", "must be from 200ms to 1h");
      }
    }
    if (status.ok()) {
      status = ValidateUpTo("journal.max_clock_lag",
                            config.journal().max_clock_lag(), kMaxClockLag);
    }
    if (status.ok()) {
      status = ValidateUpTo("journal.max_clock_lead",
                            config.journal().max_clock_lead(), kMaxClockLead);
    }
    if (status.ok() && config.journal().reserve_bytes() > kMaxReserveBytes) {
      status = Error("journal.reserve_bytes",
                     absl::StrCat(config.journal().reserve_bytes(),
                                  ": must be from 0 (none) to 1 TiB"));
    }
    return status;
  }

 private:
  absl::Status Error(const std::string& path, absl::string_view what) const {
    const auto line = lines_.find(path);
    const std::string where =
        line == lines_.end() ? "" : absl::StrCat(":", line->second);
    return absl::InvalidArgumentError(
        absl::StrCat(source_name_, where, ": ", path, ": ", what));
  }

  absl::Status Check(const std::optional<ConfigProblem>& problem) const {
    return problem.has_value() ? Error(problem->path, problem->what)
                               : absl::OkStatus();
  }

  absl::Status ValidateHttp(const config::v1::ServerConfig& config) const {
    const std::string& address = config.http().address();
    if (address.empty()) return absl::OkStatus();
    if (absl::StartsWith(address, "unix:")) {
      return Error("http.address",
                   "must be host:port: probes and Prometheus come by TCP");
    }
    const absl::Status valid = ValidateAddress(address);
    if (!valid.ok()) return Error("http.address", valid.message());
    for (const config::v1::Listener& listener : config.listeners()) {
      if (listener.address() == address && !absl::EndsWith(address, ":0")) {
        return Error("http.address",
                     "the same as a listener's: HTTP has a port of its own");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ValidateNamespaces(
      const config::v1::ServerConfig& config) const {
    const auto max_namespaces =
        static_cast<int>(config.limits().max_namespaces());
    if (config.namespaces_size() > max_namespaces) {
      return Error(
          "namespaces",
          absl::StrCat("has ", config.namespaces_size(),
                       ", more than limits.max_namespaces, ", max_namespaces));
    }
    absl::flat_hash_map<absl::string_view, int> seen;
    for (int i = 0; i < config.namespaces_size(); ++i) {
      const std::string element = absl::StrCat("namespaces[", i, "]");
      const std::string& name = config.namespaces(i).name();
      if (name.empty()) return Error(element, "has no name: add name: NAME");
      const auto [first, is_new] = seen.emplace(name, i);
      if (!is_new) {
        return Error(element + ".name", absl::StrCat("the same as namespaces[",
                                                     first->second, "]"));
      }
    }
    return absl::OkStatus();
  }

  // YAML has no negative durations.
  absl::Status ValidateUpTo(const std::string& path,
                            const google::protobuf::Duration& duration,
                            absl::Duration max,
                            absl::string_view min_text = "0s") const {
    if (ToDuration(duration) <= max) return absl::OkStatus();
    return Error(path, absl::StrCat("must be from ", min_text, " to ",
                                    DurationText(max)));
  }

  const absl::string_view source_name_;
  const FieldLines& lines_;
};

LogLevel ToLogLevel(config::v1::LogLevel level) {
  switch (level) {
    case config::v1::LOG_LEVEL_DEBUG:
      return LogLevel::kDebug;
    case config::v1::LOG_LEVEL_WARNING:
      return LogLevel::kWarning;
    case config::v1::LOG_LEVEL_ERROR:
      return LogLevel::kError;
    default:
      return LogLevel::kInfo;
  }
}

}  // namespace

config::v1::ServerConfig DefaultConfig() {
  config::v1::ServerConfig config;
  FillDefaults(&config);
  return config;
}

absl::StatusOr<config::v1::ServerConfig> ParseConfig(
    absl::string_view yaml, absl::string_view source_name) {
  config::v1::ServerConfig config;
  FieldLines lines;
  absl::Status status = YamlToProto(yaml, source_name, &config, &lines);
  if (!status.ok()) return status;
  FillDefaults(&config);
  status = Validator(source_name, lines).Validate(config);
  if (!status.ok()) return status;
  return config;
}

absl::StatusOr<config::v1::ServerConfig> LoadConfig(const std::string& path) {
  absl::StatusOr<std::string> text =
      ReadFile(path, kMaxYamlBytes, FileKind::kAny);
  if (!text.ok()) return std::move(text).status();
  return ParseConfig(*text, path);
}

absl::Status ValidateConfig(const config::v1::ServerConfig& config,
                            absl::string_view source_name) {
  return Validator(source_name, FieldLines()).Validate(config);
}

void SetLogging(const config::v1::LogConfig& config) {
  SetLogging(ToLogLevel(config.level()),
             config.format() == config::v1::LOG_FORMAT_JSON ? LogFormat::kJson
                                                            : LogFormat::kText);
}

}  // namespace timecache::server
