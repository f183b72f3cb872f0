#include "client/cli/address.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace timecache::cli {
namespace {

constexpr int kMaxPort = 65'535;
// What gRPC resolves by itself.
constexpr absl::string_view kSchemes[] = {
    "unix:", "unix-abstract:", "ipv4:", "ipv6:", "dns:///", "dns://", "xds:"};

absl::Status Invalid(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", address, "\": ", why,
                   "; write HOST, HOST:PORT, [::1]:PORT or unix:/PATH"));
}

absl::StatusOr<std::string> Join(absl::string_view address,
                                 absl::string_view host,
                                 absl::string_view port) {
  if (host.empty() || host == "[]") return Invalid(address, "no host");
  int number = 0;
  if (port.empty() ||
      !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &number) || number < 1 || number > kMaxPort) {
    return Invalid(
        address, absl::StrCat("the port is not a number from 1 to ", kMaxPort));
  }
  return absl::StrCat(host, ":", port);
}

}  // namespace

absl::StatusOr<std::string> CompleteAddress(std::string_view text) {
  const absl::string_view address(text.data(), text.size());
  for (const absl::string_view scheme : kSchemes) {
    if (absl::StartsWith(address, scheme)) return std::string(address);
  }
  if (absl::StrContains(address, "://")) {
    return Invalid(address, "a URL is not an address; use --tls for TLS");
  }
  const std::string default_port = absl::StrCat(kDefaultPort);
  if (absl::StartsWith(address, "[")) {
    const size_t end = address.find(']');
    if (end == address.npos) return Invalid(address, "no ] after the [");
    const absl::string_view host = address.substr(0, end + 1);
    const absl::string_view rest = address.substr(end + 1);
    if (rest.empty()) return Join(address, host, default_port);
    if (rest[0] != ':') return Invalid(address, "no colon after the ]");
    return Join(address, host, rest.substr(1));
  }
  const size_t colon = address.find(':');
  if (colon == address.npos) return Join(address, address, default_port);
  // More than one: an IPv6 address by itself.
  if (address.find(':', colon + 1) != address.npos) {
    return Join(address, absl::StrCat("[", address, "]"), default_port);
  }
  return Join(address, address.substr(0, colon), address.substr(colon + 1));
}

}  // namespace timecache::cli
