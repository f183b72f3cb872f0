#ifndef TIMECACHED_SERVER_EDGE_TLS_LISTENERS_H_
#define TIMECACHED_SERVER_EDGE_TLS_LISTENERS_H_

#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/housekeeping.h"
#include "server/edge/tls_listener.h"

namespace timecache::server {

// The TLS of all listeners of a server, and a reminder of the end of their
// certificates. Thread-safe.
class TlsListeners {
 public:
  // How often the expiry times are checked.
  static constexpr std::chrono::hours kReminderInterval{1};

  // Errors as TlsListener::Create, of the first listener that has one. `watch`
  // and this object must outlive the grpc::Server, `housekeeping` this object.
  static absl::StatusOr<std::unique_ptr<TlsListeners>> Create(
      const config::v1::ServerConfig& config, FileWatch* watch,
      Housekeeping* housekeeping);
  TlsListeners(const TlsListeners&) = delete;
  TlsListeners& operator=(const TlsListeners&) = delete;

  // For each of the configuration's listeners, in their order; null where it
  // speaks plain text.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials() const;
  // Of those that speak TLS.
  std::vector<TlsState> states() const;

 private:
  TlsListeners() = default;

  // Constant after Create; null where it speaks plain text.
  std::vector<std::unique_ptr<TlsListener>> listeners_;
  // Of the end of their certificates; null without TLS.
  std::unique_ptr<Housekeeping::Task> reminder_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_TLS_LISTENERS_H_
