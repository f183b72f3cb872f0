#ifndef TIMECACHED_SERVER_EDGE_TLS_MATERIAL_H_
#define TIMECACHED_SERVER_EDGE_TLS_MATERIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/edge/file_watch.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// One listener's certificate, key and trusted roots, as PEM, and their public
// details.
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

// Checks the content of TlsFiles. INVALID_ARGUMENT, or the system's error for a
// file that cannot be read, with the field, the file and a remedy: files that
// TLS would refuse later are refused here. A certificate outside of its
// validity period is not an error: the caller knows its alternatives.
// Thread-safe; costs about a millisecond.
absl::StatusOr<TlsMaterial> CheckTlsMaterial(
    const config::v1::TlsConfig& config, const FileWatch::Contents& contents);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_TLS_MATERIAL_H_
