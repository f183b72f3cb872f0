#include "timecache/channel.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/src/rpc/bounded_channel.h"
#include "client/cpp/src/rpc/token_file.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/client_interceptor.h"
#include "server/base/address.h"
#include "server/base/read_file.h"

namespace timecache {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;

constexpr size_t kMaxPemFileBytes = 1 << 20;

grpc::ChannelArguments DefaultArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveIntervalMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // A watch may be silent for hours: without this, pings end after the second.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMinConnectPauseMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxConnectPauseMs);
  return arguments;
}

// Adds the token to each call. It needs no interceptor for that: the call's
// context is at hand when it is asked for one.
class TokenSender final
    : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenSender(std::unique_ptr<TokenFile> file)
      : file_(std::move(file)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* info) override {
    info->client_context()->AddMetadata("authorization",
                                        "Bearer " + file_->Token());
    return nullptr;
  }

 private:
  const std::unique_ptr<TokenFile> file_;
};

// gRPC only logs this, and waits.
absl::Status CheckPem(const char* what, const std::string& path,
                      absl::string_view label) {
  if (path.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> pem =
      ReadFile(path, kMaxPemFileBytes, FileKind::kAny);
  if (!pem.ok()) {
    return absl::Status(pem.status().code(),
                        absl::StrCat(what, " ", pem.status().message()));
  }
  if (absl::StrContains(*pem, label)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " ", path, ": is no PEM file with a line ----BEGIN .. ", label));
}

absl::Status CheckTlsOptions(const ChannelOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a client's certificate needs its private key, and the key its "
        "certificate: name both files");
  }
  absl::Status status =
      CheckPem("CA file", options.ca_file, "CERTIFICATE-----");
  if (status.ok()) {
    status = CheckPem("certificate file", options.certificate_file,
                      "CERTIFICATE-----");
  }
  if (status.ok()) {
    status = CheckPem("key file", options.key_file, "PRIVATE KEY-----");
  }
  return status;
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials(
    const ChannelOptions& options) {
  grpc::experimental::TlsChannelCredentialsOptions tls;
  const bool has_roots = !options.ca_file.empty();
  const bool has_identity = !options.certificate_file.empty();
  if (has_roots || has_identity) {
    tls.set_certificate_provider(
        std::make_shared<FileWatcherCertificateProvider>(
            options.key_file, options.certificate_file, options.ca_file,
            kFileCheckIntervalSeconds));
  }
  if (has_roots) tls.watch_root_certs();
  if (has_identity) tls.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(tls);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   DefaultArguments());
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const ChannelOptions& options) {
  return MakeChannel(address, options, DefaultArguments());
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeBoundedChannel(
    const std::string& address, const ChannelOptions& options) {
  grpc::ChannelArguments arguments = DefaultArguments();
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxConnectMs);
  return MakeChannel(address, options, arguments);
}

absl::Status CheckTokenTo(const std::string& address,
                          const ChannelOptions& options) {
  if (options.token_file.empty() || options.wants_tls() ||
      options.allow_plaintext_token || IsLocalAddress(address)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a token is not sent to ", address,
                   " in plain text: use TLS, or allow it explicitly"));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const ChannelOptions& options,
    grpc::ChannelArguments arguments) {
  if (absl::Status status = CheckTlsOptions(options); !status.ok()) {
    return status;
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (options.wants_tls()) {
    credentials = TlsCredentials(options);
    if (!options.server_name.empty()) {
      arguments.SetSslTargetNameOverride(options.server_name);
    }
  } else {
    credentials = grpc::InsecureChannelCredentials();
  }
  if (options.token_file.empty()) {
    return grpc::CreateCustomChannel(address, credentials, arguments);
  }

  if (absl::Status status = CheckTokenTo(address, options); !status.ok()) {
    return status;
  }
  absl::StatusOr<std::unique_ptr<TokenFile>> token =
      TokenFile::Open(options.token_file);
  if (!token.ok()) return token.status();
  std::vector<
      std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
      senders;
  senders.push_back(std::make_unique<TokenSender>(*std::move(token)));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, credentials, arguments, std::move(senders));
}

}  // namespace timecache
