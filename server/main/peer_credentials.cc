#include "server/main/peer_credentials.h"

#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "server/api/proto_time.h"
#include "server/base/read_file.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

constexpr size_t kMaxTokenBytes = size_t{4} << 10;
constexpr size_t kMaxRootsBytes = size_t{1} << 20;

std::shared_ptr<grpc::ChannelCredentials> ToCredentials(
    const config::v1::ServerConfig& config, unsigned reload_seconds) {
  for (const config::v1::Listener& listener : config.listeners()) {
    if (!listener.has_tls()) continue;
    const config::v1::TlsConfig& tls = listener.tls();
    const std::string& roots = config.cluster().peer_ca_file().empty()
                                   ? tls.client_ca_file()
                                   : config.cluster().peer_ca_file();
    grpc::experimental::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
            tls.key_file(), tls.certificate_file(), roots, reload_seconds));
    options.watch_identity_key_cert_pairs();
    if (!roots.empty()) options.watch_root_certs();
    return grpc::experimental::TlsCredentials(options);
  }
  return grpc::InsecureChannelCredentials();
}

std::string ReadAuthorization(const std::string& path) {
  const absl::StatusOr<std::string> token = ReadFile(path, kMaxTokenBytes);
  if (token.ok()) {
    return absl::StrCat("Bearer ", absl::StripAsciiWhitespace(*token));
  }
  Log(LogLevel::kWarning, "peer_token_unread",
      {{"file", path}, {"why", token.status().message()}});
  return "";
}

}  // namespace

absl::Status CheckPeerFiles(const config::v1::ServerConfig& config) {
  const config::v1::ClusterConfig& cluster = config.cluster();
  const std::tuple<absl::string_view, const std::string&, size_t> files[] = {
      {"cluster.peer_token_file", cluster.peer_token_file(), kMaxTokenBytes},
      {"cluster.peer_ca_file", cluster.peer_ca_file(), kMaxRootsBytes},
  };
  for (const auto& [field, path, max_bytes] : files) {
    if (path.empty()) continue;
    const absl::Status read = ReadFile(path, max_bytes).status();
    if (!read.ok()) {
      return absl::Status(read.code(),
                          absl::StrCat(field, ": ", read.message()));
    }
  }
  return absl::OkStatus();
}

PeerStores::Options ToPeerOptions(const config::v1::ServerConfig& config,
                                  unsigned reload_seconds) {
  PeerStores::Options options;
  options.credentials = ToCredentials(config, reload_seconds);
  const std::string& token_file = config.cluster().peer_token_file();
  if (!token_file.empty()) {
    options.authorization = [token_file] {
      return ReadAuthorization(token_file);
    };
  }
  options.call_timeout = absl::ToChronoMilliseconds(
      ToDuration(config.limits().response_timeout()));
  return options;
}

}  // namespace timecache::server
