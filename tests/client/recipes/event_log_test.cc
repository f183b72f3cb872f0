#include "timecache/recipes/event_log.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/recipes/recipe_fixture.h"
#include "tests/support/engine/dice.h"
#include "timecache/status.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kChunk = absl::Seconds(2);
constexpr int kChunks = 5;
constexpr EventLogOptions kOptions = {.chunk = kChunk, .chunks = kChunks};
// A bucket of the default namespace.
constexpr absl::Duration kWidth = absl::Milliseconds(300);

std::vector<std::string> DataOf(const absl::StatusOr<EventLog::Page>& page) {
  EXPECT_TRUE(page.ok()) << page.status();
  std::vector<std::string> data;
  if (!page.ok()) return data;
  for (const EventLog::Event& event : page->events) data.push_back(event.data);
  return data;
}

class EventLogTest : public RecipeTest {
 protected:
  // The next chunk's begin.
  absl::Time NextChunk() const {
    return absl::UnixEpoch() + absl::Floor(Now() - absl::UnixEpoch(), kChunk) +
           kChunk;
  }
  void PassTo(absl::Time time) { Pass(time - Now()); }
  void Append(const std::string& data) {
    EXPECT_TRUE(log_.Append(Now(), data).ok());
  }

  const EventLog log_{client_, "log", kOptions};
};

TEST_F(EventLogTest, EventsBetweenTwoTimesComeInOrder) {
  PassTo(NextChunk());
  const absl::Time begin = Now();
  // Over three chunks, and not in order.
  for (const int second : {4, 0, 3, 1, 2}) {
    EXPECT_TRUE(
        log_.Append(begin + absl::Seconds(second), absl::StrCat(second)).ok());
  }
  const auto between = [&](absl::Duration from, absl::Duration to) {
    return DataOf(log_.Read(begin + from, begin + to));
  };
  EXPECT_THAT(between(absl::ZeroDuration(), absl::Seconds(5)),
              ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(between(absl::Seconds(1), absl::Seconds(3)),
              ElementsAre("1", "2"));
  EXPECT_THAT(between(absl::Seconds(1) + absl::Microseconds(1),
                      absl::Seconds(3) + absl::Microseconds(1)),
              ElementsAre("2", "3"));
  EXPECT_THAT(between(absl::Seconds(2), absl::Seconds(2)), IsEmpty());
  EXPECT_THAT(between(-absl::Seconds(3), absl::ZeroDuration()), IsEmpty());
}

TEST_F(EventLogTest, AnEventIsKeptForAllChunksButOne) {
  PassTo(NextChunk());
  const absl::Time begin = Now();
  Append("first of its chunk");
  PassTo(begin + kChunk - absl::Microseconds(1));
  Append("last of its chunk");
  // (chunks - 1) x chunk after the last one.
  PassTo(begin + kChunk * kChunks - absl::Microseconds(1));
  auto page = log_.Read(begin, Now());
  EXPECT_FALSE(page->may_have_missed);
  EXPECT_THAT(DataOf(page),
              ElementsAre("first of its chunk", "last of its chunk"));
  PassTo(begin + kChunk * kChunks + kWidth);
  page = log_.Read(begin, Now());
  EXPECT_TRUE(page->may_have_missed);
  EXPECT_THAT(DataOf(page), IsEmpty());
}

TEST_F(EventLogTest, AReaderGoesOnBehindWhatItHasSeen) {
  PassTo(NextChunk());
  Append("before");
  PassTo(NextChunk() + absl::Microseconds(1));
  auto position = log_.PositionAt(Now());
  const auto read = [&] { return DataOf(log_.ReadNew(&position, Now())); };
  EXPECT_THAT(read(), IsEmpty());
  Append("1");
  Append("2");
  EXPECT_THAT(read(), ElementsAre("1", "2"));
  EXPECT_THAT(read(), IsEmpty());
  Append("3");
  Pass(kChunk);
  Append("4");
  EXPECT_THAT(read(), ElementsAre("3", "4"));
  // Of the chunk before: late, but not too late.
  ASSERT_TRUE(log_.Append(Now() - kChunk, "late").ok());
  EXPECT_THAT(read(), ElementsAre("late"));
  Pass(2 * kChunk);
  Append("5");
  EXPECT_THAT(read(), ElementsAre("5"));
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(EventLogTest, AReaderThatWasAwayTooLongIsToldSo) {
  auto position = log_.PositionAt(Now());
  Append("gone");
  Pass(kChunk * (kChunks - 1));
  EXPECT_FALSE(log_.ReadNew(&position, Now())->may_have_missed);
  Append("1");
  Pass(kChunk * (kChunks + 1));
  Append("2");
  const auto page = log_.ReadNew(&position, Now());
  EXPECT_TRUE(page->may_have_missed);
  EXPECT_THAT(DataOf(page), ElementsAre("2"));
}

TEST_F(EventLogTest, AnEventThatIsAppendedAgainComesOnce) {
  auto position = log_.PositionAt(Now());
  const EventLog::Event event = {
      .time = Now(), .data = "once", .id = EventLog::NewId()};
  ASSERT_TRUE(log_.Append(event).ok());
  EXPECT_THAT(DataOf(log_.ReadNew(&position, Now())), ElementsAre("once"));
  // Also by who has read it.
  ASSERT_TRUE(log_.Append(event).ok());
  EXPECT_THAT(DataOf(log_.ReadNew(&position, Now())), IsEmpty());
  EXPECT_THAT(DataOf(log_.Read(Now(), Now() + kChunk)), ElementsAre("once"));
}

using UnansweredEventLogTest = UnansweredTest;

TEST_F(UnansweredEventLogTest, AnEventIsAppendedAgain) {
  const EventLog log(client_, "log", kOptions);
  const EventLog impatient(MakeImpatientClient(), "log", kOptions);
  const EventLog::Event event = {
      .time = Now(), .data = "once", .id = EventLog::NewId()};
  LeaveUnanswered([&] { return impatient.Append(event); });
  ASSERT_TRUE(log.Append(event).ok());
  EXPECT_THAT(DataOf(log.Read(Now(), Now() + kChunk)), ElementsAre("once"));
}

// More than one response has room for.
TEST_F(EventLogTest, LargeChunksAreReadToTheEnd) {
  PassTo(NextChunk());
  const absl::Time begin = Now();
  const std::string large(300'000, 'x');
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(
          log_.Append(begin + kChunk * chunk, absl::StrCat(chunk, i, large))
              .ok());
    }
  }
  const auto page = log_.Read(begin, begin + kChunk * kChunks);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->events.size(), 3u * kChunks);
  for (int i = 0; i < 3 * kChunks; ++i) {
    EXPECT_EQ(page->events[i].data.substr(0, 2), absl::StrCat(i / 3, i % 3));
  }
}

