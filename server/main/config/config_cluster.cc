#include <unistd.h>

#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/api/proto_time.h"
#include "server/base/address.h"
#include "server/base/read_file.h"
#include "server/base/units.h"
#include "server/main/config/cluster_config.h"
#include "server/main/config/config_fields.h"

namespace timecache::server {
namespace {

using ClusterProblem = std::optional<ConfigProblem>;

constexpr size_t kMaxClusterNameBytes = 200;
constexpr int kMaxBrokers = 64;
constexpr size_t kMaxPropertyBytes = size_t{64} << 10;

// See KafkaConfig.properties: the node sets them itself, and another value
// could lose acknowledged writes or read what does not count.
constexpr const char* kRefusedProperties[] = {
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "bootstrap.servers",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "group.id",
    "isolation.level",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "message.send.max.retries",
    "message.timeout.ms",
    "metadata.broker.list",
    "request.required.acks",
    "retries",
    "transactional.id",
};

// What --check-config, or whoever sees the configuration, is not to show.
constexpr const char* kSecretProperties[] = {
    "sasl.oauthbearer.client.secret",
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
};

std::string NameProblem(absl::string_view name) {
  const bool valid = absl::c_all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
           c == '_' || c == '-';
  });
  if (valid && !name.empty() && name.size() <= kMaxClusterNameBytes) return "";
  return absl::StrCat("must be 1 to ", kMaxClusterNameBytes,
                      " characters of a-z, A-Z, 0-9, '.', '_' and '-'");
}

// Of an address to connect to.
std::string TargetProblem(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) {
    return "must be host:port, which other machines reach";
  }
  if (const absl::Status valid = ValidateAddress(address); !valid.ok()) {
    return std::string(valid.message());
  }
  if (absl::EndsWith(address, ":0")) return "must have a port from 1 to 65535";
  return "";
}

// Whether it is one to listen on only, and to connect to from nowhere.
bool IsWildcard(absl::string_view address) {
  const absl::string_view host = address.substr(0, address.rfind(':'));
  return host == "0.0.0.0" || host == "[::]" || host == "*";
}

std::string MachineName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

ClusterProblem FindPropertyProblem(const std::string& field,
                                   const std::string& property) {
  const std::string path = absl::StrCat(field, "[", property, "]");
  if (property.empty()) return {{path, "has no name of a property"}};
  if (!absl::c_linear_search(kRefusedProperties, property)) return std::nullopt;
  return {{path,
           "cannot be set: the server sets it, and another value could lose "
           "acknowledged writes"}};
}

ClusterProblem FindKafkaProblem(const config::v1::KafkaConfig& kafka) {
  if (kafka.brokers_size() > kMaxBrokers) {
    return {{"cluster.kafka.brokers",
             absl::StrCat("has ", kafka.brokers_size(), ", more than ",
                          kMaxBrokers, ": some are enough to find the rest")}};
  }
  for (int i = 0; i < kafka.brokers_size(); ++i) {
    std::string problem = TargetProblem(kafka.brokers(i));
    if (!problem.empty()) {
      return {
          {absl::StrCat("cluster.kafka.brokers[", i, "]"), std::move(problem)}};
    }
  }
  const std::string properties = "cluster.kafka.properties";
  for (const auto& [name, value] : kafka.properties()) {
    ClusterProblem problem = FindPropertyProblem(properties, name);
    if (problem.has_value()) return problem;
    if (absl::c_linear_search(kSecretProperties, name)) {
      return {{absl::StrCat(properties, "[", name, "]"),
               "is a secret: write it to a file, and that file's path to "
               "cluster.kafka.property_files"}};
    }
  }
  const std::string files = "cluster.kafka.property_files";
  for (const auto& [name, file] : kafka.property_files()) {
    ClusterProblem problem = FindPropertyProblem(files, name);
    if (problem.has_value()) return problem;
    const std::string path = absl::StrCat(files, "[", name, "]");
    if (file.empty()) return {{path, "has no file's name"}};
    if (kafka.properties().contains(name)) {
      return {{path, absl::StrCat("is also in ", properties, ": remove one")}};
    }
  }
  return std::nullopt;
}

bool AsksForCertificates(const config::v1::ServerConfig& config) {
  return std::any_of(config.listeners().begin(), config.listeners().end(),
                     [](const config::v1::Listener& listener) {
                       return !listener.tls().client_ca_file().empty();
                     });
}

}  // namespace

