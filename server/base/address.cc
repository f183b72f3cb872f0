#include "server/base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace timecache {

absl::Status ValidateAddress(absl::string_view address) {
  const auto wrong = [address](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", absl::CHexEscape(address.substr(0, 128)), "\" ", what));
  };
  for (const char c : address) {
    if (!absl::ascii_isgraph(c)) {
      return wrong("has a character that no address has");
    }
  }
  if (absl::StartsWith(address, "unix:")) {
    const absl::string_view path = absl::StripPrefix(address, "unix:");
    if (path.size() < 2 || path[0] != '/') {
      return wrong("has no absolute path after unix:");
    }
    if (path.size() <= kMaxSocketPathBytes) return absl::OkStatus();
    return wrong(absl::StrCat("has a path of more than ", kMaxSocketPathBytes,
                              " bytes"));
  }

  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) {
    return wrong(
        "has no port: write host:port, as 127.0.0.1:7171, or unix:/path");
  }
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view port_text = address.substr(colon + 1);
  if (host.empty() || host == "[]") {
    return wrong("has no host: 0.0.0.0:PORT takes all IPv4 addresses");
  }
  const bool in_brackets =
      host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (host.find(':') != absl::string_view::npos && !in_brackets) {
    return wrong("has an IPv6 address without brackets: write [::1]:7171");
  }
  uint32_t port = 0;
  if (port_text.empty() || !absl::ascii_isdigit(port_text.front()) ||
      !absl::SimpleAtoi(port_text, &port) || port > 65535) {
    return wrong("has no port from 0 to 65535 after the last colon");
  }
  return absl::OkStatus();
}

bool IsLocalAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  std::string host(address.substr(0, address.rfind(':')));
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  host = std::string(absl::StripPrefix(absl::StripSuffix(host, "]"), "["));
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace timecache
