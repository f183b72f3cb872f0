// Getting connected: in spite of what gRPC 1.51 makes of it, and soon.
#include "client/cpp/src/rpc/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tests/client/cpp/misread_connect.h"
#include "tests/client/fake_service.h"
#include "timecache/client.h"
#include "timecache/pipeline.h"
#include "timecache/status.h"
#include "timecache/watcher.h"

namespace timecache {
namespace {

// Longer than anything takes that a test waits for, on any machine.
constexpr absl::Duration kPatience = absl::Seconds(60);

TEST(ConnectionTest, CallIsMadeAlthoughTheFirstConnectIsMisread) {
  FakeService service;
  MisreadConnects(1);
  const auto size = service.MakeClient().Size();
  EXPECT_TRUE(size.ok()) << size.status();
}

TEST(ConnectionTest, WatchBeginsAlthoughTheFirstConnectIsMisread) {
  FakeService service;
  service.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .hang = true});
  MisreadConnects(1);
  Watcher watcher(service.MakeClient());
  const auto batch = watcher.Next(kPatience);
  EXPECT_TRUE(batch.ok()) << batch.status();
}

TEST(ConnectionTest, PipelineBeginsAlthoughTheFirstConnectIsMisread) {
  FakeService service;
  MisreadConnects(1);
  Pipeline pipeline(service.MakeClient());
  absl::Status put;
  ASSERT_TRUE(
      pipeline
          .Add(Operation::Put("key", "value"),
               [&](const OperationResult& result) { put = result.status; })
          .ok());
  EXPECT_TRUE(pipeline.Close().ok());
  EXPECT_TRUE(put.ok()) << put;
}

class InProcessService final : public v1::TimeCacheService::Service {
 public:
  InProcessService() {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status Size(grpc::ServerContext*, const v1::SizeRequest*,
                    v1::SizeResponse* response) override {
    response->set_entries(7);
    return grpc::Status::OK;
  }
  std::shared_ptr<grpc::Channel> channel() {
    return server_->InProcessChannel(grpc::ChannelArguments());
  }

 private:
  std::unique_ptr<grpc::Server> server_;
};

TEST(ConnectionTest, ChannelInProcessNeedsNoConnection) {
  InProcessService service;
  const Client client(service.channel());
  for (int i = 0; i < 2; ++i) {
    const auto size = client.Size();
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(size->entries, 7u);
  }
}

// A port of 127.0.0.1 that takes connections and closes them at once, and
// counts them.
class ClosedDoor {
 public:
  ClosedDoor() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, length), 0);
    EXPECT_EQ(listen(listener_, 1'000), 0);
    EXPECT_EQ(getsockname(listener_, any, &length), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] {
      for (int fd; (fd = accept(listener_, nullptr, nullptr)) >= 0;) {
        ++connects_;
        close(fd);
      }
    });
  }
  ~ClosedDoor() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  const std::string& address() const { return address_; }
  int connects() const { return connects_; }

 private:
  int listener_ = -1;
  std::string address_;
  std::atomic<int> connects_{0};
  std::thread thread_;
};

TEST(ConnectionTest, CallsToAServerThatIsAwayDoNotEachConnect) {
  ClosedDoor door;
  const Client client(door.address(), {.timeout = kPatience});
  const SteadyTime begin = SteadyNow();
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(client.Size().status()));
  }
  // A call that waits makes gRPC connect at once, when that failed, and after
  // pauses of at least 80 ms; the next one waits 50 ms after its end at the
  // soonest.
  const absl::Duration elapsed = absl::FromChrono(SteadyNow() - begin);
  const double waits =
      1 +
      elapsed / (kConnectPatience + absl::Milliseconds(kMinConnectPauseMs) / 2);
  EXPECT_LE(door.connects(), 5 * waits);
  EXPECT_LT(5 * waits, 200) << "the machine is too slow for this test";
}

// Without a thread that polls, gRPC takes five seconds to notice a connection.
TEST(ConnectionTest, CallsFindAServerThatIsBackWithinAboutASecond) {
  auto service = std::make_unique<FakeService>();
  const std::string address = service->address();
  const Client client(address, {.timeout = kPatience});
  ASSERT_TRUE(client.Size().ok());
  // Of several, as a machine that is busy may make each of them long, but the five
  // seconds are none's to avoid.
  absl::Duration shortest = absl::InfiniteDuration();
  for (int i = 0; i < 5 && shortest > absl::Seconds(3); ++i) {
    service.reset();
    for (int failures = 0; failures < 3;) failures += !client.Size().ok();
    service = std::make_unique<FakeService>(address);
    // A pause of one second at most, then a wait; not several of them.
    const SteadyTime begin = SteadyNow();
    while (!client.Size().ok()) std::this_thread::yield();
    shortest = std::min(shortest, absl::FromChrono(SteadyNow() - begin));
  }
  EXPECT_LT(shortest, absl::Seconds(3));
}

TEST(ConnectionTest, EachAttemptOfAWatchFindsAServerThatIsBack) {
  auto service = std::make_unique<FakeService>();
  const std::string address = service->address();
  service->AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .hang = true});
  int attempts = 0;
  int attempts_since = 0;
  bool is_back = false;
  Watcher watcher(
      Client(address),
      {.min_pause = absl::Milliseconds(1),
       .max_pause = absl::Milliseconds(4),
       .on_break = [&](const absl::Status&) {
         if (is_back) ++attempts_since;
         // By now gRPC would pause for longer than the watch does.
         if (++attempts != 5) return;
         service = std::make_unique<FakeService>(address);
         service->AddWatch(
             {.messages = {MakeBatch("default", "", 0, 20)}, .hang = true});
         is_back = true;
       }});
  ASSERT_TRUE(watcher.Next(kPatience).ok());
  service.reset();
  const auto batch = watcher.Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(attempts_since, 0);
}

}  // namespace
}  // namespace timecache
