#include "server/rpc/call/request.h"

#include <string>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {
namespace {

void SetTrue(void* flag) { *static_cast<bool*>(flag) = true; }

// A watch may stay open for ever: of its request nothing may be kept.
TEST(TakeRequestTest, FreesTheBytesAndWhatIsNotKnown) {
  v1::WatchExpiredRequest sent;
  sent.add_namespaces("orders");
  std::string bytes = sent.SerializeAsString();
  // Field 1,000, of a newer client.
  bytes += std::string("\xc2\x3e\x80\x08", 4) + std::string(1024, 'x');
  bool freed = false;
  grpc::ByteBuffer buffer;
  {
    const grpc::Slice slice(bytes.data(), bytes.size(), SetTrue, &freed);
    buffer = grpc::ByteBuffer(&slice, 1);
  }
  v1::WatchExpiredRequest taken;
  ASSERT_TRUE(TakeRequest(buffer, &taken).ok());
  EXPECT_TRUE(freed);
  EXPECT_EQ(taken.SerializeAsString(), sent.SerializeAsString());
}

}  // namespace
}  // namespace timecache::server
