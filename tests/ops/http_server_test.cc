#include "server/ops/http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kPatienceMs = 60'000;

// A connection to a port of this machine.
class Peer {
 public:
  explicit Peer(const std::string& address) {
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void Send(const std::string& bytes) const {
    send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // All that comes until the other side closes.
  std::string ReadToEnd() const {
    std::string all;
    char buffer[4096];
    for (;;) {
      pollfd readable = {fd_, POLLIN, 0};
      if (poll(&readable, 1, kPatienceMs) != 1) {
        ADD_FAILURE() << "the connection stays open";
        return all;
      }
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
      if (got <= 0) return all;
      all.append(buffer, static_cast<size_t>(got));
    }
  }

  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

using Peers = std::vector<std::unique_ptr<Peer>>;

// Takes out the one that is answered first.
std::unique_ptr<Peer> TakeFirstAnswered(Peers* peers) {
  std::vector<pollfd> readable;
  for (const auto& peer : *peers) readable.push_back({peer->fd(), POLLIN, 0});
  EXPECT_GT(poll(readable.data(), readable.size(), kPatienceMs), 0);
  size_t i = 0;
  while (i + 1 < readable.size() && readable[i].revents == 0) ++i;
  std::unique_ptr<Peer> peer = std::move((*peers)[i]);
  peers->erase(peers->begin() + static_cast<int>(i));
  return peer;
}

class HttpServerTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& request) const {
    const Peer peer(server_.address());
    peer.Send(request);
    return peer.ReadToEnd();
  }
  std::string Get(const std::string& path) const {
    return Ask(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  void Start() {
    const absl::Status status = server_.Start("127.0.0.1:0");
    ASSERT_TRUE(status.ok()) << status;
  }

  Readiness readiness_;
  std::string metrics_ = "a_total 1\n";
  HttpServer server_{&readiness_, [this] { return metrics_; }};
};

TEST_F(HttpServerTest, AnswersMetrics) {
  Start();
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("Content-Type: text/plain; version=0.0.4"),
                    HasSubstr("Connection: close\r\n"),
                    EndsWith("\r\n\r\na_total 1\n")));
  EXPECT_THAT(Get("/metrics?name=a"), EndsWith("a_total 1\n"));
}

TEST_F(HttpServerTest, IsHealthyAsLongAsItAnswers) {
  Start();
  EXPECT_THAT(Get("/healthz"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\nok\n")));
  readiness_.Set(Readiness::State::kDraining);
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, IsReadyWhileItServes) {
  Start();
  EXPECT_THAT(Get("/readyz"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("starting\n")));
  readiness_.SetRecovered(40);
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 503 "),
                                    EndsWith("starting: recovering, 40 %\n")));
  readiness_.Set(Readiness::State::kStandby);
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 503 "),
                                    EndsWith("standby: no node owns\n")));
  readiness_.SetOwner("cache-1");
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 503 "),
                                    EndsWith("standby: cache-1 owns\n")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
  readiness_.Set(Readiness::State::kServing);
  EXPECT_THAT(Get("/readyz"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("ok\n")));
  readiness_.Set(Readiness::State::kDraining);
  EXPECT_THAT(Get("/readyz"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("draining\n")));
}

