// The HTTP port: metrics and probes, for monitoring.

#ifndef TIMECACHED_SERVER_OPS_HTTP_SERVER_H_
#define TIMECACHED_SERVER_OPS_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/ops/readiness.h"

namespace timecache::server {

// Answers GET and HEAD, HTTP/1.1 in plain text, one request a connection:
//
//   /metrics  what `metrics` writes, made no more often than SharedPage says:
//             up to kMaxScrapes at a time wait for it, and others get the last
//             one, or 503 before the first
//   /healthz  200 "ok", while the process runs
//   /readyz   200 "ok" while it serves; 503 "starting", "starting: recovering,
//             40 %" while the journal is read, or "draining"
//
// Any client that reaches the port may read it. It exposes numbers and the
// names of namespaces, consumer groups and methods: no keys, no values, and
// nothing about callers.
//
// A request is at most kMaxRequestBytes, and a connection ends after
// kMaxConnectionMs; after kMaxCrowdedMs, if it waits for its peer while another
// connection waits for a thread: a slow client does not block a probe.
//
// Start and Stop are called once; otherwise thread-safe. Costs kThreads + 1
// threads that sleep.
class HttpServer {
 public:
  static constexpr int kThreads = 4;
  // Connections that wait for a thread; one more is closed at once.
  static constexpr int kMaxQueued = 64;
  static constexpr int kMaxScrapes = 2;
  static constexpr int kMaxRequestBytes = 8 << 10;
  static constexpr int kMaxConnectionMs = 10'000;
  static constexpr int kMaxCrowdedMs = 100;

  // `readiness` is not owned and must outlive the server. `metrics` returns
  // Prometheus' text format; called by one thread at a time.
  HttpServer(const Readiness* readiness, std::function<std::string()> metrics);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens on `address`, a valid host:port; "localhost" is 127.0.0.1.
  // UNAVAILABLE that says why not.
  absl::Status Start(const std::string& address);

  // Ends all connections; `metrics` is not called any more.
  void Stop();

  // Where it listens, with the port that was taken for port 0.
  const std::string& address() const { return address_; }

 private:
  class Connections;

  std::unique_ptr<Connections> connections_;
  std::string address_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_HTTP_SERVER_H_
