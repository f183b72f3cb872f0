#include "server/edge/tls_listener.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"
#include "server/edge/grpc_version.h"
#include "server/edge/tls_material.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

grpc_ssl_client_certificate_request_type RequestType(
    config::v1::ClientCertificate client_certificate) {
  switch (client_certificate) {
    case config::v1::CLIENT_CERTIFICATE_OPTIONAL:
      return GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    case config::v1::CLIENT_CERTIFICATE_REQUIRED:
      return GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    default:
      return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  }
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

// The files in force, set by the file watch and read by connections.
class TlsListener::CertificateProvider {
 public:
  explicit CertificateProvider(const config::v1::Listener& config)
      : config_(config) {}

  const config::v1::Listener& config() const { return config_; }

  // Of the last change.
  absl::Status status() const {
    absl::MutexLock lock(&mu_);
    return status_;
  }

  void Take(const FileWatch::Contents& contents) {
    auto material = CheckTlsMaterial(config_.tls(), contents);
    const absl::Time now = absl::Now();
    absl::MutexLock lock(&mu_);
    if (material.ok() && material->not_after < now &&
        material_.not_after > now) {
      material = Expired(*material);
    }
    status_ = material.status();
    if (!material.ok()) {
      ++state_.refusals;
      // At start it is the error of Create.
      if (state_.reloads > 0) LogRefused(material.status());
      return;
    }
    material_ = *std::move(material);
    state_.subject = material_.subject;
    state_.not_after = material_.not_after;
    reminded_ = absl::InfinitePast();
    Log(LogLevel::kInfo, ++state_.reloads == 1 ? "tls_loaded" : "tls_reloaded",
        {{"address", config_.address()},
         {"subject", material_.subject},
         {"sans", material_.sans},
         {"not_before", TimeText(material_.not_before)},
         {"not_after", TimeText(material_.not_after)}});
    Remind(now);
  }

  TlsState state() const {
    absl::MutexLock lock(&mu_);
    TlsState state = state_;
    state.address = config_.address();
    return state;
  }

  void RemindOfExpiry(absl::Time now) {
    absl::MutexLock lock(&mu_);
    Remind(now);
  }

  // gRPC calls this before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<CertificateProvider*>(self)->Fetch(config);
  }

 private:
  absl::Status Expired(const TlsMaterial& material) const {
    return absl::InvalidArgumentError(
        absl::StrCat("tls.certificate_file: ", config_.tls().certificate_file(),
                     ": expired at ", TimeText(material.not_after),
                     ", and the certificate in force has not: install a newer "
                     "one"));
  }

  void LogRefused(const absl::Status& why) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Log(LogLevel::kWarning, "tls_refused",
        {{"address", config_.address()},
         {"error", why.message()},
         {"in_force", material_.subject},
         {"not_after", TimeText(material_.not_after)}});
  }

  void Remind(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Duration left = material_.not_after - now;
    if (left > kExpiryNotice || now - reminded_ < kExpiryReminder) return;
    reminded_ = now;
    const bool over = left < absl::ZeroDuration();
    Log(over ? LogLevel::kError : LogLevel::kWarning,
        over ? "tls_expired" : "tls_expiring",
        {{"address", config_.address()},
         {"certificate_file", config_.tls().certificate_file()},
         {"subject", material_.subject},
         {"not_after", TimeText(material_.not_after)},
         {"hours_left", absl::ToInt64Hours(left)}});
  }

  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) {
    absl::MutexLock lock(&mu_);
    if (fetched_ == state_.reloads) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    fetched_ = state_.reloads;
    const grpc_ssl_pem_key_cert_pair pair = {
        material_.private_key.c_str(), material_.certificate_chain.c_str()};
    // gRPC asserts that there are roots, even if it does not ask clients for
    // certificates and so never uses them.
    const std::string& roots = material_.client_roots.empty()
                                   ? material_.certificate_chain
                                   : material_.client_roots;
    *config =
        grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const config::v1::Listener config_;

  mutable absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  TlsMaterial material_ ABSL_GUARDED_BY(mu_);
  TlsState state_ ABSL_GUARDED_BY(mu_);
  // Which of the reloads gRPC has.
  uint64_t fetched_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time reminded_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

// gRPC's C++ API has no credentials that request their certificate through a
// callback, its C API has: the only way to have exactly the checked files in
// force.
class TlsListener::Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(std::shared_ptr<CertificateProvider> provider)
      : provider_(std::move(provider)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                RequestType(provider_->config().tls().client_certificate()),
                &CertificateProvider::Fetch, provider_.get()))) {}
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  // The gate of the service identifies callers.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  const std::shared_ptr<CertificateProvider> provider_;
  grpc_server_credentials* const credentials_;
};

absl::StatusOr<std::unique_ptr<TlsListener>> TlsListener::Create(
    const config::v1::Listener& config, FileWatch* watch,
    absl::Duration interval) {
  DisableTlsResumption();
  auto provider = std::make_shared<CertificateProvider>(config);
  absl::Status status =
      watch->Add(TlsFiles(config.tls()), interval,
                 [provider](const FileWatch::Contents& contents) {
                   provider->Take(contents);
                 });
  if (status.ok()) status = provider->status();
  if (!status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat("listener ", config.address(), ": ", status.message()));
  }
  return std::unique_ptr<TlsListener>(new TlsListener(std::move(provider)));
}

TlsListener::TlsListener(std::shared_ptr<CertificateProvider> provider)
    : provider_(std::move(provider)),
      credentials_(std::make_shared<Credentials>(provider_)) {}

TlsState TlsListener::state() const { return provider_->state(); }

void TlsListener::RemindOfExpiry(absl::Time now) {
  provider_->RemindOfExpiry(now);
}

}  // namespace timecache::server
