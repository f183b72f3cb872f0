// What an owner makes of what brokers answer.
#include "server/log/kafka/partition_appender.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/log/kafka/simulated_partition.h"

namespace timecache::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using Positions = std::vector<absl::StatusOr<uint64_t>>;

class PartitionAppenderTest : public testing::Test {
 protected:
  PartitionAppenderTest() { Claim(1, &filter_); }

  uint64_t Claim(uint64_t claim, LogFilter* filter) {
    const uint64_t offset = log_.Append(EncodeClaim({claim, 7, "node"}));
    if (filter != nullptr) {
      std::map<uint64_t, std::string> records;
      EXPECT_EQ(ReadLog(log_, log_.low, filter, &records), absl::OkStatus());
    }
    return offset;
  }

  PartitionAppender& appender() {
    if (!appender_.has_value()) {
      appender_.emplace(
          0, std::move(filter_), log_.end - 1, &io_,
          [this](const absl::Status& why) { lost_ = why; },
          [this] { return may_delete_; });
    }
    return *appender_;
  }

  void Append(std::vector<std::string> records) {
    const size_t index = done_.size();
    done_.emplace_back(absl::UnknownError("not done"));
    appender().Append(
        std::move(records), [this, index](absl::StatusOr<uint64_t> position,
                                          std::vector<std::string>) {
          EXPECT_EQ(done_[index].status().code(), absl::StatusCode::kUnknown);
          done_[index] = std::move(position);
        });
  }

  std::map<uint64_t, std::string> Records() {
    std::map<uint64_t, std::string> records;
    LogFilter filter;
    EXPECT_EQ(ReadLog(log_, log_.low, &filter, &records), absl::OkStatus());
    return records;
  }

  void ExpectLost(absl::StatusCode code) {
    EXPECT_EQ(lost_.code(), code) << lost_;
    for (const auto& done : done_) {
      EXPECT_EQ(done.status().code(), absl::StatusCode::kFailedPrecondition);
    }
    Append({"after"});
    EXPECT_EQ(done_.back().status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(appender().idle());
  }

  SimulatedLog log_;
  SimulatedIo io_{&log_};
  LogFilter filter_;
  bool may_delete_ = true;
  std::optional<PartitionAppender> appender_;
  std::vector<absl::StatusOr<uint64_t>> done_;
  absl::Status lost_;
};

TEST_F(PartitionAppenderTest, OffsetsThatFollowEachOtherNeedNoLook) {
  Append({"a", "b"});
  io_.Run();
  Append({"c"});
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u, 2u));
  EXPECT_EQ(io_.reads, 0u);
  EXPECT_EQ(appender().End(), 3u);
  EXPECT_THAT(Records(), ElementsAre(Pair(0, "a"), Pair(1, "b"), Pair(2, "c")));
}

TEST_F(PartitionAppenderTest, WhatWaitsIsTheNextMessage) {
  for (const char* record : {"a", "b", "c", "d"}) Append({record});
  EXPECT_EQ(io_.sends, 1u);
  io_.Run();
  EXPECT_EQ(io_.sends, 2u);
  EXPECT_THAT(done_, ElementsAre(0u, 1u, 2u, 3u));
}

TEST_F(PartitionAppenderTest, AMessageThatWasRefusedIsSentAgain) {
  io_.answers = {Answer::kRefused, Answer::kRefused};
  Append({"a"});
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u));
  EXPECT_EQ(io_.sends, 3u);
  EXPECT_EQ(io_.reads, 0u);
}

TEST_F(PartitionAppenderTest, AnAttemptOfUnknownOutcomeCountsOnce) {
  for (const Answer answer : {Answer::kUnknownStored, Answer::kUnknownLost}) {
    io_.answers = {answer};
    Append({"a"});
    io_.Run();
  }
  Append({"b"});
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(Records(), ElementsAre(Pair(0, "a"), Pair(1, "a"), Pair(2, "b")));
  EXPECT_EQ(io_.reads, 1u);
}

TEST_F(PartitionAppenderTest, ALateMessageIsVoid) {
  io_.answers = {Answer::kUnknownLate};
  Append({"a"});
  io_.Run();
  log_.Append(log_.late[0]);
  Append({"b"});
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u, 1u));
  EXPECT_THAT(Records(), ElementsAre(Pair(0, "a"), Pair(1, "b")));
}

TEST_F(PartitionAppenderTest, SkippedOffsetsAndGarbageAreNoLoss) {
  Append({"a"});
  io_.Run();
  log_.end += 5;
  log_.Append("garbage");
  Append({"b"});
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u, 1u));
  EXPECT_THAT(Records(), ElementsAre(Pair(0, "a"), Pair(1, "b")));
}

