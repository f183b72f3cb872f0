// timecached as a process that has no file descriptor left.

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/net/raw_connection.h"
#include "tests/support/rpc.h"
#include "tests/support/server_process.h"

namespace timecache::test {
namespace {

TEST(OpenFilesTest, ServesAgainAfterItWasOutOfThem) {
  ServerProcess server({"--listen", "127.0.0.1:0"}, {},
                       {"/bin/sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"});
  const auto put = [&](const std::shared_ptr<grpc::Channel>& channel) {
    const auto data = v1::TimeCacheService::NewStub(channel);
    return Call(data.get(), &v1::TimeCacheService::Stub::Put,
                Proto<v1::PutRequest>("namespace: 'default' key: 'key'"))
        .status.ok();
  };
  {
    std::vector<std::unique_ptr<RawConnection>> many;
    for (int i = 0; i < 100; ++i) {
      many.push_back(std::make_unique<RawConnection>(server.address()));
    }
    // More than it has files for are not served, and wait.
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(many[static_cast<size_t>(i)]->IsServed());
    }
    EXPECT_FALSE(many.back()->HasAnswer(absl::Milliseconds(100)));
    // Who was there is served all the while.
    EXPECT_TRUE(put(server.channel()));
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  EXPECT_TRUE(put(Connected(grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments))));
}

}  // namespace
}  // namespace timecache::test
