// Which requests the console answers.

#ifndef TIMECACHED_CLIENT_CLI_CONSOLE_REQUEST_GUARD_H_
#define TIMECACHED_CLIENT_CLI_CONSOLE_REQUEST_GUARD_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "httplib.h"

namespace timecache::cli {

// The longest body: a Put of the largest value, 16 MiB, in base64.
inline constexpr size_t kMaxBodyBytes = 24 << 20;

// Why a request is refused.
struct Refusal {
  int http_status;
  absl::Status error;
};

// Immutable. A request costs O(its headers).
class RequestGuard {
 public:
  // `hosts`: the names under which browsers may reach the console, without
  // ports; that stops DNS rebinding. `token`: what requests for /api/ must
  // bear. Pages of other origins have no means to: it is in no cookie.
  RequestGuard(std::vector<std::string> hosts, std::string token);

  // Checks what is known before the body is read.
  std::optional<Refusal> Check(const httplib::Request& request) const;

 private:
  std::optional<Refusal> CheckOrigin(const httplib::Request& request) const;
  std::optional<Refusal> CheckBody(const httplib::Request& request) const;
  bool HasToken(const httplib::Request& request) const;

  const std::vector<std::string> hosts_;
  const std::string token_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONSOLE_REQUEST_GUARD_H_