TEST_F(PartitionAppenderTest, AnotherClaimEndsIt) {
  Append({"a"});
  io_.Run();
  done_.clear();
  Claim(2, nullptr);
  Append({"b"});
  Append({"c"});
  io_.Run();
  EXPECT_THAT(std::string(lost_.message()), HasSubstr("another node"));
  EXPECT_THAT(Records(), ElementsAre(Pair(0, "a")));
  ExpectLost(absl::StatusCode::kFailedPrecondition);
}

TEST_F(PartitionAppenderTest, AClaimBehindAMessageDoesNotUndoIt) {
  Append({"a"});
  Append({"b"});
  io_.RunOne();
  io_.RunOne();
  Claim(2, nullptr);
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u, 1u));
  EXPECT_EQ(lost_, absl::OkStatus());
}

TEST_F(PartitionAppenderTest, AnOffsetThatCannotBeIsLookedInto) {
  Append({"a"});
  io_.Run();
  io_.answers = {Answer::kOffsetZero, Answer::kOffsetMissing};
  Append({"b"});
  io_.Run();
  EXPECT_EQ(lost_, absl::OkStatus());
  EXPECT_THAT(done_, ElementsAre(0u, 1u));
  EXPECT_THAT(Records(), ElementsAre(Pair(0, "a"), Pair(1, "b")));
}

TEST_F(PartitionAppenderTest, ATopicThatWasMadeAnewIsALoss) {
  Append({"a"});
  Append({"b"});
  io_.Run();
  done_.clear();
  log_ = SimulatedLog();
  Append({"c"});
  io_.Run();
  EXPECT_THAT(std::string(lost_.message()), HasSubstr("made anew"));
  ExpectLost(absl::StatusCode::kDataLoss);
}

TEST_F(PartitionAppenderTest, ALogThatGrewAnewBeyondTheOldOneIsALoss) {
  Append({"a"});
  io_.Run();
  done_.clear();
  log_ = SimulatedLog();
  for (int i = 0; i < 9; ++i) log_.Append(EncodeClaim({2, 8, "other"}));
  Append({"b"});
  io_.Run();
  ExpectLost(absl::StatusCode::kDataLoss);
}

TEST_F(PartitionAppenderTest, AcknowledgedMessagesThatAreGoneAreALoss) {
  Append({"a"});
  Append({"b"});
  io_.Run();
  done_.clear();
  // An unclean election: the new leader lacks the last one.
  log_.messages.erase(--log_.end);
  Append({"c"});
  io_.Run();
  ExpectLost(absl::StatusCode::kDataLoss);
}

TEST_F(PartitionAppenderTest, ALookIsRetriedWhileNoBrokerAnswers) {
  io_.answers = {Answer::kUnknownStored};
  io_.read_errors = 3;
  Append({"a"});
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u));
  EXPECT_EQ(io_.reads, 4u);
}

TEST_F(PartitionAppenderTest, AnAppendLargerThanAMessageCountsWhole) {
  const std::string large(2 * PartitionAppender::kMessageBytesMax, 'x');
  io_.answers = {Answer::kStored, Answer::kUnknownLost};
  Append({"a", large, "b"});
  io_.RunOne();
  EXPECT_THAT(Records(), IsEmpty());
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u));
  EXPECT_THAT(Records(),
              ElementsAre(Pair(0, "a"), Pair(1, large), Pair(2, "b")));
  EXPECT_EQ(io_.sends, 6u);
}

TEST_F(PartitionAppenderTest, WhatATopicFindsTooLargeIsSentInPieces) {
  log_.message_bytes_max = 100'000;
  const std::string large(350'000, 'x');
  Append({large});
  io_.Run();
  Append({large});
  const size_t sends = io_.sends;
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u, 1u));
  EXPECT_EQ(Records()[1], large);
  // The bound stays.
  EXPECT_EQ(io_.sends, sends);
}

TEST_F(PartitionAppenderTest, ALateTrimResetsNoPieces) {
  const std::string large(2 * PartitionAppender::kMessageBytesMax, 'x');
  Append({large});
  io_.RunOne();
  // Of an earlier attempt, between two pieces.
  log_.Append(log_.messages.rbegin()->second);
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u));
  EXPECT_EQ(Records()[0], large);
}

TEST_F(PartitionAppenderTest, ATrimIsInTheLogBeforeItDeletes) {
  const std::string large(LogFilter::kBaseBytes, 'x');
  for (int i = 0; i < 4; ++i) {
    Append({large});
    io_.Run();
  }
  EXPECT_EQ(appender().TrimBefore(3), absl::OkStatus());
  EXPECT_EQ(appender().First(), 3u);
  EXPECT_EQ(log_.low, 0u);
  io_.Run();
  EXPECT_GT(log_.low, 0u);
  LogFilter filter;
  std::map<uint64_t, std::string> records;
  EXPECT_EQ(ReadLog(log_, log_.low, &filter, &records), absl::OkStatus());
  EXPECT_THAT(records, ElementsAre(Pair(3, large)));
  EXPECT_EQ(filter.trimmed(), log_.low);
  JournalStatistics statistics;
  appender().AddTo(&statistics);
  EXPECT_LT(statistics.needed_bytes, 2 * LogFilter::kBaseBytes);
}

