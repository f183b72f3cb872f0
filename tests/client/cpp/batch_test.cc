// Client::Execute against a stand-in for the server.
#include "timecache/batch.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::HasSubstr;

class BatchTest : public ::testing::Test {
 protected:
  // The results of these, of which there must be as many.
  std::vector<OperationResult> Execute(std::vector<Operation> operations) {
    Batch batch;
    for (Operation& operation : operations) batch.Add(std::move(operation));
    auto results = client_.Execute(batch);
    EXPECT_TRUE(results.ok()) << results.status();
    if (!results.ok()) return std::vector<OperationResult>(operations.size());
    EXPECT_EQ(results->size(), operations.size());
    return *std::move(results);
  }

  FakeService service_;
  Client client_ = service_.MakeClient();
};

TEST_F(BatchTest, EmptyBatchHasNoResultsAndAsksNobody) {
  service_.FailWith(grpc::Status(grpc::StatusCode::INTERNAL, "was asked"));
  const auto results = client_.In("none").Execute(Batch());
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->empty());
}

TEST_F(BatchTest, AsManyOperationsAsAllowedAndNoMore) {
  Batch batch;
  for (size_t i = 0; i < Batch::kMaxOperations; ++i) {
    batch.Add(Operation::Put(absl::StrCat("key", i), "value"));
  }
  EXPECT_EQ(batch.size(), 4096u);
  ASSERT_TRUE(client_.Execute(batch).ok());
  EXPECT_EQ(client_.Size()->entries, 4096u);
  batch.Add(Operation::Get("key"));
  const absl::Status status = client_.Execute(batch).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("4097 operations; at most 4096"));
  batch.Clear();
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.bytes(), 0u);
}

TEST_F(BatchTest, AsManyBytesAsAllowedAndNoMore) {
  // The largest value, with the largest key: together with the namespace, they
  // are within what the server takes.
  Batch batch;
  batch.Add(Operation::Put(std::string(4096, 'k'), std::string(16 << 20, 'v')));
  EXPECT_LE(batch.bytes(), Batch::kMaxBytes);
  ASSERT_TRUE(client_.Execute(batch).ok());
  batch.Add(Operation::Put("key", std::string(64 << 10, 'v')));
  const absl::Status status = client_.Execute(batch).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("divide it"));
}

TEST_F(BatchTest, BytesAreThoseOfTheRequest) {
  Batch batch;
  batch.Add(Operation::Put("key", std::string(300, 'v')));
  batch.Add(
      Operation::Touch("key", {.ttl = absl::Seconds(3), .if_version = 7}));
  EXPECT_EQ(batch.bytes(), batch.proto().ByteSizeLong());
}

}  // namespace
}  // namespace timecache
