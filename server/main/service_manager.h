// Notifications to systemd: starting, started, reloading, stopping.

#ifndef TIMECACHED_SERVER_MAIN_SERVICE_MANAGER_H_
#define TIMECACHED_SERVER_MAIN_SERVICE_MANAGER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace timecache::server {

// Sends the messages of sd_notify(3), for a unit with Type=notify. Without a
// service manager each call does nothing, and failures to send are ignored: the
// manager then relies on its own time-outs.
//
// Thread-safe. A call costs a datagram to a local socket and does not block.
//
// There is no WATCHDOG=1: it would only show that this process has a running
// thread, not that calls are answered. Health and /healthz show that.
class ServiceManager {
 public:
  // `notify_socket`: $NOTIFY_SOCKET, the path of a unix socket, or @ and its
  // name in the abstract namespace. Empty: there is no service manager.
  explicit ServiceManager(std::string notify_socket)
      : socket_(std::move(notify_socket)) {}
  // The one that started this process, if one did.
  static ServiceManager FromEnvironment();

  // Starting, with progress: the next call comes within `at_most`, however long
  // the start takes in all.
  void Starting(absl::string_view status, absl::Duration at_most) const;
  // Serving. systemctl status shows `status`.
  void Ready(absl::string_view status) const;
  // Reloading its configuration, until Ready.
  void Reloading() const;
  // Stopping, which may take as long as `at_most`.
  void Stopping(absl::Duration at_most) const;

 private:
  void Send(absl::string_view message) const;

  const std::string socket_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SERVICE_MANAGER_H_
