#include "server/edge/connection/certificate_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <utility>

#include "grpc/grpc_security_constants.h"

namespace timecache::server {
namespace {

// Empty if it is no IP address.
std::string CanonicalIp(absl::string_view name) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (name.size() >= text.size()) return "";
  name.copy(text.data(), name.size());
  for (const int family : {AF_INET, AF_INET6}) {
    in6_addr bytes;
    if (inet_pton(family, text.data(), &bytes) != 1) continue;
    std::array<char, INET6_ADDRSTRLEN> canonical;
    return inet_ntop(family, &bytes, canonical.data(), canonical.size());
  }
  return "";
}

}  // namespace

NameType NameTypeOf(absl::string_view name) {
  if (!CanonicalIp(name).empty()) return NameType::kIp;
  if (name.find(':') != absl::string_view::npos) return NameType::kUri;
  if (name.find('@') != absl::string_view::npos) return NameType::kEmail;
  return NameType::kDns;
}

std::string CanonicalName(absl::string_view name) {
  const std::string ip = CanonicalIp(name);
  return ip.empty() ? std::string(name) : ip;
}

std::vector<absl::string_view> CertificateNames(const grpc::AuthContext& peer) {
  std::vector<absl::string_view> names;
  for (const auto& [type, property] :
       {std::pair{NameType::kDns, GRPC_PEER_DNS_PROPERTY_NAME},
        std::pair{NameType::kUri, GRPC_PEER_URI_PROPERTY_NAME},
        std::pair{NameType::kEmail, GRPC_PEER_EMAIL_PROPERTY_NAME},
        std::pair{NameType::kIp, GRPC_PEER_IP_PROPERTY_NAME}}) {
    for (const grpc::string_ref& value : peer.FindPropertyValues(property)) {
      const absl::string_view name(value.data(), value.size());
      if (NameTypeOf(name) == type) names.push_back(name);
    }
  }
  return names;
}

}  // namespace timecache::server
