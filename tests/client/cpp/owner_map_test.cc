// What a client knows of owners, and when it is due.
#include "client/cpp/src/owners/owner_map.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/owners/owner_nodes.h"
#include "gtest/gtest.h"
#include "timecache/channel.h"

namespace timecache {
namespace {

class OwnerMapTest : public ::testing::Test {
 protected:
  SteadyTime At(absl::Duration after) const {
    return SteadyAfter(after, start_);
  }
  bool IsDue(absl::Duration after) const {
    return map_.Find("a", At(after)).is_due;
  }
  bool IsKnown() const { return map_.Find("a", start_).owners != nullptr; }

  static std::shared_ptr<const Owners> NoNode() {
    return std::make_shared<const Owners>(
        std::vector<std::shared_ptr<OwnerNode>>{nullptr},
        std::vector<uint8_t>{0});
  }

  const SteadyTime start_ = SteadyNow();
  OwnerMap map_;
};

TEST_F(OwnerMapTest, UnknownNamespaceIsDueUntilItIsAskedFor) {
  EXPECT_TRUE(IsDue(absl::ZeroDuration()));
  EXPECT_FALSE(IsKnown());
  EXPECT_TRUE(map_.Begin("a", start_));
  EXPECT_FALSE(IsDue(absl::Hours(1)));
  EXPECT_FALSE(map_.Begin("a", At(absl::Hours(1))));
}

TEST_F(OwnerMapTest, AnswerIsDueAfterItsAge) {
  map_.Begin("a", start_);
  map_.Learn("a", NoNode(), start_);
  EXPECT_TRUE(IsKnown());
  EXPECT_FALSE(IsDue(OwnerMap::kAnswerMaxAge - absl::Milliseconds(1)));
  EXPECT_TRUE(IsDue(OwnerMap::kAnswerMaxAge));
  EXPECT_TRUE(map_.Begin("a", At(OwnerMap::kAnswerMaxAge)));
  EXPECT_TRUE(IsKnown());
}

TEST_F(OwnerMapTest, DoubtMakesItDueButNotAtOnceAgain) {
  map_.Doubt("a");
  map_.Begin("a", start_);
  map_.Learn("a", NoNode(), start_);
  map_.Doubt("a");
  EXPECT_TRUE(IsKnown());
  EXPECT_FALSE(IsDue(OwnerMap::kDoubtPause - absl::Milliseconds(1)));
  EXPECT_TRUE(IsDue(OwnerMap::kDoubtPause));
}

TEST_F(OwnerMapTest, DoubtWhileItIsAskedForHoldsForTheAnswer) {
  map_.Begin("a", start_);
  map_.Doubt("a");
  EXPECT_FALSE(IsDue(absl::Hours(1)));
  map_.Learn("a", NoNode(), start_);
  EXPECT_TRUE(IsDue(OwnerMap::kDoubtPause));
  map_.Begin("a", At(OwnerMap::kDoubtPause));
  map_.Learn("a", NoNode(), At(OwnerMap::kDoubtPause));
  EXPECT_FALSE(IsDue(2 * OwnerMap::kDoubtPause));
}

TEST_F(OwnerMapTest, ServerThatHasNoneIsLeftAloneForLonger) {
  for (const absl::Status& why :
       {absl::FailedPreconditionError(""), absl::UnimplementedError(""),
        absl::PermissionDeniedError("")}) {
    OwnerMap map;
    map.Begin("a", start_);
    map.Learn("a", NoNode(), start_);
    map.Begin("a", At(OwnerMap::kAnswerMaxAge));
    map.Fail("a", why, start_);
    EXPECT_EQ(map.Find("a", start_).owners, nullptr);
    EXPECT_FALSE(map.Find("a", At(absl::Seconds(59))).is_due);
    EXPECT_TRUE(map.Find("a", At(OwnerMap::kRefusedPause)).is_due);
  }
}

TEST_F(OwnerMapTest, OtherErrorsAreRepeatedAndSilenceChangesNothing) {
  map_.Begin("a", start_);
  map_.Learn("a", NoNode(), start_);
  map_.Begin("a", At(OwnerMap::kAnswerMaxAge));
  map_.Fail("a", absl::UnavailableError(""), start_);
  EXPECT_TRUE(IsKnown());
  EXPECT_FALSE(IsDue(absl::Milliseconds(999)));
  EXPECT_TRUE(map_.Begin("a", At(OwnerMap::kFailedPause)));
  map_.Fail("a", absl::NotFoundError(""), start_);
  EXPECT_FALSE(IsKnown());
  EXPECT_TRUE(IsDue(OwnerMap::kFailedPause));
}

TEST_F(OwnerMapTest, ForgetsTheOneNotUsedForLongest) {
  const auto is_known = [&](size_t i) {
    return map_.Find(absl::StrCat(i), start_).owners != nullptr;
  };
  for (size_t i = 0; i <= OwnerMap::kNamespacesMax; ++i) {
    const SteadyTime now = At(absl::Milliseconds(i));
    map_.Begin(absl::StrCat(i), now);
    map_.Learn(absl::StrCat(i), NoNode(), now);
  }
  EXPECT_FALSE(is_known(0));
  EXPECT_TRUE(is_known(1));
  EXPECT_TRUE(is_known(OwnerMap::kNamespacesMax));
  // Not asked for any more.
  map_.Learn("0", NoNode(), start_);
  map_.Fail("0", absl::NotFoundError(""), start_);
  EXPECT_FALSE(is_known(0));
}

class OwnerNodesTest : public ::testing::Test {
 protected:
  static v1::GetOwnersResponse Answer(const std::vector<std::string>& all) {
    v1::GetOwnersResponse answer;
    for (const std::string& address : all) answer.add_addresses(address);
    return answer;
  }

