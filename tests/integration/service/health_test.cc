// How many may watch the server's health, and who gives way.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/rpc/admin/health_service.h"
#include "tests/support/await.h"
#include "tests/support/rpc.h"

namespace timecache::test {
namespace {

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kServing[] = "\x08\x01";

// Health alone, on a port and on a unix socket, whose clients are one more
// address.
class HealthTest : public ::testing::Test {
 protected:
  static constexpr size_t kMaxWatches = 4;

  HealthTest() {
    grpc::EnableDefaultHealthCheckService(false);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.AddListeningPort(unix_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    tcp_ = absl::StrCat("127.0.0.1:", port);
  }
  ~HealthTest() override {
    service_.EndWatches();
    watches_.clear();
    server_->Shutdown();
  }

  RawStream& WatchOn(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels_.push_back(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
    watches_.push_back(
        std::make_unique<RawStream>(channels_.back(), kWatch, ""));
    return *watches_.back();
  }

  server::HealthService service_{nullptr, nullptr, kMaxWatches};
  const std::string unix_ =
      absl::StrCat("unix:/tmp/timecached_health_", getpid(), ".socket");
  std::string tcp_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<RawStream>> watches_;
};

TEST_F(HealthTest, TheOneWatchTooManyIsRefused) {
  for (size_t i = 0; i < kMaxWatches; ++i) {
    EXPECT_EQ(WatchOn(tcp_).Next(), kServing);
  }
  EXPECT_EQ(service_.watches(), kMaxWatches);
  EXPECT_EQ(WatchOn(tcp_).Next(), std::nullopt);
  EXPECT_EQ(service_.refused_watches(), 1u);
  EXPECT_EQ(service_.watches(), kMaxWatches);
}

TEST_F(HealthTest, WhoHasMostGivesWayToWhoHasFewer) {
  std::vector<RawStream*> many;
  for (size_t i = 0; i < kMaxWatches; ++i) {
    many.push_back(&WatchOn(tcp_));
    EXPECT_EQ(many.back()->Next(), kServing);
  }
  EXPECT_EQ(WatchOn(unix_).Next(), kServing);
  EXPECT_EQ(WatchOn(unix_).Next(), kServing);
  EXPECT_EQ(service_.watches(), kMaxWatches);
  EXPECT_EQ(many[3]->Next(), std::nullopt);
  EXPECT_EQ(many[2]->Next(), std::nullopt);
  // Each has its half now.
  EXPECT_EQ(WatchOn(unix_).Next(), std::nullopt);
  EXPECT_EQ(service_.refused_watches(), 3u);
  service_.SetServing(false);
  EXPECT_EQ(many[0]->Next(), "\x08\x02");
}

TEST_F(HealthTest, AWatchThatIsGoneLeavesRoom) {
  for (size_t i = 0; i < kMaxWatches; ++i) {
    EXPECT_EQ(WatchOn(tcp_).Next(), kServing);
  }
  watches_.pop_back();
  Await([&] { return service_.watches() < kMaxWatches; });
  EXPECT_EQ(WatchOn(tcp_).Next(), kServing);
  EXPECT_EQ(service_.refused_watches(), 0u);
}

}  // namespace
}  // namespace timecache::test
