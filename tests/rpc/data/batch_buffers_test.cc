#include "server/rpc/data/batch_buffers.h"

#include <memory>
#include <string>
#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {
namespace {

void NoteFreed(void* flag) { *static_cast<bool*>(flag) = true; }

TEST(BatchBuffersTest, OfAnAnsweredRequestNothingIsKept) {
  v1::ExecuteRequest message;
  message.set_namespace_("orders");
  message.add_operations()->mutable_get()->set_key("k");
  std::string bytes = message.SerializeAsString();
  bool freed = false;
  auto buffers = BatchBuffers::Take();
  {
    const grpc::Slice slice(bytes.data(), bytes.size(), NoteFreed, &freed);
    ASSERT_TRUE(buffers->request.Decode(grpc::ByteBuffer(&slice, 1)).ok());
  }
  EXPECT_FALSE(freed);
  BatchBuffers::Give(std::move(buffers));
  EXPECT_TRUE(freed);
}

// A request may read a large value at each place in turn.
TEST(BatchBuffersTest, ResultsOfManyRequestsKeepNoLargeValues) {
  constexpr size_t kPlaces = 64;
  for (size_t place = 0; place < kPlaces; ++place) {
    auto buffers = BatchBuffers::Take();
    buffers->results.resize(kPlaces);
    buffers->results[place].entry.value.assign(200'000, 'x');
    BatchBuffers::Give(std::move(buffers));
  }
  const auto buffers = BatchBuffers::Take();
  size_t bytes = 0;
  for (const Result& result : buffers->results) {
    bytes += result.entry.value.capacity();
  }
  EXPECT_LE(bytes, kPlaces * BatchBuffers::kMaxKeptValueBytes);
}

TEST(BatchBuffersTest, TheNextBatchUsesTheSameMemory) {
  auto buffers = BatchBuffers::Take();
  buffers->results.resize(4096);
  const Result* const first = buffers->results.data();
  BatchBuffers::Give(std::move(buffers));
  buffers = BatchBuffers::Take();
  buffers->results.resize(4096);
  EXPECT_EQ(buffers->results.data(), first);
  // Another batch meanwhile has its own.
  EXPECT_TRUE(BatchBuffers::Take()->results.empty());
}

}  // namespace
}  // namespace timecache::server
