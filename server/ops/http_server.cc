#include "server/ops/http_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "httplib.h"
#include "server/ops/log.h"
#include "server/ops/shared_page.h"

namespace timecache::server {
namespace {

constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kUnavailable = 503;

constexpr char kText[] = "text/plain; charset=utf-8";
// Prometheus' text format.
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

// cpp-httplib's own stream has a time-out for each read and write, and may so
// be kept busy forever by one byte at a time. This one ends when its time is up
// or so many bytes have been read. Used by one thread, but for Cut. Does not
// own its socket.
class HttpStream final : public httplib::Stream {
 public:
  struct Limits {
    size_t max_read_bytes;
    // From the beginning to the end.
    std::chrono::milliseconds max_time;
    // The same while `crowded` says that other connections wait for the thread.
    std::chrono::milliseconds max_time_crowded;
    std::function<bool()> crowded;
  };

  // `limits` is not owned.
  HttpStream(int fd, const Limits* limits)
      : fd_(fd), limits_(*limits), left_(limits->max_read_bytes) {}

  // Ends it: waiting calls return. Thread-safe while the socket is open.
  void Cut() { shutdown(fd_, SHUT_RDWR); }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  // Never called.
  void get_remote_ip_and_port(std::string& /*ip*/,
                              int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/,
                             int& /*port*/) const override {}
  socket_t socket() const override { return fd_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Waits for it; false once the time is up.
  bool Wait(short events);  // NOLINT(runtime/int): poll's type

  const int fd_;
  const Limits& limits_;
  const Clock::time_point start_ = Clock::now();
  size_t left_;
  std::array<char, 1024> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

bool HttpStream::Wait(short events) {  // NOLINT(runtime/int)
  for (;;) {
    const auto age =
        std::chrono::floor<std::chrono::milliseconds>(Clock::now() - start_);
    if (age >= limits_.max_time) return false;
    if (age >= limits_.max_time_crowded && limits_.crowded()) return false;
    // Then waiting connections are checked again.
    const auto next =
        age < limits_.max_time_crowded
            ? limits_.max_time_crowded
            : std::min(age + limits_.max_time_crowded, limits_.max_time);
    pollfd poll_fd = {fd_, events, 0};
    const int ready = poll(&poll_fd, 1, static_cast<int>((next - age).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

ssize_t HttpStream::read(char* to, size_t size) {
  while (begin_ == end_) {
    const ssize_t got = recv(fd_, buffer_.data(),
                             std::min(buffer_.size(), left_), MSG_DONTWAIT);
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      left_ -= end_;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
               !Wait(POLLIN)) {
      return got == 0 ? 0 : -1;
    }
  }
  const size_t count = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t HttpStream::write(const char* from, size_t size) {
  for (;;) {
    const ssize_t sent = send(fd_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if ((errno != EAGAIN && errno != EINTR) || !Wait(POLLOUT)) return -1;
  }
}

// Whether the connection that this thread accepts is to be closed at once.
thread_local bool refuse = false;

}  // namespace

// cpp-httplib's server, with bounds that it lacks.
class HttpServer::Connections : public httplib::Server {
 public:
  Connections(const Readiness* readiness, std::function<std::string()> metrics)
      : readiness_(readiness), metrics_(std::move(metrics)) {
    new_task_queue = [this] {
      accepting_.Notify();
      return new Threads(this);
    };
    // By default two servers may share a port, and get half of the calls each.
    set_socket_options([](socket_t fd) {
      const int on = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    // Before a body is read: no path accepts one.
    set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          Answer(request, &response);
          return HandlerResponse::Handled;
        });
  }

  ~Connections() override {
    if (!accept_thread_.joinable()) return;
    stopping_ = true;
    metrics_.Stop();
    stop();
    {
      absl::MutexLock lock(&mu_);
      for (HttpStream* stream : open_) stream->Cut();
    }
    accept_thread_.join();
  }

  // Returns the port, or -1 with errno.
  int Bind(const std::string& host, int port) {
    errno = 0;
    const int any = port == 0 ? bind_to_any_port(host) : port;
    const bool bound = port == 0 ? any > 0 : bind_to_port(host, port);
    // A kernel without IPv6: all addresses are those of IPv4.
    if (!bound && host == "::" && errno == EAFNOSUPPORT) {
      return Bind("0.0.0.0", port);
    }
    if (!bound) return -1;
    // cpp-httplib's backlog is 5.
    ::listen(svr_sock_, kMaxQueued);
    return any;
  }

  void Serve() {
    accept_thread_ = std::thread([this] {
      if (!listen_after_bind() && !stopping_) {
        Log(LogLevel::kError, "http_stopped", {{"error", strerror(errno)}});
      }
    });
    accepting_.WaitForNotification();
  }

 private:
  class Threads : public httplib::ThreadPool {
   public:
    explicit Threads(Connections* connections)
        : httplib::ThreadPool(kThreads), connections_(connections) {}

    void enqueue(std::function<void()> serve) override {
      if (connections_->Admit()) {
        httplib::ThreadPool::enqueue(std::move(serve));
        return;
      }
      refuse = true;
      serve();
      refuse = false;
    }

   private:
    Connections* const connections_;
  };

  // Counts an accepted connection; false if it is beyond the limit.
  bool Admit() {
    if (admitted_.fetch_add(1) < kThreads + kMaxQueued) return true;
    admitted_.fetch_sub(1);
    return false;
  }

  bool process_and_close_socket(socket_t fd) override {
    if (refuse) {
      close(fd);
      return false;
    }
    HttpStream stream(fd, &limits_);
    std::list<HttpStream*>::iterator self;
    {
      absl::MutexLock lock(&mu_);
      self = open_.insert(open_.end(), &stream);
    }
    bool closed = false;
    const bool done =
        !stopping_ &&
        process_request(stream, /*close_connection=*/true, closed,
                        [](httplib::Request& request) {
                          // Responses are sent whole and unencoded, which adds
                          // no cost.
                          request.ranges.clear();
                          request.headers.erase("Accept-Encoding");
                          request.headers.erase("Expect");
                        });
    {
      absl::MutexLock lock(&mu_);
      open_.erase(self);
    }
    admitted_.fetch_sub(1);
    shutdown(fd, SHUT_RDWR);
    close(fd);
    return done;
  }

  void Answer(const httplib::Request& request, httplib::Response* response) {
    const auto answer = [response](int status, absl::string_view text) {
      response->status = status;
      response->set_content(absl::StrCat(text, "\n"), kText);
    };
    if (request.method != "GET" && request.method != "HEAD") {
      response->set_header("Allow", "GET, HEAD");
      answer(kMethodNotAllowed, "only GET and HEAD");
    } else if (request.path == "/metrics") {
      AnswerMetrics(response);
    } else if (request.path == "/healthz") {
      answer(kOk, "ok");
    } else if (request.path == "/readyz") {
      switch (readiness_->state()) {
        case Readiness::State::kStarting:
          return answer(kUnavailable, StartingText());
        case Readiness::State::kStandby:
          return answer(kUnavailable, StandbyText());
        case Readiness::State::kServing:
          return answer(kOk, "ok");
        case Readiness::State::kDraining:
          return answer(kUnavailable, "draining");
      }
    } else {
      answer(kNotFound, "there are /metrics, /healthz and /readyz");
    }
  }

  std::string StartingText() const {
    const int recovered = readiness_->recovered();
    if (recovered < 0) return "starting";
    return absl::StrCat("starting: recovering, ", recovered, " %");
  }

  std::string StandbyText() const {
    const std::string owner = readiness_->owner();
    if (owner.empty()) return "standby: no node owns";
    return absl::StrCat("standby: ", owner, " owns");
  }

  // Requests that may wait get a current page, the others the last one.
  void AnswerMetrics(httplib::Response* response) {
    const bool may_wait = scrapes_.fetch_add(1) < kMaxScrapes;
    const SharedPage::Page page = may_wait ? metrics_.Next() : metrics_.Last();
    scrapes_.fetch_sub(1);
    if (page != nullptr) {
      response->status = kOk;
      // Not copied: with thousands of namespaces it has megabytes.
      response->set_content_provider(
          page->size(), kMetricsText,
          [page](size_t from, size_t size, httplib::DataSink& sink) {
            return sink.write(page->data() + from, size);
          });
    } else {
      response->status = kUnavailable;
      response->set_content("too many scrapes at a time\n", kText);
    }
  }

  const Readiness* const readiness_;
  SharedPage metrics_;
  std::thread accept_thread_;
  absl::Notification accepting_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> scrapes_{0};
  // Connections accepted and not yet closed.
  std::atomic<int> admitted_{0};
  const HttpStream::Limits limits_ = {
      kMaxRequestBytes, std::chrono::milliseconds(kMaxConnectionMs),
      std::chrono::milliseconds(kMaxCrowdedMs),
      [this] { return admitted_ > kThreads; }};

  absl::Mutex mu_;
  // Those that have a thread.
  std::list<HttpStream*> open_ ABSL_GUARDED_BY(mu_);
};

HttpServer::HttpServer(const Readiness* readiness,
                       std::function<std::string()> metrics)
    : connections_(
          std::make_unique<Connections>(readiness, std::move(metrics))) {}

HttpServer::~HttpServer() = default;

void HttpServer::Stop() { connections_.reset(); }

absl::Status HttpServer::Start(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  // Regardless of /etc/hosts, and without it: RFC 6761.
  if (host == "localhost") host = "127.0.0.1";
  int port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return absl::InvalidArgumentError(
        absl::StrCat("http.address: not host:port: ", address));
  }
  port = connections_->Bind(host, port);
  if (port <= 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address,
        " for HTTP: ", errno != 0 ? strerror(errno) : "there is no such host"));
  }
  address_ = absl::StrCat(address.substr(0, colon), ":", port);
  connections_->Serve();
  return absl::OkStatus();
}

}  // namespace timecache::server
