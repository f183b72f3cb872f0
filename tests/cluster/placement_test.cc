#include "server/cluster/placement.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/effort.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {
namespace {

using test::Seed;

// As what follows each other wants them, with no standby that has caught up.
class PlacementTest : public testing::Test {
 protected:
  PlacementTest() : dice_(Seed()) {}

  std::vector<std::string> RandomNodes(int count) {
    std::vector<std::string> nodes;
    while (static_cast<int>(nodes.size()) < count) {
      nodes.push_back(absl::StrCat("node-", dice_.Draw(0, 1'000'000)));
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  static std::vector<SlotHolders> Owned(const std::vector<SlotWish>& wishes) {
    std::vector<SlotHolders> slots(wishes.size());
    for (size_t s = 0; s < slots.size(); ++s) slots[s].owner = wishes[s].owner;
    return slots;
  }

  // Without those of nodes that are no more.
  static std::vector<SlotHolders> OwnedBy(const std::vector<std::string>& nodes,
                                          const std::vector<SlotWish>& wishes) {
    std::vector<SlotHolders> slots = Owned(wishes);
    for (SlotHolders& slot : slots) {
      if (!std::count(nodes.begin(), nodes.end(), slot.owner)) slot.owner = "";
    }
    return slots;
  }

  static void ExpectBalance(const std::vector<std::string>& nodes,
                            const std::vector<SlotWish>& wishes) {
    std::map<std::string, size_t> owned;
    std::map<std::string, size_t> stood_by;
    for (const SlotWish& wish : wishes) {
      ++owned[wish.owner];
      ++stood_by[wish.standby];
      EXPECT_NE(wish.owner, wish.standby);
    }
    const size_t least = wishes.size() / nodes.size();
    const size_t most = (wishes.size() + nodes.size() - 1) / nodes.size();
    size_t sum = 0;
    for (const std::string& node : nodes) {
      EXPECT_GE(owned[node], least);
      EXPECT_LE(owned[node], most);
      EXPECT_LE(stood_by[node], most);
      sum += owned[node];
    }
    EXPECT_EQ(sum, wishes.size());
  }

  static std::vector<size_t> Moved(const std::vector<SlotWish>& before,
                                   const std::vector<SlotWish>& after) {
    std::vector<size_t> moved;
    for (size_t s = 0; s < before.size(); ++s) {
      if (before[s].owner != after[s].owner) moved.push_back(s);
    }
    return moved;
  }

  Dice dice_;
};

TEST_F(PlacementTest, IsEvenWhateverTheNumbers) {
  for (int nodes = 2; nodes <= 9; ++nodes) {
    for (size_t slots = 1; slots <= 33; ++slots) {
      const std::vector<std::string> names = RandomNodes(nodes);
      ExpectBalance(names, PlaceSlots(names, std::vector<SlotHolders>(slots)));
    }
  }
}

TEST_F(PlacementTest, OneNodeOwnsAllAndNoneStandsBy) {
  EXPECT_THAT(PlaceSlots({"a"}, std::vector<SlotHolders>(2)),
              testing::Each(SlotWish{"a", ""}));
  EXPECT_THAT(PlaceSlots({}, std::vector<SlotHolders>(2)),
              testing::Each(SlotWish{"", ""}));
}

TEST_F(PlacementTest, AFourthNodeGetsItsShareAlone) {
  for (const size_t slots : {16, 64}) {
    for (int i = 0; i < 50; ++i) {
      const std::vector<std::string> four = RandomNodes(4);
      std::vector<std::string> three = four;
      const std::string added = three[static_cast<size_t>(i % 4)];
      three.erase(three.begin() + i % 4);
      const auto before = PlaceSlots(three, std::vector<SlotHolders>(slots));
      const auto after = PlaceSlots(four, Owned(before));
      ExpectBalance(four, after);
      const std::vector<size_t> moved = Moved(before, after);
      EXPECT_LE(moved.size() * 100, slots * 30);
      for (const size_t s : moved) EXPECT_EQ(after[s].owner, added);
    }
  }
}

TEST_F(PlacementTest, OnlyTheSlotsOfALostNodeMove) {
  for (const size_t slots : {16, 64}) {
    for (int i = 0; i < 50; ++i) {
      const std::vector<std::string> four = RandomNodes(4);
      std::vector<std::string> three = four;
      const std::string lost = three[static_cast<size_t>(i % 4)];
      three.erase(three.begin() + i % 4);
      const auto before = PlaceSlots(four, std::vector<SlotHolders>(slots));
      const auto after = PlaceSlots(three, OwnedBy(three, before));
      ExpectBalance(three, after);
      for (const size_t s : Moved(before, after)) {
        EXPECT_EQ(before[s].owner, lost);
      }
    }
  }
}

TEST_F(PlacementTest, ASlotWithoutAnOwnerIsForOneThatReplaysIt) {
  const std::vector<std::string> nodes = {"a", "b", "c"};
  std::vector<SlotHolders> slots(3);
  slots[0].owner = "a";
  slots[1].standbys = {"c"};
  slots[2].standbys = {"b"};
  const auto wishes = PlaceSlots(nodes, slots);
  EXPECT_EQ(wishes[0].owner, "a");
  EXPECT_EQ(wishes[1].owner, "c");
  EXPECT_EQ(wishes[2].owner, "b");
}

// Whatever the slots are owned by at first, and in whatever order they move.
TEST_F(PlacementTest, AsManyMoveAsAreWantedToAtFirst) {
  for (int i = 0; i < 500; ++i) {
    const std::vector<std::string> nodes =
        RandomNodes(static_cast<int>(dice_.Draw(2, 7)));
    std::vector<SlotHolders> slots(static_cast<size_t>(dice_.Draw(1, 40)));
    for (SlotHolders& slot : slots) {
      slot.owner = nodes[dice_.Index(1 + dice_.Index(nodes.size()))];
    }
    std::vector<SlotWish> wishes = PlaceSlots(nodes, slots);
    ExpectBalance(nodes, wishes);
    const auto to_move = [&] {
      std::vector<size_t> moves;
      for (size_t s = 0; s < slots.size(); ++s) {
        if (slots[s].owner != wishes[s].owner) moves.push_back(s);
      }
      return moves;
    };
    size_t left = to_move().size();
    while (left > 0) {
      const std::vector<size_t> moves = to_move();
      EXPECT_EQ(moves.size(), left--) << "round " << i;
      const size_t s = moves[dice_.Index(moves.size())];
      slots[s].owner = wishes[s].owner;
      wishes = PlaceSlots(nodes, slots);
    }
    EXPECT_THAT(to_move(), testing::IsEmpty());
  }
}

// Nodes of different versions share a cluster.
TEST_F(PlacementTest, ScoresNeverChange) {
  EXPECT_EQ(PlacementScore(0, "a"), 6857225946766476583u);
  EXPECT_EQ(PlacementScore(63, "node-1"), 4730423624966198292u);
}

}  // namespace
}  // namespace timecache::server
