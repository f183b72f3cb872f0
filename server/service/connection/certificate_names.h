// The subject alternative names of certificates, by their types.

#ifndef TIMECACHED_SERVER_SERVICE_CONNECTION_CERTIFICATE_NAMES_H_
#define TIMECACHED_SERVER_SERVICE_CONNECTION_CERTIFICATE_NAMES_H_

#include <grpcpp/security/auth_context.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace timecache::server {

enum class NameType { kDns, kUri, kEmail, kIp };

// The type of a name that an access file has: an IP address is one that reads
// as one; of the others a URI has a colon (after its scheme), an e-mail address
// an @, and a DNS name neither.
NameType NameTypeOf(absl::string_view name);

// The one way to write a name: of an IP address that of inet_ntop, of others as
// it is.
std::string CanonicalName(absl::string_view name);

// The names of a peer's certificate that stand for what they look like. A DNS
// name "10.0.0.1" is no address, and a URI "a.example" no host: whoever may
// have certificates for names of one type alone does not get another's rights.
std::vector<absl::string_view> CertificateNames(const grpc::AuthContext& peer);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CONNECTION_CERTIFICATE_NAMES_H_
