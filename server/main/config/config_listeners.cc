#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/address.h"
#include "server/main/config/config.h"
#include "server/main/config/config_fields.h"

namespace timecache::server {
namespace {

constexpr char kDefaultAddress[] = "127.0.0.1:7171";

using Problem = std::optional<ConfigProblem>;

bool TakesAnyPort(absl::string_view address) {
  return absl::EndsWith(address, ":0");
}

Problem FindTlsProblem(const std::string& path,
                       const config::v1::TlsConfig& tls) {
  if (tls.certificate_file().empty()) {
    return {{path,
             "has no certificate_file: name the PEM file with the server's "
             "certificate and its chain"}};
  }
  if (tls.key_file().empty()) {
    return {{path,
             "has no key_file: name the PEM file with the certificate's "
             "private key"}};
  }
  const bool has_roots = !tls.client_ca_file().empty();
  const bool asks =
      tls.client_certificate() != config::v1::CLIENT_CERTIFICATE_NONE;
  if (asks && !has_roots) {
    return {{path + ".client_certificate",
             "needs client_ca_file, the roots that clients' certificates lead "
             "to"}};
  }
  if (has_roots && !asks) {
    return {{path + ".client_certificate",
             "is none, and client_ca_file is set: remove one of them"}};
  }
  return std::nullopt;
}

Problem FindProblemOf(const std::string& path,
                      const config::v1::Listener& listener) {
  const std::string& address = listener.address();
  if (address.empty()) {
    return {{path, "has no address: add address: host:port"}};
  }
  const absl::Status valid = ValidateAddress(address);
  if (!valid.ok()) return {{path + ".address", std::string(valid.message())}};
  if (listener.has_tls()) return FindTlsProblem(path + ".tls", listener.tls());
  if (listener.allow_plaintext() || IsLocalAddress(address)) {
    return std::nullopt;
  }
  return {
      {path, absl::StrCat(
                 "would serve plain text on ", address,
                 ", which other machines may reach: set tls (--tls-cert, "
                 "--tls-key), or listen on 127.0.0.1, or, if every host on the "
                 "network is trusted, set allow_plaintext: true "
                 "(--allow-plaintext)")}};
}

}  // namespace

void FillListenerDefaults(config::v1::ServerConfig* config) {
  if (config->listeners().empty()) {
    config->add_listeners()->set_address(kDefaultAddress);
  }
  for (config::v1::Listener& listener : *config->mutable_listeners()) {
    if (!listener.has_allow_plaintext()) listener.set_allow_plaintext(false);
    if (!listener.has_tls()) continue;
    config::v1::TlsConfig& tls = *listener.mutable_tls();
    if (!tls.has_client_ca_file()) tls.set_client_ca_file("");
    if (tls.client_certificate() ==
        config::v1::CLIENT_CERTIFICATE_UNSPECIFIED) {
      tls.set_client_certificate(tls.client_ca_file().empty()
                                     ? config::v1::CLIENT_CERTIFICATE_NONE
                                     : config::v1::CLIENT_CERTIFICATE_REQUIRED);
    }
  }
  if (!config->has_health_address()) config->set_health_address("");
}

std::optional<ConfigProblem> FindListenerProblem(
    const config::v1::ServerConfig& config) {
  if (config.listeners_size() > kMaxListeners) {
    return {{"listeners", absl::StrCat("has ", config.listeners_size(),
                                       ", more than ", kMaxListeners)}};
  }
  absl::flat_hash_map<absl::string_view, int> seen;
  for (int i = 0; i < config.listeners_size(); ++i) {
    const std::string path = absl::StrCat("listeners[", i, "]");
    Problem problem = FindProblemOf(path, config.listeners(i));
    if (problem.has_value()) return problem;
    const std::string& address = config.listeners(i).address();
    const auto [first, is_new] = seen.emplace(address, i);
    if (!is_new && !TakesAnyPort(address)) {
      return {{path + ".address",
               absl::StrCat("the same as listeners[", first->second, "]")}};
    }
  }
  const std::string& health = config.health_address();
  if (health.empty()) return std::nullopt;
  const absl::Status valid = ValidateAddress(health);
  if (!valid.ok()) return {{"health_address", std::string(valid.message())}};
  if (seen.contains(health) && !TakesAnyPort(health)) {
    return {{"health_address",
             "the same as a listener's: it needs a port of its own"}};
  }
  return std::nullopt;
}

}  // namespace timecache::server
