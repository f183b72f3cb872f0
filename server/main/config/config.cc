#include "server/main/config/config.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/api/yaml_to_proto.h"
#include "server/base/address.h"
#include "server/base/read_file.h"
#include "server/main/config/config_fields.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

constexpr char kDefaultNamespace[] = "default";

// Sets every field of config.proto that is unset.
void FillDefaults(config::v1::ServerConfig* config) {
  FillListenerDefaults(config);
  FillRangeDefaults(config);
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
  config::v1::AccessConfig& access = *config->mutable_access();
  if (!access.has_file()) access.set_file("");
  config::v1::DebugConfig& debug = *config->mutable_debug();
  if (!debug.has_reflection()) debug.set_reflection(true);
  if (!config->http().has_address()) config->mutable_http()->set_address("");
  if (!config->journal().has_directory()) {
    config->mutable_journal()->set_directory("");
  }
  FillClusterDefaults(config);
}

// Checks a configuration whose defaults are filled in against config.proto's
// limits.
class Validator {
 public:
  Validator(absl::string_view source_name, const FieldLines& lines)
      : source_name_(source_name), lines_(lines) {}

  absl::Status Validate(const config::v1::ServerConfig& config) const {
    absl::Status status = Check(FindListenerProblem(config));
    if (status.ok()) status = Check(FindRangeProblem(config));
    if (status.ok()) status = Check(FindClusterProblem(config));
    if (status.ok()) status = ValidateNamespaces(config);
    if (status.ok()) status = ValidateHttp(config);
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
