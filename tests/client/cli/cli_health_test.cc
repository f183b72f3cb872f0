// timecachectl health, against servers in each state.
#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"

namespace timecache {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Says what it is told to.
class FakeHealth final : public grpc::health::v1::Health::Service {
 public:
  grpc::Status Check(grpc::ServerContext*, const HealthCheckRequest* request,
                     HealthCheckResponse* response) override {
    if (!request->service().empty()) {
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service");
    }
    response->set_status(status_);
    return grpc::Status::OK;
  }
  void set_status(HealthCheckResponse::ServingStatus status) {
    status_ = status;
  }

 private:
  std::atomic<HealthCheckResponse::ServingStatus> status_ =
      HealthCheckResponse::SERVING;
};

class CliHealthTest : public ::testing::Test {
 protected:
  CliHealthTest() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  test::Exit Health(const std::string& flag = "--timeout=10s") const {
    return test::ChildProcess(
               {TIMECACHECTL, "health", "--address", address_, flag}, "")
        .Wait();
  }

  FakeHealth health_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(CliHealthTest, ServingIsZero) {
  const test::Exit result = Health();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "SERVING\n");
  EXPECT_EQ(json::parse(Health("--json").out, nullptr, false),
            json({{"status", "SERVING"}}));
}

TEST_F(CliHealthTest, NotServingIsOne) {
  health_.set_status(HealthCheckResponse::NOT_SERVING);
  const test::Exit result = Health();
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_EQ(result.out, "NOT_SERVING\n");
}

TEST_F(CliHealthTest, NoServerIsTwo) {
  server_->Shutdown();
  server_.reset();
  const test::Exit result = Health();
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("no server at "));
}

}  // namespace
}  // namespace timecache
