#ifndef TIMECACHED_SERVER_CONFIG_CONFIG_LISTENERS_H_
#define TIMECACHED_SERVER_CONFIG_CONFIG_LISTENERS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache {

// The addresses of config.proto: listeners, their TLS, health_address: defaults
// and what is allowed. Thread-safe.

// Sets what is unset.
void FillListenerDefaults(config::v1::ServerConfig* config);

// What is wrong: the field's full name, and what to do about it.
struct ListenerProblem {
  std::string path;
  std::string what;
};
// The first problem of a configuration whose defaults are filled in; none if
// all is well.
std::optional<ListenerProblem> FindListenerProblem(
    const config::v1::ServerConfig& config);

// Whether no other machine can reach an address that ValidateAddress accepts: a
// unix socket, localhost, 127.0.0.0/8 or ::1.
bool IsLocalAddress(absl::string_view address);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_CONFIG_CONFIG_LISTENERS_H_
