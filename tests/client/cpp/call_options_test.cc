// What CallOptions do to one call.
#include "timecache/call_options.h"

#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/client.h"

namespace timecache {
namespace {

class CallOptionsTest : public ::testing::Test {
 protected:
  FakeService service_;
  Client client_ = service_.MakeClient();
};

TEST_F(CallOptionsTest, MetadataComesWithItsCallAndNoOther) {
  std::multimap<std::string, std::string> seen;
  service_.OnCall([&seen](const grpc::ServerContext& context) {
    seen.clear();
    for (const auto& [key, value] : context.client_metadata()) {
      seen.emplace(std::string(key.data(), key.size()),
                   std::string(value.data(), value.size()));
    }
    return grpc::Status::OK;
  });
  const std::string bytes("\0\xff", 2);
  ASSERT_TRUE(client_
                  .Get("key", {},
                       {.metadata = {{"x-request-id", "r-7"},
                                     {"traceparent", "00-1-2-01"},
                                     {"origin-bin", bytes}}})
                  .ok());
  EXPECT_EQ(seen.find("x-request-id")->second, "r-7");
  EXPECT_EQ(seen.find("traceparent")->second, "00-1-2-01");
  EXPECT_EQ(seen.find("origin-bin")->second, bytes);
  ASSERT_TRUE(client_.Get("key").ok());
  EXPECT_EQ(seen.count("x-request-id"), 0u);
}

// gRPC would end the process.
TEST_F(CallOptionsTest, MetadataThatCannotBeSentIsRefused) {
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"X-Upper", "v"},
                                          {"", "v"},
                                          {"a b", "v"},
                                          {"grpc-timeout", "1S"},
                                          {":path", "v"},
                                          {"x-value", "line\nbreak"}}) {
    const CallOptions call = {.metadata = {{key, value}}};
    EXPECT_TRUE(absl::IsInvalidArgument(client_.Get("key", {}, call).status()))
        << key;
    EXPECT_TRUE(absl::IsInvalidArgument(client_.Scan(
        {}, [](const Entry&) { return true; }, call)))
        << key;
  }
}

TEST_F(CallOptionsTest, TimeoutIsTheCallsOwn) {
  service_.Hang(true);
  const auto begin = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client_.Put("key", "value", {}, {.timeout = absl::Milliseconds(50)})
          .status()));
  EXPECT_LT(absl::Now() - begin, client_.options().timeout);
}

TEST_F(CallOptionsTest, CancellationEndsACallThatIsUnderWay) {
  service_.Hang(true);
  std::stop_source cancellation;
  absl::Notification begun;
  service_.OnCall([&begun](const grpc::ServerContext&) {
    if (!begun.HasBeenNotified()) begun.Notify();
    return grpc::Status::OK;
  });
  std::thread canceller([&] {
    begun.WaitForNotification();
    cancellation.request_stop();
  });
  EXPECT_TRUE(
      absl::IsCancelled(client_
                            .Get("key", {},
                                 {.timeout = absl::InfiniteDuration(),
                                  .cancellation = cancellation.get_token()})
                            .status()));
  canceller.join();
}

TEST_F(CallOptionsTest, CallThatIsCancelledBeforeItBeginsIsNotSent) {
  int calls = 0;
  service_.OnCall([&calls](const grpc::ServerContext&) {
    ++calls;
    return grpc::Status::OK;
  });
  std::stop_source cancellation;
  cancellation.request_stop();
  EXPECT_TRUE(absl::IsCancelled(
      client_
          .Put("key", "value", {}, {.cancellation = cancellation.get_token()})
          .status()));
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace timecache
