// A process that runs out of memory refuses what grows, and lives.
#include <signal.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "tests/support/rpc.h"
#include "tests/support/server_process.h"
#include "tests/support/watch_reader.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using Data = v1::TimeCacheService::Stub;

constexpr int64_t kMiB = 1 << 20;
constexpr int kMaxRounds = 100;
// Many times what the server may hold.
constexpr int kMaxPuts = 5'000;

grpc::Status Put(Data* data, const std::string& key, const std::string& value,
                 int ttl_s) {
  v1::PutRequest request;
  request.set_namespace_("default");
  request.set_key(key);
  request.set_value(value);
  request.mutable_ttl()->set_seconds(ttl_s);
  return Call(data, &Data::Put, request).status;
}

// Puts half MiBs until one is refused; returns how many there are.
int Fill(Data* data, const std::string& prefix, int ttl_s) {
  const std::string value(kMiB / 2, 'v');
  for (int i = 0; i < kMaxPuts; ++i) {
    const grpc::Status status =
        Put(data, absl::StrCat(prefix, i), value, ttl_s);
    if (status.ok()) continue;
    ExpectError(status, StatusCode::RESOURCE_EXHAUSTED, v1::MAX_MEMORY,
                "limits.max_memory_bytes of");
    return i;
  }
  ADD_FAILURE() << "nothing was refused";
  return 0;
}

class MemoryLimitTest : public ::testing::Test {
 protected:
  // Within half a GiB of addresses.
  ServerProcess server_{
      {"--listen", "127.0.0.1:0", "--virtual-clock"},
      {},
      {"/bin/sh", "-c", "ulimit -v 524288; exec \"$@\"", "timecached"}};
};

TEST_F(MemoryLimitTest, TheProcessLivesAndDeathsMakeRoom) {
  Data* const data = server_.data();
  EXPECT_EQ(server_.started()["max_memory_source"], "RLIMIT_AS");
  EXPECT_EQ(server_.started()["max_memory_bytes"].get<int64_t>() / kMiB, 204);
  WatchReader watcher(data, "default");
  ASSERT_TRUE(watcher.Next());
  ASSERT_TRUE(Put(data, "stays", "here", 600).ok());

  const int filled = Fill(data, "first.", 2);
  EXPECT_GT(filled, 300);
  EXPECT_LT(filled, 530);
  // Whoever reads, removes and watches goes on.
  v1::GetRequest get;
  get.set_namespace_("default");
  get.set_key("stays");
  EXPECT_EQ(Must(Call(data, &Data::Get, get)).entry().value(), "here");
  EXPECT_TRUE(Put(data, "stays", "less", 600).ok());

  // Deaths come, and then there is room again, more than once.
  testing::v1::VirtualClockService::Stub clock(server_.channel());
  testing::v1::AdvanceRequest advance;
  advance.mutable_by()->set_seconds(3);
  for (int more = 0, round = 0; more < 2 * filled; ++round) {
    ASSERT_LT(round, kMaxRounds);
    Must(Call(&clock, &testing::v1::VirtualClockService::Stub::Advance,
              advance));
    more += Fill(data, absl::StrCat(round, "."), 2);
  }
  uint64_t told = 0;
  while (told < static_cast<uint64_t>(filled)) {
    const auto message = watcher.Next();
    ASSERT_TRUE(message);
    told += static_cast<uint64_t>(message->events_size()) + message->lost();
  }
  server_.process().Signal(SIGTERM);
  watcher.Drain();
  EXPECT_EQ(server_.process().Wait().code, 0);
}

}  // namespace
}  // namespace timecache::test