  const Endpoints::ChannelMaker make_channel_ = [](const std::string& address)
      -> absl::StatusOr<std::shared_ptr<grpc::Channel>> {
    if (address == "refused:1") return absl::InvalidArgumentError("");
    return MakeChannel(address);
  };
  LazyCallDriver driver_;
  OwnerNodes nodes_{make_channel_, driver_};
};

TEST_F(OwnerNodesTest, EachPartitionHasItsNode) {
  const auto owners =
      nodes_.OwnersAt(Answer({"a:1", "", "b:1", "a:1", "no address"}));
  ASSERT_NE(owners, nullptr);
  EXPECT_EQ(owners->Of(0)->address(), "a:1");
  EXPECT_EQ(owners->Of(1), nullptr);
  EXPECT_EQ(owners->Of(2)->address(), "b:1");
  EXPECT_EQ(owners->Of(3), owners->Of(0));
  EXPECT_EQ(owners->Of(4), nullptr);
  EXPECT_EQ(owners->Of(5), owners->Of(0));
  EXPECT_EQ(nodes_.size(), 2u);
}

TEST_F(OwnerNodesTest, WithoutANodeThereAreNoOwners) {
  EXPECT_EQ(nodes_.OwnersAt(Answer({})), nullptr);
  EXPECT_EQ(nodes_.OwnersAt(Answer({"", "refused:1"})), nullptr);
}

TEST_F(OwnerNodesTest, ThoseThatNothingNamesAreClosed) {
  auto first = nodes_.OwnersAt(Answer({"a:1", "b:1"}));
  const auto second = nodes_.OwnersAt(Answer({"b:1"}));
  nodes_.CloseUnused();
  EXPECT_EQ(nodes_.size(), 2u);
  first.reset();
  nodes_.CloseUnused();
  EXPECT_EQ(nodes_.size(), 1u);
  EXPECT_EQ(second->Of(0), nodes_.OwnersAt(Answer({"b:1"}))->Of(0));
}

TEST_F(OwnerNodesTest, AreBounded) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i <= OwnerNodes::kNodesMax; ++i) {
    addresses.push_back(absl::StrCat("node-", i, ":1"));
  }
  const auto owners = nodes_.OwnersAt(Answer(addresses));
  EXPECT_EQ(nodes_.size(), OwnerNodes::kNodesMax);
  EXPECT_NE(owners->Of(OwnerNodes::kNodesMax - 1), nullptr);
  EXPECT_EQ(owners->Of(OwnerNodes::kNodesMax), nullptr);
}

TEST_F(OwnerNodesTest, NodeThatIsNotReachedIsLeftOutForLongerEachTime) {
  OwnerNode node("a:1", MakeChannel("a:1"), driver_);
  SteadyTime now = SteadyNow();
  EXPECT_FALSE(node.IsLeftOut(now));
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) {
    node.NotReached(now);
    // What fails meanwhile began before.
    node.NotReached(now);
    const SteadyTime until = SteadyAfter(absl::Seconds(seconds), now);
    EXPECT_TRUE(node.IsLeftOut(SteadyAfter(-absl::Nanoseconds(1), until)));
    EXPECT_FALSE(node.IsLeftOut(until));
    now = until;
  }
  node.Answered();
  node.NotReached(now);
  EXPECT_FALSE(node.IsLeftOut(SteadyAfter(kMinNodePause, now)));
}

}  // namespace
}  // namespace timecache
