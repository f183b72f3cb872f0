// Who pays for bytes that several messages refer to.

#include "server/edge/response/shared_bytes.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "server/edge/response/response_ledger.h"

namespace timecache::server {
namespace {

constexpr int64_t kSharedBytes = 1 << 20;

class SharedBytesTest : public ::testing::Test {
 protected:
  std::shared_ptr<SharedBytes> Make() {
    auto owner = std::make_shared<std::string>(kSharedBytes, 'v');
    owner_ = owner;
    const absl::string_view bytes = *owner;
    return std::make_shared<SharedBytes>(std::move(owner), bytes, kSharedBytes);
  }

  ResponseLedger ledger_{{.max_bytes = 16 * kSharedBytes}};
  const ResponseAccountRef one_ = ledger_.Find("ipv4:10.0.0.1:1");
  const ResponseAccountRef two_ = ledger_.Find("ipv4:10.0.0.1:2");
  std::weak_ptr<std::string> owner_;
};

TEST_F(SharedBytesTest, CountOnceWhileAMessageRefersToThem) {
  const std::shared_ptr<SharedBytes> bytes = Make();
  EXPECT_EQ(one_->bytes(), 0);
  auto first =
      std::make_unique<grpc::Slice>(SharedBytes::Share(bytes, one_.get()));
  EXPECT_EQ(first->size(), static_cast<size_t>(kSharedBytes));
  auto second =
      std::make_unique<grpc::Slice>(SharedBytes::Share(bytes, one_.get()));
  EXPECT_EQ(one_->bytes(), kSharedBytes);
  EXPECT_EQ(one_->impatient_bytes(), 0);
  first.reset();
  EXPECT_EQ(one_->bytes(), kSharedBytes);
  second.reset();
  EXPECT_EQ(one_->bytes(), 0);
  EXPECT_EQ(ledger_.GetStatistics().bytes, 0);
}

TEST_F(SharedBytesTest, CountForWhoHoldsThemStill) {
  const std::shared_ptr<SharedBytes> bytes = Make();
  auto first =
      std::make_unique<grpc::Slice>(SharedBytes::Share(bytes, one_.get()));
  const grpc::Slice second = SharedBytes::Share(bytes, two_.get());
  EXPECT_EQ(one_->bytes(), kSharedBytes);
  EXPECT_EQ(two_->bytes(), 0);
  first.reset();
  EXPECT_EQ(one_->bytes(), 0);
  EXPECT_EQ(two_->bytes(), kSharedBytes);
}

TEST_F(SharedBytesTest, AreKeptByTheLastSlice) {
  std::shared_ptr<SharedBytes> bytes = Make();
  auto first =
      std::make_unique<grpc::Slice>(SharedBytes::Share(bytes, one_.get()));
  auto uncounted =
      std::make_unique<grpc::Slice>(SharedBytes::Share(bytes, nullptr));
  bytes.reset();
  first.reset();
  EXPECT_FALSE(owner_.expired());
  uncounted.reset();
  EXPECT_TRUE(owner_.expired());
}

}  // namespace
}  // namespace timecache::server
