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

TEST_F(BatchTest, EachKindGivesItsResultInOrder) {
  const uint64_t version = client_.Put("there", "old")->version;
  const auto results = Execute(
      {Operation::Put("new", std::string("a\0b", 3), {.ttl = absl::Seconds(7)}),
       Operation::Get("there"), Operation::Get("missing"),
       Operation::Contains("new"), Operation::Contains("missing"),
       Operation::Touch("there"), Operation::Touch("missing"),
       Operation::Put("there", "2", {.return_previous = true}),
       Operation::Remove("there", {.return_previous = true}),
       Operation::Remove("missing")});
  for (const OperationResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status;
  }
  EXPECT_GT(results[0].version, version);
  EXPECT_TRUE(results[1].found);
  EXPECT_EQ(results[1].entry->key, "there");
  EXPECT_EQ(results[1].entry->value, "old");
  EXPECT_EQ(results[1].entry->version, version);
  EXPECT_FALSE(results[2].found);
  EXPECT_FALSE(results[2].entry);
  EXPECT_TRUE(results[3].found);
  EXPECT_FALSE(results[4].found);
  EXPECT_TRUE(results[5].found);
  EXPECT_EQ(results[5].version, version);
  EXPECT_FALSE(results[6].found);
  EXPECT_EQ(results[6].version, 0u);
  EXPECT_EQ(results[7].entry->key, "there");
  EXPECT_EQ(results[7].entry->value, "old");
  EXPECT_TRUE(results[8].found);
  EXPECT_EQ(results[8].entry->value, "2");
  EXPECT_FALSE(results[9].found);
  const auto entry = client_.Get("new").value();
  EXPECT_EQ(entry->value, std::string("a\0b", 3));
  EXPECT_EQ(entry->deadline, entry->put_time + absl::Seconds(7));
}

TEST_F(BatchTest, ChangesOfValuesGiveTheirResults) {
  const GatherOptions join = {.expected_names = {"a", "b"}};
  const auto results = Execute(
      {Operation::Append("log", "one"), Operation::Append("log", "two"),
       Operation::Combine("n", Combination::kAdd, -5, {.initial = 2}),
       Operation::Combine("n", Combination::kXor, -3, {.remove_if_zero = true}),
       Operation::Gather("j", "b", "2", join), Operation::Get("j"),
       Operation::Gather("j", "a", "1", join),
       Operation::Append("no", "x", {.condition = PutCondition::kIfPresent})});
  EXPECT_TRUE(results[0].created);
  EXPECT_FALSE(results[1].created);
  EXPECT_EQ(results[1].number, 6);
  EXPECT_GT(results[1].version, results[0].version);
  EXPECT_EQ(results[2].number, -3);
  EXPECT_TRUE(results[3].removed);
  EXPECT_EQ(results[3].number, 0);
  EXPECT_EQ(results[4].number, 1);
  EXPECT_FALSE(results[4].parts);
  ASSERT_TRUE(results[5].entry->parts);
  EXPECT_EQ(results[5].entry->parts->parts[0].name, "b");
  EXPECT_EQ(results[5].entry->parts->expected_names, join.expected_names);
  ASSERT_TRUE(results[6].parts);
  EXPECT_EQ(results[6].parts->parts[1].value, "1");
  EXPECT_EQ(ReasonName(results[7].status), Name(v1::KEY_NOT_FOUND));
}

TEST_F(BatchTest, OperationThatFailsFailsAlone) {
  ASSERT_TRUE(client_.Put("key", "1").ok());
  const auto results = Execute(
      {Operation::Put("a", "1"),
       Operation::Put("key", "2", {.condition = PutCondition::kIfAbsent}),
       Operation::Put("b", "1", {.ttl = absl::ZeroDuration()}),
       Operation::Remove("key", {.if_version = 99}), Operation::Put("c", "1"),
       Operation::Touch("key", {.if_version = 99})});
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(results[1].status));
  EXPECT_EQ(ReasonName(results[1].status), Name(v1::KEY_EXISTS));
  EXPECT_TRUE(absl::IsInvalidArgument(results[2].status));
  EXPECT_EQ(results[2].status.message(), "ttl: must be at least 1ms");
  EXPECT_EQ(ReasonName(results[3].status), Name(v1::VERSION_MISMATCH));
  EXPECT_FALSE(results[3].found);
  EXPECT_TRUE(results[4].status.ok());
  EXPECT_EQ(ReasonName(results[5].status), Name(v1::VERSION_MISMATCH));
  EXPECT_EQ(client_.Size()->entries, 3u);
}

TEST_F(BatchTest, EmptyBatchHasNoResultsAndAsksNobody) {
  service_.FailWith(grpc::Status(grpc::StatusCode::INTERNAL, "was asked"));
  const auto results = client_.In("none").Execute(Batch());
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->empty());
}

TEST_F(BatchTest, NamespaceThatIsMissingFailsTheWhole) {
  Batch batch;
  batch.Add(Operation::Get("key"));
  const auto results = client_.In("none").Execute(batch);
  EXPECT_EQ(ReasonName(results.status()), Name(v1::NAMESPACE_NOT_FOUND));
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
