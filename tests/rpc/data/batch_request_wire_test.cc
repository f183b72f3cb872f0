// Messages that no serializer writes and every parser must take: fields in any
// order, repeated, unknown. BatchRequest reads them as the generated parser
// does.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/support/batch_reference.h"
#include "tests/support/effort.h"
#include "tests/support/engine/dice.h"
#include "tests/support/net/wire_message.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kRounds = test::Rounds(15'000);

// The kinds of operations.
std::vector<const FieldDescriptor*> Kinds() {
  std::vector<const FieldDescriptor*> kinds;
  const auto& request =
      *v1::Operation::descriptor()->FindFieldByNumber(1)->containing_oneof();
  for (int i = 0; i < request.field_count(); ++i) {
    kinds.push_back(request.field(i));
  }
  return kinds;
}

// A batch of one request whose fields are these.
std::string BatchOf(const FieldDescriptor& kind, const std::string& fields) {
  return BytesField(v1::ExecuteRequest::kOperationsFieldNumber,
                    BytesField(kind.number(), fields));
}

// The generated parser logs each string that is not UTF-8.
class BatchRequestWireTest : public ::testing::Test {
 private:
  google::protobuf::LogSilencer silencer_;
};

void ExpectReadAsGenerated(const std::string& bytes) {
  ASSERT_EQ(DecodeBatch(Message(bytes)), ExpectedBatch(bytes))
      << absl::BytesToHexString(bytes);
}

// As `if_version` before `condition`, of which the last one counts.
TEST_F(BatchRequestWireTest, TwoFieldsInBothOrdersAreReadAsGenerated) {
  for (const FieldDescriptor* kind : Kinds()) {
    const Descriptor& request = *kind->message_type();
    const std::string key =
        BytesField(request.FindFieldByName("key")->number(), "key");
    for (int i = 0; i < request.field_count(); ++i) {
      for (int j = 0; j < request.field_count(); ++j) {
        SCOPED_TRACE(absl::StrCat(request.name(), ": ",
                                  request.field(i)->name(), ", ",
                                  request.field(j)->name()));
        for (const std::string& first : FieldEncodings(*request.field(i))) {
          for (const std::string& second : FieldEncodings(*request.field(j))) {
            ExpectReadAsGenerated(BatchOf(*kind, first + second));
            ExpectReadAsGenerated(BatchOf(*kind, key + first + second));
            ExpectReadAsGenerated(BatchOf(*kind, first + second + key));
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// Of requests with more fields, in as many orders as these have.
constexpr size_t kMaxOrderedFields = 7;
constexpr int kMaxOrders = 5'040;

TEST_F(BatchRequestWireTest, AllFieldsInEveryOrderAreReadAsGenerated) {
  for (const FieldDescriptor* kind : Kinds()) {
    const Descriptor& request = *kind->message_type();
    std::vector<std::string> fields;
    for (int i = 0; i < request.field_count(); ++i) {
      const FieldDescriptor& field = *request.field(i);
      if (field.name() == "namespace") continue;
      // One that means something.
      fields.push_back(FieldEncodings(field)[1]);
    }
    std::sort(fields.begin(), fields.end());
    std::mt19937 random(7);
    for (int orders = kMaxOrders; orders > 0; --orders) {
      std::string bytes;
      for (const std::string& field : fields) bytes += field;
      ExpectReadAsGenerated(BatchOf(*kind, bytes));
      if (HasFailure()) return;
      if (fields.size() > kMaxOrderedFields) {
        std::shuffle(fields.begin(), fields.end(), random);
      } else if (!std::next_permutation(fields.begin(), fields.end())) {
        break;
      }
    }
  }
}

TEST_F(BatchRequestWireTest, RepeatedAndUnknownFieldsAreReadAsGenerated) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed));
  Dice dice(seed);
  int read = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string bytes =
        RandomWireMessage(*v1::ExecuteRequest::descriptor(), &dice);
    ExpectReadAsGenerated(bytes);
    if (HasFailure()) return;
    read += absl::StartsWith(ExpectedBatch(bytes).status, "OK");
  }
  EXPECT_GT(read, kRounds / 10);
  EXPECT_LT(read, kRounds);
}

}  // namespace
}  // namespace timecache::server
