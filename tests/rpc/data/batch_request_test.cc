#include "server/rpc/data/batch_request.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/batch_reference.h"
#include "tests/support/effort.h"
#include "tests/support/engine/dice.h"
#include "tests/support/net/wire_message.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;

v1::ExecuteRequest Proto(const std::string& text) {
  v1::ExecuteRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request));
  return request;
}

// As a serializer writes it: each field of any value, in order.
std::string RandomRequest(Dice* dice) {
  v1::ExecuteRequest request;
  std::string bytes;
  do {
    bytes = RandomWireMessage(*v1::ExecuteRequest::descriptor(), dice);
  } while (!request.ParseFromString(bytes));
  return request.SerializeAsString();
}

int Rounds() {
  const char* rounds = std::getenv("TIMECACHED_FUZZ_ROUNDS");
  return rounds != nullptr ? std::atoi(rounds) : test::Rounds(10'000);
}

// As they are; and changed, cut, doubled or put together from two messages:
// what is malformed is refused by both, and what has fields twice, unknown ones
// or odd encodings means the same to both.
TEST(BatchRequestTest, ReadsWholeAndMutilatedBytesAsTheGeneratedParserDoes) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed));
  const google::protobuf::LogSilencer silencer;
  Dice dice(seed);
  int refused = 0;
  for (int i = 0; i < Rounds(); ++i) {
    std::string bytes = RandomRequest(&dice);
    ASSERT_EQ(DecodeBatch(Message(bytes)), ExpectedBatch(bytes))
        << "round " << i;
    for (auto changes = dice.Draw(1, 3); changes > 0 && !bytes.empty();
         --changes) {
      const size_t at = dice.Index(bytes.size());
      const auto byte = static_cast<char>(dice.Draw(0, 255));
      switch (dice.Draw(0, 4)) {
        case 0:
          bytes[at] = byte;
          break;
        case 1:
          bytes.resize(at);
          break;
        case 2:
          bytes.insert(at, 1, byte);
          break;
        case 3:
          bytes.erase(at, 1 + dice.Index(4));
          break;
        default:
          bytes += RandomRequest(&dice);
      }
    }
    const DecodedBatch expected = ExpectedBatch(bytes);
    refused += !absl::StartsWith(expected.status, "OK");
    ASSERT_EQ(DecodeBatch(Message(bytes)), expected) << "round " << i;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, Rounds());
}

TEST(BatchRequestTest, KeysAndValuesOfEveryLength) {
  for (const size_t begin : {size_t{0}, (size_t{1} << 14) - 100}) {
    for (size_t size = begin; size < begin + 300; ++size) {
      const std::string text(size, 'x');
      v1::ExecuteRequest request;
      request.add_operations()->mutable_get()->set_key(text);
      request.add_operations()->mutable_remove()->set_key(text);
      request.add_operations()->mutable_contains()->set_key(text);
      request.add_operations()->mutable_touch()->set_key(text);
      request.add_operations()->mutable_put()->set_key(text);
      request.add_operations()->mutable_put()->set_value(text);
      v1::PutRequest* put = request.add_operations()->mutable_put();
      put->set_key("key");
      put->set_value(text);
      put = request.add_operations()->mutable_put();
      put->set_key(text);
      put->set_value("value");
      put->mutable_ttl()->set_seconds(static_cast<int64_t>(size));
      const std::string bytes = request.SerializeAsString();
      ASSERT_EQ(DecodeBatch(Message(bytes)), ExpectedBatch(bytes)) << size;
    }
  }
}

// A field with a length that takes so many bytes, though one is enough.
std::string WireField(char tag, const std::string& bytes,
                      int length_bytes = 1) {
  std::string field(1, tag);
  field += static_cast<char>(bytes.size());
  for (int i = 1; i < length_bytes; ++i) {
    field.back() |= static_cast<char>(0x80);
    field += '\0';
  }
  return field + bytes;
}

TEST(BatchRequestTest, OddEncodingsAreReadAsTheGeneratedParserDoes) {
  constexpr char kOperations = 0x12, kPut = 0x0a, kGet = 0x12, kKey = 0x12,
                 kValue = 0x1a;
  for (int length_bytes = 1; length_bytes <= 11; ++length_bytes) {
    const std::string key = WireField(kKey, "key", length_bytes);
    const std::string value = WireField(kValue, "value", length_bytes);
    for (const std::string& body :
         {std::string(), key, value, key + value, value + key, key + key,
          key + value + value, value + value, key + value + key}) {
      for (const char kind : {kPut, kGet}) {
        // What there is of it, and what there is behind it.
        const std::string whole = WireField(
            kOperations, WireField(kind, body, length_bytes), length_bytes);
        for (size_t size = 0; size <= whole.size(); ++size) {
          const std::string bytes = whole.substr(0, size);
          ASSERT_EQ(DecodeBatch(Message(bytes)), ExpectedBatch(bytes))
              << absl::BytesToHexString(bytes);
        }
        for (const char behind : {'\0', kPut, kGet, '\x80'}) {
          const std::string bytes =
              WireField(kOperations, WireField(kind, body) + behind);
          ASSERT_EQ(DecodeBatch(Message(bytes)), ExpectedBatch(bytes))
              << absl::BytesToHexString(bytes);
        }
      }
    }
  }
}