TEST_F(HttpServerTest, HeadIsGetWithoutTheBody) {
  Start();
  EXPECT_THAT(Ask("HEAD /metrics HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "),
                    HasSubstr("Content-Length: 10\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, NothingElseIsThere) {
  Start();
  for (const char* path : {"/", "/metrics/", "/healthz/x", "/../etc/passwd"}) {
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 404 ")) << path;
  }
}

TEST_F(HttpServerTest, OtherMethodsAreRefusedBeforeTheirBody) {
  Start();
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    EXPECT_THAT(
        Ask(absl::StrCat(method,
                         " /metrics HTTP/1.1\r\n"
                         "Content-Length: 1000000000\r\n\r\n")),
        AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")))
        << method;
  }
}

TEST_F(HttpServerTest, ARequestThatIsTooLongIsNotRead) {
  Start();
  const std::string line = "X: " + std::string(500, 'x') + "\r\n";
  std::string request = "GET /metrics HTTP/1.1\r\n";
  while (request.size() <= HttpServer::kMaxRequestBytes) request += line;
  EXPECT_THAT(Ask(request + "\r\n"), Not(HasSubstr("a_total")));
  EXPECT_THAT(Get("/metrics"), HasSubstr("a_total"));
}

TEST_F(HttpServerTest, WhatIsNoRequestIsNotAnswered) {
  Start();
  const std::string nothing = "\r\n\r\n";
  const std::string zeros(512, '\0');
  // The beginning of HTTP/2, as a gRPC client sends it.
  const std::string http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (const std::string& request :
       {nothing, zeros + "\r\n\r\n", http2, std::string("GET\r\n\r\n")}) {
    EXPECT_THAT(Ask(request), Not(HasSubstr(" 200 "))) << request;
  }
  EXPECT_THAT(Get("/healthz"), EndsWith("ok\n"));
}

TEST_F(HttpServerTest, RangesDoNotMultiplyTheAnswer) {
  metrics_.assign(1 << 20, 'x');
  Start();
  std::string ranges = "bytes=0-";
  for (int i = 0; i < 500; ++i) ranges += ",0-";
  const std::string answer = Ask("GET /metrics HTTP/1.1\r\nRange: " + ranges +
                                 "\r\nAccept-Encoding: br, gzip\r\n\r\n");
  EXPECT_THAT(answer.substr(0, 15), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_LT(answer.size(), metrics_.size() + 1000);
  EXPECT_GT(answer.size(), metrics_.size());
}

TEST_F(HttpServerTest, SlowSendersDoNotKeepAProbeFromItsAnswer) {
  Start();
  std::vector<std::unique_ptr<Peer>> slow;
  for (int i = 0; i < 4 * HttpServer::kThreads; ++i) {
    slow.push_back(std::make_unique<Peer>(server_.address()));
    slow.back()->Send("GET /metr");
  }
  for (int i = 0; i < 2 * HttpServer::kThreads; ++i) {
    EXPECT_THAT(Get("/healthz"), EndsWith("ok\n"));
  }
  // It has been cut off.
  EXPECT_EQ(slow.front()->ReadToEnd(), "");
}

TEST_F(HttpServerTest, SlowReadersDoNotKeepAProbeFromItsAnswer) {
  // More than sockets hold.
  metrics_.assign(32 << 20, 'x');
  Start();
  std::vector<std::unique_ptr<Peer>> slow;
  for (int i = 0; i < HttpServer::kThreads; ++i) {
    slow.push_back(std::make_unique<Peer>(server_.address()));
    slow.back()->Send("GET /metrics HTTP/1.1\r\n\r\n");
  }
  for (int i = 0; i < HttpServer::kThreads; ++i) {
    EXPECT_THAT(Get("/healthz"), EndsWith("ok\n"));
  }
}

class HttpScrapeTest : public HttpServerTest {
 protected:
  // The page of this number waits until go_on_.
  explicit HttpScrapeTest(int slow = 1) : slow_(slow) {
    EXPECT_TRUE(scraped_.Start("127.0.0.1:0").ok());
  }
  ~HttpScrapeTest() override {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
  }

  std::unique_ptr<Peer> Scrape() {
    auto peer = std::make_unique<Peer>(scraped_.address());
    peer->Send("GET /metrics HTTP/1.1\r\n\r\n");
    return peer;
  }
  // One more than may wait.
  Peers ScrapeTooOften() {
    Peers peers;
    for (int i = 0; i <= HttpServer::kMaxScrapes; ++i) {
      peers.push_back(Scrape());
    }
    return peers;
  }

  const int slow_;
  int made_ = 0;
  absl::Notification go_on_;
  HttpServer scraped_{&readiness_, [this] {
                        if (++made_ == slow_) go_on_.WaitForNotification();
                        return absl::StrCat("page ", made_, "\n");
                      }};
};

TEST_F(HttpScrapeTest, TooManyAtATimeAreRefusedBeforeTheFirstPage) {
  Peers peers = ScrapeTooOften();
  EXPECT_THAT(TakeFirstAnswered(&peers)->ReadToEnd(),
              StartsWith("HTTP/1.1 503 "));
  const Peer probe(scraped_.address());
  probe.Send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(probe.ReadToEnd(), EndsWith("ok\n"));
  go_on_.Notify();
  for (const auto& peer : peers) {
    EXPECT_THAT(peer->ReadToEnd(), HasSubstr("page "));
  }
}

class HttpSecondScrapeTest : public HttpScrapeTest {
 protected:
  HttpSecondScrapeTest() : HttpScrapeTest(2) {}
};

TEST_F(HttpSecondScrapeTest, TooManyAtATimeGetTheLastPage) {
  EXPECT_THAT(Scrape()->ReadToEnd(), EndsWith("page 1\n"));
  Peers peers = ScrapeTooOften();
  EXPECT_THAT(TakeFirstAnswered(&peers)->ReadToEnd(), EndsWith("page 1\n"));
  go_on_.Notify();
  for (const auto& peer : peers) {
    EXPECT_THAT(peer->ReadToEnd(), Not(EndsWith("page 1\n")));
  }
}

TEST_F(HttpServerTest, EndsWithConnectionsOpen) {
  auto server =
      std::make_unique<HttpServer>(&readiness_, [] { return std::string(); });
  ASSERT_TRUE(server->Start("127.0.0.1:0").ok());
  const Peer silent(server->address());
  const Peer slow(server->address());
  slow.Send("GET /");
  server.reset();
  EXPECT_EQ(slow.ReadToEnd(), "");
  EXPECT_EQ(silent.ReadToEnd(), "");
}

TEST_F(HttpServerTest, APortInUseIsRefusedWithTheReason) {
  Start();
  HttpServer second(&readiness_, [] { return std::string(); });
  const absl::Status status = second.Start(server_.address());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(server_.address()), HasSubstr("Address already in use")));
}

TEST_F(HttpServerTest, AnAddressThatIsNoneIsRefused) {
  EXPECT_EQ(server_.Start("no port").code(),
            absl::StatusCode::kInvalidArgument);
  HttpServer second(&readiness_, [] { return std::string(); });
  EXPECT_EQ(second.Start("192.0.2.1:0").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace timecache::server
