#include "client/cli/console/http_front.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/rpc_json.h"
#include "client/cli/console/static_files.h"

namespace timecache::cli {
namespace {

constexpr int kOk = 200;

// Of a connection: no bound, but cpp-httplib names one.
constexpr size_t kMaxKeptRequests = 1'000'000;

constexpr char kApiRpc[] = "/api/rpc/";
constexpr char kJson[] = "application/json";
constexpr char kJsonLines[] = "application/x-ndjson";

const httplib::Headers& SafeHeaders() {
  static const auto* const headers = new httplib::Headers{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; "
       "img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-cache"},
  };
  return *headers;
}

const char* TypeOf(std::string_view path) {
  constexpr std::pair<const char*, const char*> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
  };
  for (const auto& [suffix, type] : kTypes) {
    if (absl::EndsWith(absl::string_view(path.data(), path.size()), suffix)) {
      return type;
    }
  }
  return "text/plain; charset=utf-8";
}

// As google/rpc/code.proto maps them where the page may care; 401 is the
// console's own, which asks for its token.
int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kUnauthenticated:
      return 502;
    default:
      return 400;
  }
}

void AnswerError(int http_status, const absl::Status& error,
                 httplib::Response* response) {
  response->status = http_status;
  response->set_content(ErrorJson(error), kJson);
}

void AnswerError(const absl::Status& error, httplib::Response* response) {
  AnswerError(HttpStatusOf(error), error, response);
}

// The connection whose request this thread handles, and why it is refused.
struct Current {
  HttpConnection* connection;
  std::optional<Refusal> refusal;
};
thread_local Current* current = nullptr;
// Whether the connection that this thread accepts is to be closed at once.
thread_local bool too_many = false;

void AnswerFile(const std::string& path, httplib::Response* response) {
  const auto& files = StaticFiles();
  const auto file = files.find(path == "/" ? "/index.html" : path);
  if (file == files.end()) {
    return AnswerError(absl::NotFoundError("there is no such page"), response);
  }
  response->status = kOk;
  response->set_content(file->second.data(), file->second.size(),
                        TypeOf(file->first));
}

}  // namespace

class HttpFront::Threads : public httplib::ThreadPool {
 public:
  explicit Threads(HttpFront* front)
      : httplib::ThreadPool(kThreads), front_(front) {}

  void enqueue(std::function<void()> serve) override {
    if (front_->admitted_.fetch_add(1) < kThreads + kMaxQueued) {
      httplib::ThreadPool::enqueue(std::move(serve));
      return;
    }
    too_many = true;
    serve();
    too_many = false;
  }

 private:
  HttpFront* const front_;
};

HttpFront::HttpFront(const RequestGuard* guard, const RpcBridge* bridge)
    : guard_(guard),
      bridge_(bridge),
      tls_(nullptr, SSL_CTX_free),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  new_task_queue = [this] {
    accepting_.Notify();
    return new Threads(this);
  };
  // By default two consoles may share a port, and get half of the calls each.
  set_socket_options([](socket_t fd) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  set_default_headers(SafeHeaders());
  set_keep_alive_timeout(HttpConnection::kMaxIdleTime.count() / 1000);
  set_keep_alive_max_count(kMaxKeptRequests);
  set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        Answer(request, &response);
        return HandlerResponse::Handled;
      });
  set_exception_handler([](const httplib::Request& /*request*/,
                           httplib::Response& response,
                           const std::exception_ptr& /*exception*/) {
    AnswerError(absl::InternalError("the console failed"), &response);
  });
}

HttpFront::~HttpFront() {
  stopping_ = true;
  if (accept_thread_.joinable()) {
    stop();
    {
      absl::MutexLock lock(&mu_);
      for (Open& open : open_) open.connection->Cut();
    }
    accept_thread_.join();
    WakeWatch();
    watch_thread_.join();
  }
  close(wake_fd_);
}

absl::Status HttpFront::LoadCertificate(const Options& options) {
  if (options.certificate_file.empty()) return absl::OkStatus();
  tls_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(tls_.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(
          tls_.get(), options.certificate_file.c_str()) == 1 &&
      SSL_CTX_use_PrivateKey_file(tls_.get(), options.key_file.c_str(),
                                  SSL_FILETYPE_PEM) == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      options.certificate_file, " and ", options.key_file,
      " are no certificate and its private key, PEM, that can be read"));
}

int HttpFront::Bind(const std::string& host, int port) {
  errno = 0;
  if (port == 0) return bind_to_any_port(host);
  return bind_to_port(host, port) ? port : -1;
}

absl::Status HttpFront::Start(const Options& options) {
  about_ = options.about;
  if (absl::Status status = LoadCertificate(options); !status.ok()) {
    return status;
  }
  port_ = Bind(options.host, options.port);
  // A kernel without IPv6: all addresses are those of IPv4.
  if (port_ <= 0 && options.host == "::" && errno == EAFNOSUPPORT) {
    port_ = Bind("0.0.0.0", options.port);
  }
  if (port_ <= 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot listen on ", options.host, ":", options.port, ": ",
        errno == EADDRINUSE ? "the port is in use: choose another with --listen"
        : errno != 0        ? strerror(errno)
                            : "there is no such host"));
  }
  // cpp-httplib's backlog is 5.
  ::listen(svr_sock_, kMaxQueued);
  watch_thread_ = std::thread([this] { Watch(); });
  accept_thread_ = std::thread([this] {
    if (!listen_after_bind() && !stopping_) {
      std::fprintf(stderr, "timecachectl: the console stopped: %s\n",
                   strerror(errno));
    }
  });
  accepting_.WaitForNotification();
  return absl::OkStatus();
}