TEST(BatchRequestTest, OfTwoConditionsTheLastOneCounts) {
  using Put = v1::PutRequest;
  const auto decode = [](const std::string& put) {
    const std::string bytes = WireField('\x12', WireField('\x0a', put));
    DecodedBatch decoded = DecodeBatch(Message(bytes));
    EXPECT_EQ(decoded, ExpectedBatch(bytes)) << absl::BytesToHexString(bytes);
    return decoded;
  };
  const std::string key = WireField('\x12', "key");
  const std::string value = WireField('\x1a', "value");
  for (const int number : {0, 1, 2, 3, 99}) {
    Put condition;
    condition.set_condition(static_cast<v1::PutCondition>(number));
    for (const uint64_t version : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
      SCOPED_TRACE(absl::StrCat(number, ", ", version));
      Put if_version;
      if_version.set_if_version(version);
      const std::string one = condition.SerializeAsString();
      const std::string other = if_version.SerializeAsString();
      ASSERT_FALSE(one.empty() || other.empty());
      EXPECT_EQ(decode(key + value + one + other), decode(key + value + other));
      EXPECT_EQ(decode(key + value + other + one), decode(key + value + one));
      EXPECT_EQ(decode(one + key + other + value), decode(key + other + value));
      EXPECT_EQ(decode(other + key + one + value), decode(key + one + value));
      EXPECT_EQ(decode(one + other + one), decode(one));
      EXPECT_EQ(decode(other + one + other), decode(other));
    }
  }
}

TEST(BatchRequestTest, AMessageInPiecesIsOneMessage) {
  const std::string bytes =
      Proto("namespace: 'n' operations { put { key: 'k' value: 'v' } }")
          .SerializeAsString();
  std::vector<grpc::Slice> slices;
  for (char c : bytes) slices.emplace_back(std::string(1, c));
  BatchRequest request;
  ASSERT_TRUE(
      request.Decode(grpc::ByteBuffer(slices.data(), slices.size())).ok());
  EXPECT_EQ(request.name(), "n");
  ASSERT_EQ(request.operations().size(), 1u);
  EXPECT_EQ(request.operations()[0].value, "v");
}

TEST(BatchRequestTest, NoneAndTooManyOperationsAreRefusedWithTheLimit) {
  BatchRequest request;
  const auto message = [](int operations, bool plain) {
    v1::ExecuteRequest proto;
    proto.set_namespace_("n");
    for (int i = 0; i < operations; ++i) {
      proto.add_operations()->mutable_get()->set_key("k");
    }
    std::string bytes = proto.SerializeAsString();
    // The name twice is not plain.
    if (!plain) bytes += Proto("namespace: 'n'").SerializeAsString();
    return Message(bytes);
  };
  for (bool plain : {false, true}) {
    const absl::Status none = request.Decode(message(0, plain));
    EXPECT_EQ(FieldOf(none), "operations");
    EXPECT_TRUE(request.Decode(message(4096, plain)).ok());
    EXPECT_EQ(request.operations().size(), 4096u);
    const absl::Status many = request.Decode(message(4097, plain));
    EXPECT_EQ(FieldOf(many), "operations");
    EXPECT_THAT(many.message(), HasSubstr("1 to 4096 operations, not 4097"));
  }
}

TEST(BatchRequestTest, AnAtomicBatchIsSmaller) {
  BatchRequest request;
  v1::ExecuteRequest proto;
  proto.set_atomic(true);
  for (int i = 0; i < 128; ++i) {
    proto.add_operations()->mutable_get()->set_key("k");
  }
  ASSERT_TRUE(request.Decode(Message(proto.SerializeAsString())).ok());
  EXPECT_TRUE(request.atomic());
  v1::PutRequest* put = proto.mutable_operations(0)->mutable_put();
  put->set_value(std::string(kMaxAtomicBytes, 'v'));
  EXPECT_THAT(request.Decode(Message(proto.SerializeAsString())).message(),
              HasSubstr("at most 1048576 bytes"));
  put->clear_value();
  proto.add_operations()->mutable_get()->set_key("k");
  EXPECT_THAT(request.Decode(Message(proto.SerializeAsString())).message(),
              HasSubstr("at most 128 operations"));
  proto.set_atomic(false);
  EXPECT_TRUE(request.Decode(Message(proto.SerializeAsString())).ok());
  EXPECT_FALSE(request.atomic());
}

TEST(BatchRequestTest, ALaterMessageLeavesNothingOfAnEarlier) {
  BatchRequest request;
  ASSERT_TRUE(
      request
          .Decode(Message(
              Proto("namespace: 'a' atomic: true operations { put { key: 'k' "
                    "condition: PUT_CONDITION_IF_ABSENT ttl {} } } "
                    "operations {}")
                  .SerializeAsString()))
          .ok());
  EXPECT_EQ(request.refused().size(), 1u);
  ASSERT_TRUE(
      request
          .Decode(Message(
              Proto("operations { get { key: 'l' } }").SerializeAsString()))
          .ok());
  EXPECT_EQ(request.name(), "");
  EXPECT_FALSE(request.atomic());
  EXPECT_TRUE(request.refused().empty());
  ASSERT_EQ(request.operations().size(), 1u);
  EXPECT_EQ(request.operations()[0].condition, Condition::kNone);
  EXPECT_EQ(request.operations()[0].key, "l");
}

}  // namespace
}  // namespace timecache::server
