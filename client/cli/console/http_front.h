// The console's web server.

#ifndef TIMECACHED_CLIENT_CLI_CONSOLE_HTTP_FRONT_H_
#define TIMECACHED_CLIENT_CLI_CONSOLE_HTTP_FRONT_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/cli/console/http_connection.h"
#include "client/cli/console/request_guard.h"
#include "client/cli/console/rpc_bridge.h"
#include "httplib.h"
#include "openssl/ssl.h"

namespace timecache::cli {

// Serves the page, and the calls that it makes:
//
//   GET  /...                     the page's files
//   GET  /api/console             what the page is to know of the console
//   POST /api/rpc/SERVICE/METHOD  an RPC: see RpcBridge
//
// Of cpp-httplib it uses the parser of requests and the threads: connections,
// bodies and keep-alive are its own, as 0.11 bounds none of them. Each
// connection has a thread while it is open; one without a request gives it up
// if others wait. Thread-safe. Costs kThreads threads that sleep, and one that
// notices when browsers leave.
class HttpFront final : private httplib::Server {
 public:
  static constexpr int kMaxStreams = 24;
  // Streams leave half of them to calls that end.
  static constexpr int kThreads = 48;
  // Connections that wait for a thread; one more is closed at once.
  static constexpr int kMaxQueued = 256;
  // For the body of a request, for a response, and for each kMaxChunk bytes of a
  // stream.
  static constexpr std::chrono::milliseconds kMaxTransferTime{30'000};
  static constexpr size_t kMaxChunk = 64 << 10;

  struct Options {
    std::string host;
    int port;
    // Both or none: PEM.
    std::string certificate_file;
    std::string key_file;
    // The response to /api/console: JSON.
    std::string about;
  };

  // Neither is owned.
  HttpFront(const RequestGuard* guard, const RpcBridge* bridge);
  ~HttpFront() override;

  // Listens, and serves until it is destroyed. FAILED_PRECONDITION that says why it
  // cannot; INVALID_ARGUMENT for files that are no certificate and its key.
  // Called once.
  absl::Status Start(const Options& options);

  // The one that was taken for port 0.
  int port() const { return port_; }

 private:
  class Threads;
  struct Open {
    HttpConnection* connection;
    int fd;
    bool gone = false;
  };

  absl::Status LoadCertificate(const Options& options);
  // The port, or -1 with errno.
  int Bind(const std::string& host, int port);
  bool process_and_close_socket(socket_t fd) override;
  void Serve(HttpConnection& connection);
  // Ends the calls of browsers that left.
  void Watch();
  void WakeWatch() const;

  void Answer(const httplib::Request& request, httplib::Response* response);
  void AnswerRpc(const httplib::Request& request, httplib::Response* response);
  void AnswerStream(RpcBridge::Rpc rpc, httplib::Response* response);

  const RequestGuard* const guard_;
  const RpcBridge* const bridge_;
  std::string about_;
  int port_ = 0;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> tls_;
  const int wake_fd_;
  std::atomic<bool> stopping_{false};
  // Connections accepted and not yet closed.
  std::atomic<int> admitted_{0};
  std::atomic<int> streams_{0};

  absl::Mutex mu_;
  std::list<Open> open_ ABSL_GUARDED_BY(mu_);

  absl::Notification accepting_;
  std::thread accept_thread_;
  std::thread watch_thread_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONSOLE_HTTP_FRONT_H_