bool HttpFront::process_and_close_socket(socket_t fd) {
  if (!too_many) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    HttpConnection connection(fd, tls_.get(),
                              [this] { return admitted_ > kThreads; });
    std::list<Open>::iterator self;
    {
      absl::MutexLock lock(&mu_);
      self = open_.insert(open_.end(), {&connection, fd});
      WakeWatch();
    }
    if (!stopping_ && connection.Handshake()) Serve(connection);
    absl::MutexLock lock(&mu_);
    open_.erase(self);
    // While it polls the socket, close does not close it.
    WakeWatch();
  }
  close(fd);
  admitted_.fetch_sub(1);
  return true;
}

void HttpFront::Serve(HttpConnection& connection) {
  Current now = {&connection, std::nullopt};
  current = &now;
  while (!stopping_ && connection.AwaitRequest()) {
    bool closed = false;
    bool parsed = false;
    const bool written =
        process_request(connection, /*close_connection=*/false, closed,
                        [&](httplib::Request& request) {
                          parsed = true;
                          // Responses are sent whole and unencoded: what is secret in them must
                          // not show in their length.
                          request.ranges.clear();
                          request.headers.erase("Accept-Encoding");
                          now.refusal = guard_->Check(request);
                          if (!now.refusal) return;
                          // Its body is not read.
                          request.headers.erase("Expect");
                          request.headers.erase("Connection");
                          request.headers.emplace("Connection", "close");
                        });
    if (!written || closed || !parsed || now.refusal) break;
  }
  current = nullptr;
  connection.Linger();
}

void HttpFront::WakeWatch() const {
  const uint64_t one = 1;
  // Full, it is awake.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
}

void HttpFront::Watch() {
  std::vector<pollfd> fds;
  while (!stopping_) {
    fds.assign(1, {wake_fd_, POLLIN, 0});
    {
      absl::MutexLock lock(&mu_);
      for (const Open& open : open_) {
        if (!open.gone) fds.push_back({open.fd, POLLRDHUP, 0});
      }
    }
    poll(fds.data(), fds.size(), -1);
    absl::MutexLock lock(&mu_);
    uint64_t woken = 0;
    // Then a descriptor may be that of another connection by now.
    if (read(wake_fd_, &woken, sizeof(woken)) > 0) continue;
    for (const pollfd& each : fds) {
      if ((each.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) continue;
      for (Open& open : open_) {
        if (open.fd != each.fd) continue;
        open.gone = true;
        open.connection->gone().request_stop();
      }
    }
  }
}

void HttpFront::Answer(const httplib::Request& request,
                       httplib::Response* response) {
  current->connection->Allow(kMaxTransferTime, kMaxBodyBytes);
  if (current->refusal) {
    AnswerError(current->refusal->http_status, current->refusal->error,
                response);
  } else if (absl::StartsWith(request.path, kApiRpc) &&
             request.method == "POST") {
    AnswerRpc(request, response);
  } else if (request.path == "/api/console" && request.method != "POST") {
    response->status = kOk;
    response->set_content(about_, kJson);
  } else {
    AnswerFile(request.path, response);
  }
}

void HttpFront::AnswerRpc(const httplib::Request& request,
                          httplib::Response* response) {
  HttpConnection& connection = *current->connection;
  std::string body;
  const auto size = request.get_header_value<uint64_t>("Content-Length");
  if (!connection.ReadBody(size, &body)) {
    connection.Cut();
    return AnswerError(absl::CancelledError("the body is short"), response);
  }
  absl::StatusOr<RpcBridge::Rpc> rpc =
      bridge_->Parse(request.path.substr(sizeof(kApiRpc) - 1), body);
  if (!rpc.ok()) return AnswerError(rpc.status(), response);
  if (rpc->method->server_streaming()) {
    return AnswerStream(*std::move(rpc), response);
  }
  const absl::StatusOr<std::string> json =
      bridge_->Call(*rpc, connection.gone().get_token());
  connection.Allow(kMaxTransferTime, 0);
  if (!json.ok()) return AnswerError(json.status(), response);
  response->status = kOk;
  response->set_content(*json, kJson);
}

void HttpFront::AnswerStream(RpcBridge::Rpc rpc, httplib::Response* response) {
  if (streams_.fetch_add(1) >= kMaxStreams) {
    streams_.fetch_sub(1);
    // Not UNAVAILABLE: the server is there.
    return AnswerError(
        503,
        absl::ResourceExhaustedError(absl::StrCat(
            "the console has ", kMaxStreams,
            " streams, its most: close other tabs of it, or pause them")),
        response);
  }
  response->status = kOk;
  response->set_chunked_content_provider(
      kJsonLines,
      [this, rpc = std::make_shared<RpcBridge::Rpc>(std::move(rpc)),
       &connection = *current->connection](size_t /*offset*/,
                                           httplib::DataSink& sink) {
        bool written = true;
        bridge_->Stream(*rpc, connection.gone().get_token(),
                        [&](std::string_view lines) {
                          while (written && !lines.empty()) {
                            const auto chunk = lines.substr(0, kMaxChunk);
                            connection.Allow(kMaxTransferTime, 0);
                            written = sink.write(chunk.data(), chunk.size());
                            lines.remove_prefix(chunk.size());
                          }
                          return written;
                        });
        if (written) sink.done();
        return written;
      },
      [this](bool /*success*/) { streams_.fetch_sub(1); });
}

}  // namespace timecache::cli