TEST_F(EventLogTest, AChunkHasAnEnd) {
  const std::string large(900'000, 'x');
  EXPECT_TRUE(log_.Append(Now(), large).ok());
  EXPECT_TRUE(
      HasReason(log_.Append(Now(), large), ErrorReason::kValueTooLarge));
  EXPECT_EQ(log_.Read(Now(), Now() + kChunk)->events.size(), 1u);
}

TEST_F(EventLogTest, AChunkThatExpiresCanBeKept) {
  const auto watcher = Watch({.key_prefix = log_.key_prefix()});
  Append("a");
  Append("b");
  Pass(kChunk * (kChunks + 1));
  const auto died = ReadEvents(*watcher);
  ASSERT_EQ(died.size(), 1u);
  const auto events = EventLog::Decode(died[0].value);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ((*events)[1].data, "b");
  EXPECT_TRUE(
      absl::IsDataLoss(EventLog::Decode(died[0].value.substr(0, 30)).status()));
}

// Writers whose clocks are up to a chunk behind, a clock that moves, and a
// reader that follows all the time.
TEST_F(EventLogTest, ManyWritersLoseNothing) {
  constexpr int kWriters = 4;
  constexpr int kEvents = 200;
  auto position = log_.PositionAt(Now());
  const absl::Time begin = Now();
  // Shared by who appends: the time stands still meanwhile.
  absl::Mutex time;
  std::atomic<int> running = kWriters;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      const EventLog log(MakeClient(), "log", {.chunk = kChunk, .chunks = 100});
      Dice dice(static_cast<uint64_t>(i));
      for (int event = 0; event < kEvents; ++event) {
        const auto behind = absl::Milliseconds(dice.Draw(0, 500));
        absl::ReaderMutexLock lock(&time);
        EXPECT_TRUE(log.Append(std::max(begin, Now() - behind),
                               absl::StrCat(i, "-", event))
                        .ok());
      }
      --running;
    });
  }
  const EventLog log(client_, "log", {.chunk = kChunk, .chunks = 100});
  std::map<std::string, int> seen;
  const auto read = [&] {
    const auto page = log.ReadNew(&position, Now());
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_FALSE(page->may_have_missed);
    for (const EventLog::Event& event : page->events) ++seen[event.data];
  };
  while (running > 0) {
    read();
    absl::MutexLock lock(&time);
    if (Now() - begin < kChunk * 20) Pass(absl::Milliseconds(100));
  }
  for (std::thread& writer : writers) writer.join();
  read();
  EXPECT_EQ(seen.size(), static_cast<size_t>(kWriters * kEvents));
  for (const auto& [data, times] : seen) EXPECT_EQ(times, 1) << data;
  EXPECT_EQ(DataOf(log.Read(begin, Now() + kChunk)).size(),
            static_cast<size_t>(kWriters * kEvents));
}

}  // namespace
}  // namespace timecache::test
