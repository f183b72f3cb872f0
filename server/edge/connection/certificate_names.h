// The subject alternative names of certificates, by their types.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_CERTIFICATE_NAMES_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_CERTIFICATE_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/security/auth_context.h"

namespace timecache::server {

enum class NameType { kDns, kUri, kEmail, kIp };

// The type of a name in an access file: an IP address is one that parses as
// one; of the others a URI has a colon (after its scheme), an e-mail address an
// @, and a DNS name neither.
NameType NameTypeOf(absl::string_view name);

// The canonical form of a name: of an IP address that of inet_ntop, of others
// the name itself.
std::string CanonicalName(absl::string_view name);

// The names of a peer's certificate whose type matches their form. A DNS name
// "10.0.0.1" is not an address, and a URI "a.example" not a host: a holder of
// certificates for names of one type does not get the permissions of a name of
// another type.
std::vector<absl::string_view> CertificateNames(const grpc::AuthContext& peer);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_CERTIFICATE_NAMES_H_
