#include "server/rpc/data/batch_response.h"

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/api/proto_time.h"
#include "server/api/status.h"
#include "server/base/clock.h"
#include "server/base/error.h"
#include "tests/support/effort.h"

namespace timecache::server {
namespace {

std::string Bytes(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.TrySingleSlice(&slice).ok()) << "not one piece";
  return std::string(slice.begin(), slice.end());
}

void SetError(const absl::Status& status, v1::OperationResult* result) {
  EXPECT_TRUE(result->mutable_error()->ParseFromString(
      ToGrpcStatus(status).error_details()));
}

void SetEntry(const Entry& entry, v1::Entry* to) {
  if (entry.parts) {
    EXPECT_TRUE(to->mutable_parts()->ParseFromString(entry.value));
  } else {
    to->set_value(entry.value);
  }
  to->set_version(entry.version);
  SetTime(entry.put_us, to->mutable_put_time());
  SetTime(entry.deadline_us, to->mutable_deadline());
  SetTime(entry.create_us, to->mutable_create_time());
  if (entry.own_ttl_us != 0) {
    SetDuration(entry.own_ttl_us, to->mutable_own_ttl());
  }
}

// What the generated classes make of it.
v1::OperationResult Expected(const Operation& op, const Result& result) {
  v1::OperationResult expected;
  if (!result.status.ok()) {
    SetError(result.status, &expected);
    return expected;
  }
  switch (op.kind) {
    case OpKind::kPut:
      expected.mutable_put()->set_version(result.version);
      if (result.has_entry) {
        SetEntry(result.entry, expected.mutable_put()->mutable_previous());
      }
      break;
    case OpKind::kGet:
      expected.mutable_get();
      if (result.has_entry) {
        SetEntry(result.entry, expected.mutable_get()->mutable_entry());
      }
      break;
    case OpKind::kRemove:
      expected.mutable_remove()->set_removed(result.found);
      if (result.has_entry) {
        SetEntry(result.entry, expected.mutable_remove()->mutable_previous());
      }
      break;
    case OpKind::kContains:
      expected.mutable_contains()->set_contains(result.found);
      break;
    case OpKind::kTouch:
      expected.mutable_touch()->set_touched(result.found);
      expected.mutable_touch()->set_version(result.version);
      break;
    case OpKind::kAppend:
      expected.mutable_append()->set_version(result.version);
      expected.mutable_append()->set_value_bytes(
          static_cast<uint64_t>(result.number));
      expected.mutable_append()->set_created(!result.found);
      break;
    case OpKind::kCombine:
      expected.mutable_combine()->set_result(result.number);
      expected.mutable_combine()->set_version(result.version);
      expected.mutable_combine()->set_created(!result.found && !result.removed);
      expected.mutable_combine()->set_removed(result.removed);
      break;
    case OpKind::kGather:
      expected.mutable_gather()->set_version(result.version);
      expected.mutable_gather()->set_count(
          static_cast<uint32_t>(result.number));
      expected.mutable_gather()->set_duplicate(result.duplicate);
      if (result.has_entry) {
        EXPECT_TRUE(expected.mutable_gather()->mutable_parts()->ParseFromString(
            result.entry.value));
      }
      break;
  }
  return expected;
}

grpc::ByteBuffer Message(const v1::ExecuteRequest& request) {
  grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// The same with parts in place of its entry's value.
Result WithParts(Result result) {
  v1::GatheredParts parts;
  parts.set_expected_parts(2);
  parts.add_parts()->set_name("name");
  parts.mutable_parts(0)->set_value(result.entry.value);
  result.entry.value = parts.SerializeAsString();
  result.entry.parts = true;
  return result;
}

// What one operation of each kind is answered with, if all come to the same.
void ExpectTheGeneratedBytes(const Result& result) {
  v1::ExecuteRequest proto;
  proto.add_operations()->mutable_put();
  proto.add_operations()->mutable_get();
  proto.add_operations()->mutable_remove();
  proto.add_operations()->mutable_contains();
  proto.add_operations()->mutable_touch();
  // Also with parts.
  proto.add_operations()->mutable_get();
  proto.add_operations()->mutable_append();
  proto.add_operations()->mutable_combine()->set_add(1);
  auto* const gather = proto.add_operations()->mutable_gather();
  gather->set_part("part");
  gather->set_expected_parts(2);
  BatchRequest request;
  ASSERT_TRUE(request.Decode(Message(proto)).ok());
  ASSERT_EQ(request.operations().size(), 9u);
  v1::ExecuteResponse expected;
  std::vector<Result> results;
  for (const Operation& op : request.operations()) {
    results.push_back(results.size() < 5 ? result : WithParts(result));
    *expected.add_results() = Expected(op, results.back());
  }
  EXPECT_EQ(Bytes(EncodeResponse(request, results)),
            expected.SerializeAsString());
}

Result Found(Entry entry) {
  Result result;
  result.found = true;
  result.has_entry = true;
  result.entry = std::move(entry);
  return result;
}

TEST(BatchResponseTest, VersionsOfEveryLength) {
  std::vector<uint64_t> versions = {std::numeric_limits<uint64_t>::max()};
  for (int bit = 0; bit < 64; ++bit) {
    versions.push_back((uint64_t{1} << bit) - 1);
    versions.push_back(uint64_t{1} << bit);
  }
  for (const uint64_t version : versions) {
    SCOPED_TRACE(version);
    Result result = Found({"value", version, 0, 0});
    result.version = version;
    result.number = static_cast<int64_t>(version);
    ExpectTheGeneratedBytes(result);
  }
}

TEST(BatchResponseTest, TimesOfEveryLengthBeforeAndAfter1970) {
  std::vector<int64_t> times = {std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max()};
  // Seconds from which on another byte is needed, now, and the last in range.
  for (const int64_t seconds :
       {int64_t{0}, int64_t{1}, int64_t{1} << 7, int64_t{1} << 14,
        int64_t{1} << 21, int64_t{1} << 28, int64_t{1} << 35, int64_t{1} << 42,
        int64_t{1'700'000'000}, int64_t{253'402'300'799}}) {
    // On both sides of where nanos need another byte.
    for (const int64_t micros :
         {0, 1, 16, 17, 2'097, 2'098, 268'435, 268'436, 500'000, 999'999}) {
      times.push_back(seconds * kMicrosPerSecond + micros);
      times.push_back(-seconds * kMicrosPerSecond - micros);
    }
  }
  // Each with each, or with a quarter of them, not the same for all.
  const size_t step = times.size() / test::Rounds(times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    for (size_t j = i % step; j < times.size(); j += step) {
      SCOPED_TRACE(absl::StrCat(times[i], " ", times[j]));
      ExpectTheGeneratedBytes(Found({"value", 1, times[i], times[j]}));
    }
  }
}

TEST(BatchResponseTest, ValuesOfEveryLength) {
  // The lengths of the messages around them change there.
  for (const size_t begin : {size_t{0}, (size_t{1} << 14) - 100}) {
    for (size_t size = begin; size < begin + 300; ++size) {
      SCOPED_TRACE(size);
      ExpectTheGeneratedBytes(
          Found({std::string(size, 'v'), 7, 1'700'000'000'123'456, 1}));
    }
  }
}

TEST(BatchResponseTest, WritesTheBytesOfTheGeneratedSerializer) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::Rounds(5'000); ++round) {
    // A request whose operations are refused or not, as chance will have it.
    v1::ExecuteRequest proto;
    const int count = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      v1::Operation* const operation = proto.add_operations();
      switch (random() % 9) {
        case 0:
          operation->mutable_put();
          break;
        case 1:
          operation->mutable_get();
          break;
        case 2:
          operation->mutable_remove();
          break;
        case 3:
          operation->mutable_contains();
          break;
        case 4:
          operation->mutable_touch();
          break;
        case 5:
          operation->mutable_append();
          break;
        case 6:
          operation->mutable_combine()->set_xor_(1);
          break;
        case 7:
          operation->mutable_gather()->set_part("part");
          operation->mutable_gather()->add_expected_names("part");
          break;
        default:
          break;
      }
    }
    BatchRequest request;
    ASSERT_TRUE(request.Decode(Message(proto)).ok());
    std::vector<Result> results(request.operations().size());
    for (Result& result : results) {
      result.found = random() % 2;
      result.removed = random() % 2;
      result.duplicate = random() % 2;
      result.number = static_cast<int64_t>(random() >> (random() % 64));
      if (random() % 2) result.number = -result.number;
      result.version = random() >> (random() % 64);
      result.has_entry = random() % 2;
      result.entry.value = std::string(random() % 400, 'v');
      result.entry.version = random() >> (random() % 64);
      result.entry.put_us =
          static_cast<int64_t>(random() % 3'000'000'000'000'000) -
          1'000'000'000'000;
      result.entry.deadline_us = result.entry.put_us / 1'000'000 * 1'000'000;
      result.entry.create_us =
          random() % 2 ? result.entry.put_us
                       : static_cast<int64_t>(random() >> (random() % 64));
      if (result.entry.create_us > 200'000'000'000'000'000) {
        result.entry.create_us = -result.entry.put_us;
      }
      if (random() % 2) {
        result.entry.own_ttl_us =
            static_cast<int64_t>(random() >> (14 + random() % 50));
      }
      const size_t i = static_cast<size_t>(&result - results.data());
      const OpKind kind = request.operations()[i].kind;
      if (kind == OpKind::kGather || random() % 4 == 0) {
        result = WithParts(std::move(result));
      }
      if (random() % 8 == 0) {
        result.status =
            random() % 2
                ? InvalidField("key", "must not be empty")
                : ErrorWithReason(absl::StatusCode::kFailedPrecondition,
                                  Reason::kKeyExists, "the key already exists");
      }
    }
    v1::ExecuteResponse expected;
    auto refused = request.refused();
    for (size_t i = 0; expected.results_size() < count;) {
      if (!refused.empty() &&
          refused.front().index ==
              static_cast<size_t>(expected.results_size())) {
        SetError(refused.front().status, expected.add_results());
        refused.remove_prefix(1);
      } else {
        *expected.add_results() = Expected(request.operations()[i], results[i]);
        ++i;
      }
    }
    ASSERT_EQ(Bytes(EncodeResponse(request, results)),
              expected.SerializeAsString())
        << "round " << round;
  }
}

TEST(OperationAnswerTest, IsTheResponseOfTheBatchAndHasTheKey) {
  Result result = Found({"value", 7, 1'700'000'000'123'456, 1});
  result.version = 8;
  v1::PutResponse put;
  put.set_version(8);
  SetEntry(result.entry, put.mutable_previous());
  put.mutable_previous()->set_key("key");
  EXPECT_EQ(Bytes(ToBytes({OpKind::kPut, "key", &result}, nullptr)),
            put.SerializeAsString());
  v1::TouchResponse touch;
  touch.set_touched(true);
  touch.set_version(8);
  EXPECT_EQ(Bytes(ToBytes({OpKind::kTouch, "key", &result}, nullptr)),
            touch.SerializeAsString());
  const Result none;
  EXPECT_EQ(Bytes(ToBytes({OpKind::kGet, "key", &none}, nullptr)), "");
}

}  // namespace
}  // namespace timecache::server
