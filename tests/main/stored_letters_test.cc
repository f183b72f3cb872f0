#include "server/main/stored_letters.h"

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

TEST(StoredLettersTest, AreSettledAsSoonAsTheyMayBe) {
  bool may_settle = true;
  StoredLetters letters([&] { return may_settle; });
  int settled = 0;
  letters.Add([&] { ++settled; });
  EXPECT_EQ(settled, 1);
  may_settle = false;
  letters.Add([&] { ++settled; });
  letters.Add([&] { ++settled; });
  letters.Look();
  EXPECT_EQ(settled, 1);
  may_settle = true;
  letters.Look();
  EXPECT_EQ(settled, 3);
  letters.Look();
  EXPECT_EQ(settled, 3);
}

TEST(StoredLettersTest, AreDroppedWithTheirSlot) {
  bool may_settle = false;
  StoredLetters letters([&] { return may_settle; });
  int settled = 0;
  letters.Add([&] { ++settled; });
  letters.Drop();
  may_settle = true;
  letters.Look();
  letters.Add([&] { ++settled; });
  EXPECT_EQ(settled, 0);
}

}  // namespace
}  // namespace timecache::server
