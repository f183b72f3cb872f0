// The checker of histories against histories of which it is known whether they
// can be.
#include "tests/support/key_history.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace timecache::test {
namespace {

using enum HistoryKind;

constexpr int64_t kSecond = 1'000'000;
constexpr HistoryOptions kTenSecondTtl = {.ttl_us = 10 * kSecond,
                                          .width_us = kSecond};

// A call from the one moment to the other.
HistoryEntry At(HistoryKind kind, int64_t called_at, int64_t answered_at) {
  return {.kind = kind, .called_at = called_at, .answered_at = answered_at};
}

HistoryEntry Put(int64_t called_at, int64_t answered_at,
                 const std::string& value, uint64_t version) {
  HistoryEntry entry = At(kPut, called_at, answered_at);
  entry.value = value;
  entry.version = version;
  return entry;
}

HistoryEntry Got(int64_t called_at, int64_t answered_at,
                 const std::string& value, uint64_t version) {
  HistoryEntry entry = At(kGet, called_at, answered_at);
  entry.found = true;
  entry.got = value;
  entry.version = version;
  return entry;
}

HistoryEntry Missed(int64_t called_at, int64_t answered_at) {
  return At(kGet, called_at, answered_at);
}

HistoryEntry PutIf(int64_t called_at, int64_t answered_at, uint64_t if_version,
                   uint64_t version) {
  HistoryEntry entry = Put(called_at, answered_at, "changed", version);
  entry.if_version = if_version;
  entry.done = version != 0;
  entry.found = true;
  return entry;
}

HistoryEntry Added(int64_t called_at, int64_t answered_at, int64_t number,
                   int64_t result, uint64_t version) {
  HistoryEntry entry = At(kAdd, called_at, answered_at);
  entry.number = number;
  entry.found = result != number;
  entry.result = result;
  entry.version = version;
  return entry;
}

HistoryEntry Advanced(int64_t called_at, int64_t answered_at, int64_t to_us) {
  HistoryEntry entry = At(kAdvance, called_at, answered_at);
  entry.number = to_us;
  return entry;
}

HistoryEntry Unanswered(HistoryEntry entry) {
  entry.answered_at = HistoryEntry::kNever;
  return entry;
}

void ExpectVerdict(Verdict verdict, const std::vector<HistoryEntry>& history) {
  const HistoryVerdict found = CheckHistory(history, kTenSecondTtl);
  EXPECT_EQ(found.verdict, verdict) << found.why;
  EXPECT_EQ(found.why.empty(), verdict == Verdict::kLinearizable);
}
void ExpectGood(const std::vector<HistoryEntry>& history) {
  ExpectVerdict(Verdict::kLinearizable, history);
}
void ExpectBad(const std::vector<HistoryEntry>& history) {
  ExpectVerdict(Verdict::kNotLinearizable, history);
}

TEST(KeyHistoryTest, AReadThatGoesBackIsFound) {
  // The put is under way: each read may see the old or the new value, but none
  // the old one behind another that saw the new one.
  ExpectGood({Put(1, 2, "a", 7), Put(3, 20, "b", 8), Got(4, 5, "a", 7),
              Got(6, 7, "b", 8)});
  ExpectBad({Put(1, 2, "a", 7), Put(3, 20, "b", 8), Got(4, 5, "b", 8),
             Got(6, 7, "a", 7)});
}

TEST(KeyHistoryTest, TwoChangesOfOneVersionAreFound) {
  ExpectGood({Put(1, 2, "a", 7), PutIf(3, 6, 7, 8), PutIf(4, 5, 7, 0)});
  ExpectBad({Put(1, 2, "a", 7), PutIf(3, 6, 7, 8), PutIf(4, 5, 7, 9)});
  // Nor may the only one be refused.
  ExpectBad({Put(1, 2, "a", 7), PutIf(3, 4, 7, 0)});
}

TEST(KeyHistoryTest, ALostSumIsFound) {
  ExpectGood({Added(1, 4, 5, 5, 7), Added(2, 3, 2, 7, 8), Got(5, 6, "7", 8)});
  ExpectBad({Added(1, 4, 5, 5, 7), Added(2, 3, 2, 2, 8)});
}

TEST(KeyHistoryTest, WhatWasNotAnsweredMayHappenLateOrNever) {
  const auto put = Unanswered(Put(3, 0, "b", 0));
  ExpectGood({Put(1, 2, "a", 7), put, Got(4, 5, "a", 7)});
  ExpectGood({Put(1, 2, "a", 7), put, Got(4, 5, "b", 9)});
  ExpectGood({Put(1, 2, "a", 7), put, Got(4, 5, "a", 7), Got(6, 7, "b", 9)});
  ExpectBad({Put(1, 2, "a", 7), put, Got(4, 5, "b", 9), Got(6, 7, "a", 7)});
  // Not before it was called.
  ExpectBad(
      {Put(1, 2, "a", 7), Got(2, 3, "b", 9), Unanswered(Put(4, 0, "b", 0))});
}

TEST(KeyHistoryTest, EntriesDieOnTimeAndNotEarly) {
  const HistoryEntry put = Put(1, 2, "a", 7);
  // At 10 s, by the clock alone.
  ExpectGood({put, Advanced(3, 4, 10 * kSecond - 1), Got(5, 6, "a", 7)});
  ExpectBad({put, Advanced(3, 4, 10 * kSecond - 1), Missed(5, 6)});
  ExpectGood({put, Advanced(3, 4, 10 * kSecond), Missed(5, 6)});
  ExpectBad({put, Advanced(3, 4, 10 * kSecond), Got(5, 6, "a", 7)});
  // Between the call of an advance and its answer, either.
  ExpectGood(
      {put, Advanced(3, 8, 10 * kSecond), Got(4, 5, "a", 7), Missed(6, 7)});
  ExpectBad(
      {put, Advanced(3, 8, 10 * kSecond), Missed(4, 5), Got(6, 7, "a", 7)});
}

TEST(KeyHistoryTest, APutThatTheClockOvertakesMayDieByEitherTime) {
  // The clock went to 5 s while it was under way.
  HistoryEntry put = Put(1, 10, "a", 7);
  const HistoryEntry advance = Advanced(2, 3, 5 * kSecond);
  ExpectGood({put, advance, Advanced(11, 12, 10 * kSecond), Missed(13, 14)});
  ExpectGood(
      {put, advance, Advanced(11, 12, 10 * kSecond), Got(13, 14, "a", 7)});
  ExpectBad(
      {put, advance, Advanced(11, 12, 15 * kSecond), Got(13, 14, "a", 7)});
  ExpectBad({put, advance, Advanced(11, 12, 10 * kSecond), Missed(13, 14),
             Got(15, 16, "a", 7)});
  // Called when it was 5 s already.
  put.called_at = 4;
  put.clock_us = 5 * kSecond;
  ExpectBad({put, advance, Advanced(11, 12, 10 * kSecond), Missed(13, 14)});
}

TEST(KeyHistoryTest, ARenewalKeepsVersionAndLife) {
  HistoryEntry touch = At(kTouch, 5, 6);
  touch.found = true;
  touch.version = 7;
  touch.clock_us = 9 * kSecond;
  ExpectGood({Put(1, 2, "a", 7), Advanced(3, 4, 9 * kSecond), touch,
              Advanced(7, 8, 18 * kSecond), Got(9, 10, "a", 7)});
  ExpectBad({Put(1, 2, "a", 7), Advanced(3, 4, 9 * kSecond), touch,
             Advanced(7, 8, 18 * kSecond), Missed(9, 10)});
  HistoryEntry keeping = Put(5, 6, "b", 8);
  keeping.keep_deadline = true;
  keeping.clock_us = 9 * kSecond;
  ExpectGood({Put(1, 2, "a", 7), Advanced(3, 4, 9 * kSecond), keeping,
              Advanced(7, 8, 10 * kSecond), Missed(9, 10)});
  ExpectBad({Put(1, 2, "a", 7), Advanced(3, 4, 9 * kSecond), keeping,
             Advanced(7, 8, 10 * kSecond), Got(9, 10, "b", 8)});
}

TEST(KeyHistoryTest, ASearchThatIsTooLongSaysSo) {
  std::vector<HistoryEntry> history;
  for (int i = 0; i < 12; ++i) {
    history.push_back(Unanswered(Put(1, 0, std::to_string(i), 0)));
  }
  history.push_back(Got(20, 21, "none of them", 99));
  HistoryOptions few = kTenSecondTtl;
  few.max_states = 100;
  EXPECT_EQ(CheckHistory(history, few).verdict, Verdict::kGaveUp);
}

}  // namespace
}  // namespace timecache::test
