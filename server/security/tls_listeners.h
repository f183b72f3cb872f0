#ifndef TIMECACHED_SERVER_SECURITY_TLS_LISTENERS_H_
#define TIMECACHED_SERVER_SECURITY_TLS_LISTENERS_H_

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/common/steady_cond_var.h"
#include "server/security/tls_listener.h"

namespace timecache {

// The TLS of all listeners of a server, and a reminder of the end of their
// certificates. Thread-safe. Costs a thread that sleeps, where there is TLS.
class TlsListeners {
 public:
  // How often the ends are looked at.
  static constexpr std::chrono::hours kReminderInterval{1};

  // Errors as TlsListener::Create, of the first listener that has one. `watch`
  // and this object must outlive the grpc::Server.
  static absl::StatusOr<std::unique_ptr<TlsListeners>> Create(
      const v1::ServerConfig& config, FileWatch* watch);
  ~TlsListeners();
  TlsListeners(const TlsListeners&) = delete;
  TlsListeners& operator=(const TlsListeners&) = delete;

  // For each of the configuration's listeners, in their order; null where it
  // speaks plain text.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials() const;
  // Of those that speak TLS.
  std::vector<TlsState> states() const;

 private:
  TlsListeners() = default;
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  // Constant after Create; null where it speaks plain text.
  std::vector<std::unique_ptr<TlsListener>> listeners_;

  absl::Mutex mu_;
  SteadyCondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread reminder_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SECURITY_TLS_LISTENERS_H_
