#include "client/cli/console/request_guard.h"

#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/ui/units.h"
#include "openssl/crypto.h"

namespace timecache::cli {
namespace {

Refusal Denied(int http_status, const std::string& message) {
  return {http_status, absl::PermissionDeniedError(message)};
}

Refusal Invalid(int http_status, const std::string& message) {
  return {http_status, absl::InvalidArgumentError(message)};
}

// "name", "name:port", "[::1]:port" without the port.
absl::string_view WithoutPort(absl::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon == absl::string_view::npos || absl::EndsWith(host, "]")) {
    return host;
  }
  return host.substr(0, colon);
}

bool IsApi(const httplib::Request& request) {
  return absl::StartsWith(request.path, "/api/");
}

bool IsGet(const httplib::Request& request) {
  return request.method == "GET" || request.method == "HEAD";
}

// The user has followed a link to the page, from another site or a sign-in
// page: it shows nothing before it has the token.
bool IsNavigation(const httplib::Request& request) {
  return IsGet(request) && !IsApi(request) &&
         request.get_header_value("Sec-Fetch-Mode") == "navigate" &&
         request.get_header_value("Sec-Fetch-Dest") == "document";
}

}  // namespace

RequestGuard::RequestGuard(std::vector<std::string> hosts, std::string token)
    : hosts_(std::move(hosts)), token_(std::move(token)) {}

std::optional<Refusal> RequestGuard::Check(
    const httplib::Request& request) const {
  const std::string host = request.get_header_value("Host");
  if (request.get_header_value_count("Host") != 1 ||
      !absl::c_linear_search(hosts_,
                             absl::AsciiStrToLower(WithoutPort(host)))) {
    return Denied(421, absl::StrCat("the console is not served as \"", host,
                                    "\": allow the name with --host"));
  }
  if (auto refusal = CheckOrigin(request)) return refusal;
  if (IsApi(request) && !HasToken(request)) {
    return Refusal{
        401, absl::UnauthenticatedError(
                 "the login token is missing or wrong: open the address that "
                 "timecachectl console printed when it started")};
  }
  return CheckBody(request);
}

std::optional<Refusal> RequestGuard::CheckOrigin(
    const httplib::Request& request) const {
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  const bool same_site = site.empty() || site == "same-origin" ||
                         site == "none" || IsNavigation(request);
  bool same_origin = true;
  if (request.has_header("Origin")) {
    const std::string origin = request.get_header_value("Origin");
    absl::string_view host = origin;
    // Which of the two it is, a proxy that ends TLS decides.
    same_origin =
        (absl::ConsumePrefix(&host, "https://") ||
         absl::ConsumePrefix(&host, "http://")) &&
        request.get_header_value_count("Origin") == 1 &&
        absl::EqualsIgnoreCase(host, request.get_header_value("Host"));
  }
  if (same_site && same_origin) return std::nullopt;
  return Denied(403, "the request comes from a page of another origin");
}

bool RequestGuard::HasToken(const httplib::Request& request) const {
  const std::string header = request.get_header_value("Authorization");
  absl::string_view token = header;
  return absl::ConsumePrefix(&token, "Bearer ") &&
         token.size() == token_.size() &&
         CRYPTO_memcmp(token.data(), token_.data(), token.size()) == 0;
}

std::optional<Refusal> RequestGuard::CheckBody(
    const httplib::Request& request) const {
  const std::string length = request.get_header_value("Content-Length");
  const bool chunked = request.has_header("Transfer-Encoding");
  if (IsGet(request)) {
    if (!chunked && (length.empty() || length == "0")) return std::nullopt;
    return Invalid(400, "a GET has no body");
  }
  if (request.method != "POST" || !IsApi(request)) {
    return Invalid(405, "only GET, and POST for /api/rpc/");
  }
  uint64_t size = 0;
  if (chunked || request.get_header_value_count("Content-Length") != 1 ||
      !absl::SimpleAtoi(length, &size)) {
    return Invalid(411, "a POST has a Content-Length, and is not chunked");
  }
  if (size > kMaxBodyBytes) {
    return Invalid(
        413, absl::StrCat("the body is longer than ", SizeText(kMaxBodyBytes)));
  }
  const std::string type = request.get_header_value("Content-Type");
  if (request.has_header("Content-Encoding") ||
      !absl::EqualsIgnoreCase(
          absl::StripAsciiWhitespace(
              absl::string_view(type).substr(0, type.find(';'))),
          "application/json")) {
    return Invalid(415, "the body is application/json, not compressed");
  }
  return std::nullopt;
}

}  // namespace timecache::cli
