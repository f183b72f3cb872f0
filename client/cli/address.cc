#include "client/cli/address.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/base/address.h"

namespace timecache::cli {
namespace {

// What gRPC resolves by itself.
constexpr absl::string_view kSchemes[] = {
    "unix:", "unix-abstract:", "ipv4:", "ipv6:", "dns:///", "dns://", "xds:"};

absl::StatusOr<std::string> CompleteOne(std::string address) {
  for (const absl::string_view scheme : kSchemes) {
    if (absl::StartsWith(address, scheme)) return address;
  }
  if (absl::StrContains(address, "://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address, "\" is a URL, and not an address; use --tls for TLS"));
  }
  const auto colons = std::ranges::count(address, ':');
  if (address.empty() || (colons == 1 && address[0] == ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" has no host: write HOST or HOST:PORT"));
  }
  const bool in_brackets = absl::StartsWith(address, "[");
  // More than one: an IPv6 address by itself.
  if (!in_brackets && colons > 1) address = absl::StrCat("[", address, "]");
  if (colons == 0 || absl::EndsWith(address, "]")) {
    absl::StrAppend(&address, ":", kDefaultPort);
  }
  absl::Status status = ValidateAddress(address);
  if (status.ok() && absl::EndsWith(address, ":0")) {
    status = absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\": no server has port 0"));
  }
  if (!status.ok()) return status;
  return address;
}

}  // namespace

absl::StatusOr<std::string> CompleteAddress(std::string_view text) {
  std::vector<std::string> addresses = absl::StrSplit(std::string(text), ',');
  for (std::string& address : addresses) {
    absl::StripAsciiWhitespace(&address);
    absl::StatusOr<std::string> complete = CompleteOne(address);
    if (!complete.ok()) return complete.status();
    address = *std::move(complete);
  }
  return absl::StrJoin(addresses, ",");
}

}  // namespace timecache::cli