TEST_F(PartitionAppenderTest, WhatIsPinnedIsNotDeleted) {
  const std::string large(LogFilter::kBaseBytes, 'x');
  for (int i = 0; i < 4; ++i) {
    Append({large});
    io_.Run();
  }
  ASSERT_EQ(appender().TrimBefore(1), absl::OkStatus());
  io_.Run();
  const PartitionAppender::Extent extent = appender().Pin();
  EXPECT_EQ(extent.first, 1u);
  EXPECT_EQ(extent.end, 4u);
  EXPECT_EQ(extent.offset, log_.low);
  ASSERT_EQ(appender().TrimBefore(3), absl::OkStatus());
  Append({"after"});
  io_.Run();
  EXPECT_EQ(appender().First(), 3u);
  EXPECT_EQ(log_.low, extent.offset);
  appender().Unpin();
  io_.Run();
  EXPECT_GT(log_.low, extent.offset);
  EXPECT_THAT(Records(), ElementsAre(Pair(3, large), Pair(4, "after")));
}

TEST_F(PartitionAppenderTest, NothingIsDeletedWhileItMayNot) {
  const std::string large(LogFilter::kBaseBytes, 'x');
  for (int i = 0; i < 4; ++i) {
    Append({large});
    io_.Run();
  }
  may_delete_ = false;
  ASSERT_EQ(appender().TrimBefore(1), absl::OkStatus());
  Append({"after"});
  io_.Run();
  EXPECT_EQ(appender().First(), 1u);
  EXPECT_EQ(log_.low, 0u);
  may_delete_ = true;
  Append({"later"});
  io_.Run();
  EXPECT_GT(log_.low, 0u);
  EXPECT_THAT(Records(),
              ElementsAre(Pair(1, large), Pair(2, large), Pair(3, large),
                          Pair(4, "after"), Pair(5, "later")));
}

TEST_F(PartitionAppenderTest, NothingIsDeletedThatWasDecidedBefore) {
  const std::string large(LogFilter::kBaseBytes, 'x');
  for (int i = 0; i < 4; ++i) {
    Append({large});
    io_.Run();
  }
  ASSERT_EQ(appender().TrimBefore(3), absl::OkStatus());
  // The message is on its way that says so.
  may_delete_ = false;
  io_.Run();
  EXPECT_EQ(log_.low, 0u);
  EXPECT_EQ(Records().size(), 4u);
  // Nor by the next owner.
  LogFilter filter;
  const uint64_t claim = Claim(2, &filter);
  EXPECT_GT(filter.trimmed(), 0u);
  appender_.emplace(
      0, std::move(filter), claim, &io_, [](const absl::Status&) {},
      [this] { return may_delete_; });
  Append({"after"});
  io_.Run();
  EXPECT_EQ(log_.low, 0u);
  may_delete_ = true;
  Append({"later"});
  io_.Run();
  EXPECT_THAT(Records(),
              ElementsAre(Pair(3, large), Pair(4, "after"), Pair(5, "later")));
}

TEST_F(PartitionAppenderTest, AMarkChangesNothing) {
  const std::string large(2 * PartitionAppender::kMessageBytesMax, 'x');
  Append({"before"});
  io_.Run();
  Append({large});
  io_.RunOne();
  // Between two pieces.
  log_.Append(EncodeMark(7));
  io_.Run();
  Append({"after"});
  io_.Run();
  EXPECT_THAT(done_, ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(Records(),
              ElementsAre(Pair(0, "before"), Pair(1, large), Pair(2, "after")));
  EXPECT_EQ(lost_, absl::OkStatus());
}

TEST_F(PartitionAppenderTest, ATrimBeyondTheEndIsRefused) {
  EXPECT_EQ(appender().TrimBefore(1).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(appender().TrimBefore(0), absl::OkStatus());
  EXPECT_EQ(io_.sends, 0u);
}

TEST_F(PartitionAppenderTest, TheEndFailsWhatWaits) {
  io_.answer = [] { return Answer::kRefused; };
  Append({"a"});
  Append({"b"});
  io_.RunOne();
  appender().End(absl::FailedPreconditionError("stopped"));
  EXPECT_EQ(done_[1].status().code(), absl::StatusCode::kFailedPrecondition);
  io_.Run();
  ExpectLost(absl::StatusCode::kOk);
}

TEST_F(PartitionAppenderTest, AnAppendHasRecordsAndABound) {
  Append({});
  Append({std::string(PartitionAppender::kAppendBytesMax, 'x')});
  for (const auto& done : done_) {
    EXPECT_EQ(done.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace timecache::server
