#ifndef TIMECACHED_SERVER_EDGE_TLS_LISTENER_H_
#define TIMECACHED_SERVER_EDGE_TLS_LISTENER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"
#include "server/edge/file_watch.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The public state of a listener's TLS.
struct TlsState {
  std::string address;  // as configured
  // Of the certificate in force.
  std::string subject;
  absl::Time not_after;
  // Changes of the files that were accepted, including the first, and refused.
  uint64_t reloads = 0;
  uint64_t refusals = 0;
};

// TLS of one listener: gRPC credentials that follow their files. Each new
// connection uses the last valid content of the files; open ones keep theirs.
// TLS 1.2 and up; no session is resumed, so that each connection has its
// client's certificate checked (tls_resumption.h).
//
// Logs tls_loaded, tls_reloaded, tls_refused (the old stays in force), and
// tls_expiring daily from kExpiryNotice before the end.
//
// Thread-safe. Costs a lock and a comparison for each new connection.
class TlsListener {
 public:
  static constexpr absl::Duration kReloadInterval = absl::Seconds(10);
  static constexpr absl::Duration kExpiryNotice = absl::Hours(7 * 24);
  static constexpr absl::Duration kExpiryReminder = absl::Hours(24);

  // Reads the files, and lets `watch` check them every `interval` from now on. Errors as
  // CheckTlsMaterial, with the listener's name before them. A certificate that
  // has expired is served, with an error in the log: the server's other
  // listeners may be in order, and so may its clock be wrong.
  //
  // `watch` and this object must outlive the grpc::Server.
  static absl::StatusOr<std::unique_ptr<TlsListener>> Create(
      const config::v1::Listener& config, FileWatch* watch,
      absl::Duration interval = kReloadInterval);

  // For one listener of one server.
  const std::shared_ptr<grpc::ServerCredentials>& credentials() const {
    return credentials_;
  }
  TlsState state() const;

  // Logs that the certificate expires soon, or has expired, if that is so.
  void RemindOfExpiry(absl::Time now);

 private:
  class CertificateProvider;
  class Credentials;

  explicit TlsListener(std::shared_ptr<CertificateProvider> provider);

  const std::shared_ptr<CertificateProvider> provider_;
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_TLS_LISTENER_H_
