// How long connections live: the old, the silent and those that ping too much.
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/proto_time.h"
#include "tests/support/end_observer.h"
#include "tests/support/net/raw_connection.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using namespace std::string_literals;
using grpc::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);

// Of HTTP/2, RFC 9113: what a client begins with, and the types of frames.
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr char kSettingsType = 4;
constexpr char kPing = 6;
constexpr char kGoAway = 7;

std::string SimpleFrame(char type, const std::string& payload) {
  return "\0\0"s + static_cast<char>(payload.size()) + type + "\0"s +
         "\0\0\0\0"s + payload;
}

// The types of the frames that these bytes are.
std::vector<char> FrameTypes(const std::string& bytes) {
  constexpr size_t kHeader = 9;
  std::vector<char> types;
  for (size_t at = 0; at + kHeader <= bytes.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 3; ++i) {
      length = length << 8 | static_cast<uint8_t>(bytes[at + i]);
    }
    types.push_back(bytes[at + 3]);
    at += kHeader + length;
  }
  return types;
}

class ConnectionLifeTest : public ::testing::Test {
 protected:
  void Start(const std::function<void(server::ServerOptions*)>& change) {
    TestServerOptions options;
    options.change = [&](server::ServerOptions* to) {
      change(to);
      to->call_observers.push_back(&observer_);
    };
    server_ = std::make_unique<TestServer>(options);
  }
  RawConnection Connect() const {
    return RawConnection(server_->server().addresses().at(0));
  }

  size_t peers() {
    absl::MutexLock lock(&mu_);
    return peers_.size();
  }

 private:
  absl::Mutex mu_;
  // Who has called.
  std::set<std::string> peers_ ABSL_GUARDED_BY(mu_);
  EndObserver observer_{[this](const server::CallRecord& record) {
    absl::MutexLock lock(&mu_);
    peers_.insert(record.details.Peer());
  }};

 protected:
  // Goes first: it tells the observer until its end.
  std::unique_ptr<TestServer> server_;
};

TEST_F(ConnectionLifeTest, AnOldOneIsReplacedAndNoCallFails) {
  Start([](server::ServerOptions* to) {
    server::SetDuration(server::kMicrosPerSecond / 10,
                        to->limits.mutable_max_connection_age());
  });
  const absl::Time end = absl::Now() + kPatience;
  for (int i = 0; peers() < 4; ++i) {
    ASSERT_LT(absl::Now(), end);
    server_->Put(absl::StrCat("key", i % 100), "value");
  }
}

// It is not cut with a request under way: what has no answer was not applied.
TEST_F(ConnectionLifeTest, APipelineOnAnOldOneEndsBehindAnAnswer) {
  Start([](server::ServerOptions* to) {
    server::SetDuration(server::kMicrosPerSecond / 10,
                        to->limits.mutable_max_connection_age());
  });
  const auto request = Proto<v1::ExecuteRequest>(
      "namespace: 'default' independent: true "
      "operations { combine { key: 'n' add: 1 } }");
  int64_t answered = 0;
  while (peers() < 3) {
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stream = server_->data()->Pipeline(&context);
    v1::ExecuteResponse response;
    while (stream->Write(request) && stream->Read(&response)) {
      ++answered;
      EXPECT_EQ(response.results(0).combine().result(), answered);
    }
    ExpectError(stream->Finish(), StatusCode::UNAVAILABLE, v1::DRAINING);
    ASSERT_FALSE(HasFailure());
  }
}

// gRPC asks some clients sooner than others, and cuts none before all are asked.
TEST_F(ConnectionLifeTest, NoPipelineIsCutBecauseItsConnectionWasAskedEarly) {
  Start([](server::ServerOptions* to) {
    server::SetDuration(server::kMicrosPerSecond,
                        to->limits.mutable_max_connection_age());
    to->connection_limits.age_grace = absl::Milliseconds(150);
  });
  const auto request = Proto<v1::ExecuteRequest>(
      "namespace: 'default' operations { get { "
      "key: 'k' } }");
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&, channel = server_->NewChannel()] {
      grpc::ClientContext context;
      SetDeadline(&context);
      const auto stub = v1::TimeCacheService::NewStub(channel);
      const auto stream = stub->Pipeline(&context);
      v1::ExecuteResponse response;
      while (stream->Write(request) && stream->Read(&response)) {
        absl::SleepFor(absl::Milliseconds(5));
      }
      ExpectError(stream->Finish(), StatusCode::UNAVAILABLE, v1::DRAINING);
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(ConnectionLifeTest, AWatchOnAnOldOneEndsAndGoesOnElsewhere) {
  Start([](server::ServerOptions* to) {
    server::SetDuration(server::kMicrosPerSecond / 10,
                        to->limits.mutable_max_connection_age());
    to->connection_limits.age_grace = absl::Seconds(1);
  });
  auto request = Proto<v1::WatchExpiredRequest>("namespaces: 'default'");
  // Takes what comes until the connection's end.
  const auto watch = [&] {
    WatchReader reader(server_->data(), request);
    std::vector<std::string> keys;
    while (const auto message = reader.Next()) {
      for (const auto& event : message->events()) keys.push_back(event.key());
    }
    EXPECT_EQ(reader.Drain().error_code(), StatusCode::UNAVAILABLE);
    EXPECT_EQ(reader.lost(), 0u);
    if (!reader.token().empty()) {
      request.clear_resume_tokens();
      request.add_resume_tokens(reader.token());
    }
    return keys;
  };
  while (request.resume_tokens().empty()) watch();
  // Dies while nobody watches.
  server_->Fill(1, "key", "value");
  server_->AdvanceBy(2 * kTtlUs);
  std::vector<std::string> keys;
  while (keys.empty()) keys = watch();
  EXPECT_THAT(keys, ElementsAre("key0"));
}

TEST_F(ConnectionLifeTest, ASilentOneIsPingedAndThenClosed) {
  Start([](server::ServerOptions* to) {
    to->connection_limits.keepalive_interval = absl::Milliseconds(100);
    to->connection_limits.keepalive_timeout = absl::Milliseconds(100);
  });
  const RawConnection silent = Connect();
  silent.Send(kPreface + SimpleFrame(kSettingsType, ""));
  EXPECT_THAT(FrameTypes(silent.ReadToEnd()), Contains(kPing));
  // One that answers is served all the while.
  server_->Put("key", "value");
}

TEST_F(ConnectionLifeTest, OneThatPingsTooOftenIsToldAndClosed) {
  Start([](server::ServerOptions*) {});
  const RawConnection noisy = Connect();
  std::string bytes = kPreface + SimpleFrame(kSettingsType, "");
  for (int i = 0; i < 10; ++i) bytes += SimpleFrame(kPing, "12345678");
  noisy.Send(bytes);
  const std::string answer = noisy.ReadToEnd();
  EXPECT_THAT(FrameTypes(answer), Contains(kGoAway));
  EXPECT_THAT(answer, HasSubstr("too_many_pings"));
  server_->Put("key", "value");
}

}  // namespace
}  // namespace timecache::test
