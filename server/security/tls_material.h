#ifndef TIMECACHED_SERVER_SECURITY_TLS_MATERIAL_H_
#define TIMECACHED_SERVER_SECURITY_TLS_MATERIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/security/file_watch.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// What one listener shows of itself and whom it trusts, as PEM, and what of it
// may be told.
struct TlsMaterial {
  std::string certificate_chain;
  std::string private_key;
  // Empty: clients are not asked for certificates.
  std::string client_roots;

  // Of the server's certificate.
  std::string subject;
  std::string sans;  // "DNS:localhost, IP Address:127.0.0.1"
  absl::Time not_before;
  // When the first certificate of the chain expires.
  absl::Time not_after;
};

// The files of a listener, as a FileWatch takes them: certificate, key, and
// roots if there are.
std::vector<std::string> TlsFiles(const config::v1::TlsConfig& config);

// Makes sense of what was read from TlsFiles. INVALID_ARGUMENT, or what the
// system says of a file that cannot be read, with the field, the file and what
// to do: what TLS would refuse later is refused here. A certificate out of its
// time is no error: the caller knows what else it has. Thread-safe; costs about
// a millisecond.
absl::StatusOr<TlsMaterial> CheckTlsMaterial(
    const config::v1::TlsConfig& config, const FileWatch::Contents& contents);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SECURITY_TLS_MATERIAL_H_