void FillClusterDefaults(config::v1::ServerConfig* config) {
  config::v1::ClusterConfig& cluster = *config->mutable_cluster();
  if (!cluster.has_name()) cluster.set_name("");
  if (!cluster.has_node()) cluster.set_node("");
  if (!cluster.has_advertise()) cluster.set_advertise("");
  if (!cluster.has_allow_unsafe()) cluster.set_allow_unsafe(false);
  if (!cluster.has_forward_calls()) cluster.set_forward_calls(false);
  if (!cluster.has_peer_principal()) cluster.set_peer_principal("");
  if (!cluster.has_peer_token_file()) cluster.set_peer_token_file("");
  if (!cluster.has_peer_ca_file()) cluster.set_peer_ca_file("");
  if (cluster.reads() == config::v1::CLUSTER_READS_UNSPECIFIED) {
    cluster.set_reads(config::v1::CLUSTER_READS_LEASE);
  }
  cluster.mutable_kafka();
  if (!cluster.has_failure_timeout()) {
    SetDuration(2 * absl::ToInt64Microseconds(ToDuration(cluster.lease())),
                cluster.mutable_failure_timeout());
  }
  if (cluster.name().empty()) return;
  if (cluster.node().empty()) cluster.set_node(MachineName());
  const std::string& address = config->listeners(0).address();
  if (cluster.advertise().empty() && TargetProblem(address).empty() &&
      !IsWildcard(address)) {
    cluster.set_advertise(address);
  }
}

std::optional<ConfigProblem> FindClusterProblem(
    const config::v1::ServerConfig& config) {
  const config::v1::ClusterConfig& cluster = config.cluster();
  const absl::Duration lease = ToDuration(cluster.lease());
  const absl::Duration timeout = ToDuration(cluster.failure_timeout());
  if (timeout < 2 * lease) {
    return {{"cluster.failure_timeout",
             absl::StrCat("must be at least twice cluster.lease, ",
                          DurationText(2 * lease), ", got ",
                          DurationText(timeout))}};
  }
  if (ClusterProblem kafka = FindKafkaProblem(cluster.kafka());
      kafka.has_value()) {
    return kafka;
  }
  if (!cluster.advertise().empty()) {
    std::string problem = TargetProblem(cluster.advertise());
    if (problem.empty() && IsWildcard(cluster.advertise())) {
      problem = "must be an address that clients can connect to";
    }
    if (!problem.empty()) return {{"cluster.advertise", std::move(problem)}};
  }
  if (cluster.name().empty()) return std::nullopt;
  if (std::string problem = NameProblem(cluster.name()); !problem.empty()) {
    return {{"cluster.name", std::move(problem)}};
  }
  if (std::string problem = NameProblem(cluster.node()); !problem.empty()) {
    return {{"cluster.node", std::move(problem)}};
  }
  if (!config.journal().directory().empty()) {
    return {{"cluster.name",
             "is set beside journal.directory: a node of a cluster keeps its "
             "journal in Kafka; remove one of them"}};
  }
  if (cluster.forward_calls() && !config.access().file().empty() &&
      cluster.peer_principal().empty()) {
    return {
        {"cluster.peer_principal",
         "is empty, and there are access rules: name the principal as which "
         "nodes call each other, or unset cluster.forward_calls"}};
  }
  if (cluster.forward_calls() && !config.access().file().empty() &&
      cluster.peer_token_file().empty() && !AsksForCertificates(config)) {
    return {{"cluster.peer_token_file",
             "is empty, there are access rules, and no listener asks for "
             "certificates: nodes could not show each other who they are"}};
  }
  return std::nullopt;
}

std::optional<ConfigProblem> FindClusterOmission(
    const config::v1::ServerConfig& config) {
  const config::v1::ClusterConfig& cluster = config.cluster();
  if (cluster.name().empty()) {
    // As a server of its own it would lose what it is sent.
    if (cluster.kafka().brokers().empty() && cluster.node().empty() &&
        cluster.advertise().empty() && !cluster.allow_unsafe()) {
      return std::nullopt;
    }
    return {{"cluster.name",
             "is empty, and other fields of cluster are set: name the cluster "
             "(--cluster NAME), or remove them"}};
  }
  if (cluster.kafka().brokers().empty()) {
    return {{"cluster.kafka.brokers",
             "is empty: name one or more brokers of Kafka, as host:port "
             "(--kafka-brokers LIST)"}};
  }
  if (cluster.advertise().empty()) {
    return {{"cluster.advertise",
             absl::StrCat("is empty, and clients cannot connect to the first "
                          "listener's address, ",
                          config.listeners(0).address(),
                          ": set the host:port at which they reach this node "
                          "(--advertise ADDRESS)")}};
  }
  return std::nullopt;
}

absl::StatusOr<std::map<std::string, std::string>> ReadKafkaProperties(
    const config::v1::KafkaConfig& kafka) {
  std::map<std::string, std::string> properties(kafka.properties().begin(),
                                                kafka.properties().end());
  for (const auto& [name, path] : kafka.property_files()) {
    absl::StatusOr<std::string> text = ReadFile(path, kMaxPropertyBytes);
    if (!text.ok()) {
      return absl::Status(text.status().code(),
                          absl::StrCat("cluster.kafka.property_files[", name,
                                       "]: ", text.status().message()));
    }
    absl::string_view value = *text;
    if (absl::ConsumeSuffix(&value, "\n")) absl::ConsumeSuffix(&value, "\r");
    properties[name] = std::string(value);
  }
  return properties;
}

}  // namespace timecache::server
