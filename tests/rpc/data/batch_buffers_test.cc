#include "server/rpc/data/batch_buffers.h"

#include <memory>
#include <string>
#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "server/peer/store_fields.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {
namespace {

using Buffers = BatchBuffers<BatchRequest>;

void NoteFreed(void* flag) { *static_cast<bool*>(flag) = true; }

TEST(BatchBuffersTest, OfAnAnsweredRequestNothingIsKept) {
  v1::ExecuteRequest message;
  message.set_namespace_("orders");
  message.add_operations()->mutable_get()->set_key("k");
  std::string bytes = message.SerializeAsString();
  bool freed = false;
  auto buffers = Buffers::Take();
  {
    const grpc::Slice slice(bytes.data(), bytes.size(), NoteFreed, &freed);
    ASSERT_TRUE(buffers->request.Decode(grpc::ByteBuffer(&slice, 1)).ok());
  }
  EXPECT_FALSE(freed);
  Buffers::Give(std::move(buffers));
  EXPECT_TRUE(freed);
}

// A request may read a large value at each place in turn.
TEST(BatchBuffersTest, ResultsOfManyRequestsKeepNoLargeValues) {
  constexpr size_t kPlaces = 64;
  for (size_t place = 0; place < kPlaces; ++place) {
    auto buffers = Buffers::Take();
    buffers->results.resize(kPlaces);
    buffers->results[place].entry.value.assign(200'000, 'x');
    Buffers::Give(std::move(buffers));
  }
  const auto buffers = Buffers::Take();
  size_t bytes = 0;
  for (const Result& result : buffers->results) {
    bytes += result.entry.value.capacity();
  }
  EXPECT_LE(bytes, kPlaces * Buffers::kMaxKeptValueBytes);
}

TEST(BatchBuffersTest, TheNextBatchUsesTheSameMemory) {
  auto buffers = Buffers::Take();
  buffers->results.resize(4096);
  const Result* const first = buffers->results.data();
  Buffers::Give(std::move(buffers));
  buffers = Buffers::Take();
  buffers->results.resize(4096);
  EXPECT_EQ(buffers->results.data(), first);
  // Another batch meanwhile has its own.
  EXPECT_TRUE(Buffers::Take()->results.empty());
}

TEST(BatchBuffersTest, BatchesThatRunAtATimeUseTheMemoryOfSuchBefore) {
  for (const size_t size : {size_t{2'000}, size_t{2'000}, size_t{200}}) {
    auto buffers = std::make_unique<Buffers>();
    buffers->results.resize(size);
    Buffers::Give(std::move(buffers));
  }
  // Of 4096 operations together.
  auto last = Buffers::Take();
  auto before = Buffers::Take();
  EXPECT_EQ(last->results.size(), 200u);
  EXPECT_EQ(before->results.size(), 2'000u);
  EXPECT_TRUE(Buffers::Take()->results.empty());
  // Those of another kind are not among them.
  Buffers::Give(std::move(last));
  EXPECT_TRUE(BatchBuffers<ReadOperations>::Take()->results.empty());
  EXPECT_EQ(Buffers::Take()->results.size(), 200u);
}

}  // namespace
}  // namespace timecache::server
