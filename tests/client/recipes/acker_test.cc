#include "timecache/recipes/acker.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/recipes/recipe_fixture.h"
#include "tests/support/engine/dice.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kTtl = absl::Seconds(10);
constexpr absl::Duration kDeath = absl::Milliseconds(10'300);

class AckerTest : public RecipeTest {
 protected:
  std::vector<std::string> ReadFailed(Watcher& watcher) const {
    std::vector<std::string> roots;
    for (const ExpiredEvent& event : ReadEvents(watcher)) {
      auto root = acker_.FailedRoot(event);
      if (root) roots.push_back(*std::move(root));
    }
    return roots;
  }

  const Acker acker_{client_, "acks", {.ttl = kTtl}};
  const uint64_t a_ = Acker::NewId();
  const uint64_t b_ = Acker::NewId();
  const uint64_t c_ = Acker::NewId();
};

TEST_F(AckerTest, ATreeIsDoneWithItsLastTuple) {
  EXPECT_EQ(acker_.Track("m", {a_}).value(), false);
  EXPECT_EQ(acker_.Ack("m", a_, {b_, c_}).value(), false);
  EXPECT_EQ(acker_.Ack("m", c_).value(), false);
  EXPECT_EQ(acker_.Ack("m", b_).value(), true);
  EXPECT_EQ(client_.Size()->entries, 0u);
}

TEST_F(AckerTest, TheOrderDoesNotMatter) {
  EXPECT_EQ(acker_.Ack("m", b_).value(), false);
  EXPECT_EQ(acker_.Ack("m", a_, {b_}).value(), false);
  EXPECT_EQ(acker_.Track("m", {a_}).value(), true);
  // A source that emits nothing is done.
  EXPECT_EQ(acker_.Track("nothing", {}).value(), true);
}

TEST_F(AckerTest, ALostAcknowledgementFailsTheTreeOnce) {
  const auto watcher = Watch();
  acker_.Track("lost", {a_}).value();
  acker_.Track("done", {b_}).value();
  EXPECT_EQ(acker_.Ack("done", b_).value(), true);
  Pass(kDeath);
  EXPECT_THAT(ReadFailed(*watcher), ElementsAre("lost"));
  // It comes late: to a tree that has failed, and to one that is done.
  EXPECT_EQ(acker_.Ack("lost", a_).value(), false);
  EXPECT_EQ(acker_.Ack("done", b_).value(), false);
  Pass(kDeath);
  EXPECT_THAT(ReadFailed(*watcher), IsEmpty());
}

TEST_F(AckerTest, ATreeThatIsGivenUpMakesNoEvent) {
  const auto watcher = Watch();
  acker_.Track("m", {a_}).value();
  EXPECT_EQ(acker_.Fail("m").value(), true);
  EXPECT_EQ(acker_.Fail("m").value(), false);
  EXPECT_EQ(acker_.Ack("m", a_).value(), false);
  Pass(kDeath);
  EXPECT_THAT(ReadFailed(*watcher), IsEmpty());
}

TEST_F(AckerTest, OtherKeysAreNoTrees) {
  ExpiredEvent event;
  event.key = "acks/7";
  event.value = "8";
  EXPECT_EQ(acker_.FailedRoot(event), "7");
  event.value = "9";  // Not tracked.
  EXPECT_EQ(acker_.FailedRoot(event), std::nullopt);
  event.value = "no number";
  EXPECT_EQ(acker_.FailedRoot(event), std::nullopt);
  event.key = "acker/7";
  event.value = "8";
  EXPECT_EQ(acker_.FailedRoot(event), std::nullopt);
}

using UnansweredAckerTest = UnansweredTest;

TEST_F(UnansweredAckerTest, AnAcknowledgementThatHappenedIsNotRepeated) {
  const Acker acker(client_, "acks", {.ttl = kTtl});
  const Acker impatient(MakeImpatientClient(), "acks", {.ttl = kTtl});
  const uint64_t a = Acker::NewId();
  const uint64_t b = Acker::NewId();
  acker.Track("m", {a, b}).value();
  LeaveUnanswered([&] { return impatient.Ack("m", a).status(); });
  EXPECT_EQ(acker.Ack("m", b).value(), true);
}

// A tree of up to so many tuples, as calls: the tracking, and the
// acknowledgement of each.
struct Call {
  int tree = 0;
  bool is_track = false;
  uint64_t tuple = 0;
  std::vector<uint64_t> emitted = {};
};

std::vector<Call> MakeTree(int tree, Dice& dice) {
  std::vector<Call> calls = {{.tree = tree, .is_track = true}};
  std::vector<uint64_t> open;
  const auto emit = [&](int64_t most, std::vector<uint64_t>* to) {
    for (int64_t i = dice.Draw(0, most); i > 0; --i) {
      open.push_back(Acker::NewId());
      to->push_back(open.back());
    }
  };
  open.push_back(Acker::NewId());
  calls[0].emitted = {open.back()};
  while (!open.empty()) {
    const uint64_t tuple = open.back();
    open.pop_back();
    Call call = {.tree = tree, .tuple = tuple};
    if (calls.size() < 8) emit(3, &call.emitted);
    calls.push_back(std::move(call));
  }
  return calls;
}

TEST_F(AckerTest, RandomTreesInRandomOrdersEndOnceEach) {
  constexpr int kTrees = 300;
  constexpr int kThreads = 4;
  constexpr int kLossesPerMille = 100;
  const auto watcher = Watch();
  Dice dice(1);
  std::vector<Call> calls;
  std::vector<Call> lost;
  std::vector<bool> is_lost(kTrees);
  for (int tree = 0; tree < kTrees; ++tree) {
    std::vector<Call> these = MakeTree(tree, dice);
    if (dice.Chance(kLossesPerMille)) {
      is_lost[tree] = true;
      lost.push_back(these.back());
      these.pop_back();
    }
    calls.insert(calls.end(), these.begin(), these.end());
  }
  std::shuffle(calls.begin(), calls.end(), std::mt19937_64(2));
  ASSERT_GT(lost.size(), 10u);

  absl::Mutex mu;
  std::vector<int> done(kTrees);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Acker acker(MakeClient(), "acks", {.ttl = kTtl});
      for (size_t at = static_cast<size_t>(i); at < calls.size();
           at += kThreads) {
        const Call& call = calls[at];
        const std::string root = absl::StrCat(call.tree);
        const auto is_done = call.is_track
                                 ? acker.Track(root, call.emitted)
                                 : acker.Ack(root, call.tuple, call.emitted);
        ASSERT_TRUE(is_done.ok()) << is_done.status();
        absl::MutexLock lock(&mu);
        done[call.tree] += *is_done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int tree = 0; tree < kTrees; ++tree) {
    EXPECT_EQ(done[tree], is_lost[tree] ? 0 : 1) << tree;
  }

  Pass(kDeath);
  std::map<std::string, int> failed;
  for (const std::string& root : ReadFailed(*watcher)) ++failed[root];
  EXPECT_EQ(failed.size(), lost.size());
  for (const Call& call : lost) {
    EXPECT_EQ(failed[absl::StrCat(call.tree)], 1);
    // Found after all, and too late.
    EXPECT_EQ(
        acker_.Ack(absl::StrCat(call.tree), call.tuple, call.emitted).value(),
        false);
  }
  Pass(kDeath);
  EXPECT_THAT(ReadFailed(*watcher), IsEmpty());
}

}  // namespace
}  // namespace timecache::test
