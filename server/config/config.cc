#include "server/config/config.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/config/config_access.h"
#include "server/config/config_limits.h"
#include "server/config/config_listeners.h"
#include "server/config/yaml_to_proto.h"
#include "server/observability/log.h"

namespace timecache {
namespace {

constexpr char kDefaultNamespace[] = "default";
constexpr int64_t kDefaultGracePeriodSeconds = 10;
constexpr int64_t kMaxGracePeriodSeconds = 3600;
constexpr int64_t kMaxDrainDelaySeconds = 300;

// Sets every field of config.proto that is unset.
void FillDefaults(config::v1::ServerConfig* config) {
  FillListenerDefaults(config);
  FillLimitDefaults(config->mutable_limits());
  FillAccessDefaults(config);
  if (config->namespaces().empty())
    config->add_namespaces()->set_name(kDefaultNamespace);
  config::v1::LogConfig& log = *config->mutable_log();
  if (log.level() == config::v1::LOG_LEVEL_UNSPECIFIED)
    log.set_level(config::v1::LOG_LEVEL_INFO);
  if (log.format() == config::v1::LOG_FORMAT_UNSPECIFIED)
    log.set_format(config::v1::LOG_FORMAT_TEXT);
  if (!config->has_grace_period()) {
    config->mutable_grace_period()->set_seconds(kDefaultGracePeriodSeconds);
  }
  config->mutable_drain_delay();
  if (!config->http().has_address()) config->mutable_http()->set_address("");
}

// Checks a configuration whose defaults are filled in against config.proto's
// limits.
class Validator {
 public:
  Validator(absl::string_view source_name, const FieldLines& lines)
      : source_name_(source_name), lines_(lines) {}

  absl::Status Validate(const config::v1::ServerConfig& config) const {
    absl::Status status = ValidateListeners(config);
    if (status.ok()) status = ValidateLimits(config.limits());
    if (status.ok()) status = ValidateNamespaces(config);
    if (status.ok()) status = ValidateHttp(config);
    if (status.ok()) status = ValidateAccess(config);
    if (status.ok()) {
      status = ValidateUpTo("grace_period", config.grace_period(),
                            kMaxGracePeriodSeconds, "1h");
    }
    if (status.ok()) {
      status = ValidateUpTo("drain_delay", config.drain_delay(),
                            kMaxDrainDelaySeconds, "5m");
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

  absl::Status ValidateListeners(const config::v1::ServerConfig& config) const {
    const auto problem = FindListenerProblem(config);
    if (!problem.has_value()) return absl::OkStatus();
    return Error(problem->path, problem->what);
  }

  absl::Status ValidateAccess(const config::v1::ServerConfig& config) const {
    const auto problem = FindAccessProblem(config);
    if (!problem.has_value()) return absl::OkStatus();
    return Error(problem->path, problem->what);
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

  absl::Status ValidateLimits(const config::v1::ServerLimits& limits) const {
    const auto problem = FindLimitProblem(limits);
    if (!problem.has_value()) return absl::OkStatus();
    return Error(absl::StrCat("limits.", problem->field), problem->what);
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
                            int64_t max_seconds,
                            absl::string_view max_text) const {
    if (duration.seconds() < max_seconds ||
        (duration.seconds() == max_seconds && duration.nanos() == 0)) {
      return absl::OkStatus();
    }
    return Error(path, absl::StrCat("must be from 0s to ", max_text));
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

absl::Status FileError(const std::string& path, int error_number) {
  return absl::ErrnoToStatus(error_number,
                             absl::StrCat(path, ": cannot be read"));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return FileError(path, errno);
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is a directory: name the configuration file in it"));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // One byte more than is allowed, so that a longer file shows itself as one.
  std::string text(kMaxYamlBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    return FileError(path, errno != 0 ? errno : EIO);
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
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
  absl::StatusOr<std::string> text = ReadFile(path);
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

absl::Status ValidateAddress(absl::string_view address) {
  const auto wrong = [address](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", absl::CHexEscape(address.substr(0, 128)), "\" ", what));
  };
  for (const char c : address) {
    if (!absl::ascii_isgraph(c))
      return wrong("has a character that no address has");
  }
  if (absl::StartsWith(address, "unix:")) {
    const absl::string_view path = absl::StripPrefix(address, "unix:");
    if (path.size() < 2 || path[0] != '/')
      return wrong("has no absolute path after unix:");
    if (path.size() <= kMaxSocketPathBytes) return absl::OkStatus();
    return wrong(absl::StrCat("has a path of more than ", kMaxSocketPathBytes,
                              " bytes"));
  }

  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) {
    return wrong(
        "has no port: write host:port, as 127.0.0.1:7171, or unix:/path");
  }
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view port_text = address.substr(colon + 1);
  if (host.empty())
    return wrong("has no host: 0.0.0.0:PORT takes all IPv4 addresses");
  const bool in_brackets =
      host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (host.find(':') != absl::string_view::npos && !in_brackets) {
    return wrong("has an IPv6 address without brackets: write [::1]:7171");
  }
  uint32_t port = 0;
  if (port_text.empty() || !absl::ascii_isdigit(port_text.front()) ||
      !absl::SimpleAtoi(port_text, &port) || port > 65535) {
    return wrong("has no port from 0 to 65535 after the last colon");
  }
  return absl::OkStatus();
}

}  // namespace timecache
