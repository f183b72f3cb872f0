// Which messages count: by rule, and in random histories of several owners.
#include "server/log/kafka/log_filter.h"

#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/log/kafka/simulated_partition.h"

namespace timecache::server {
namespace {

using RecordMap = std::map<uint64_t, std::string>;

std::string RecordsValue(const RecordsMessage& header,
                         const std::string& record) {
  std::string value;
  PutRecordsHeader(&value, header);
  const auto size = static_cast<uint32_t>(record.size());
  value.append(reinterpret_cast<const char*>(&size), sizeof size);
  return value + record;
}

RecordsMessage OneRecord(uint64_t claim, uint64_t first,
                         uint64_t claim_offset = 0) {
  RecordsMessage header;
  header.log_id = 1;
  header.claim = claim;
  header.claim_offset = claim_offset;
  header.first = first;
  header.count = 1;
  return header;
}

class LogFilterTest : public testing::Test {
 protected:
  absl::Status Read(RecordMap* records) {
    LogFilter filter;
    return ReadLog(log_, 0, &filter, records);
  }
  absl::Status Read() {
    RecordMap records;
    return Read(&records);
  }

  SimulatedLog log_;
};

TEST_F(LogFilterTest, RecordsOfAFormerClaimAreVoid) {
  log_.Append(EncodeClaim({1, 0, "a"}));
  log_.Append(RecordsValue(OneRecord(1, 0), "x"));
  log_.Append(EncodeClaim({2, 0, "b"}));
  log_.Append(RecordsValue(OneRecord(1, 1), "zombie"));
  log_.Append(RecordsValue(OneRecord(2, 1, 2), "y"));
  RecordMap records;
  EXPECT_EQ(Read(&records), absl::OkStatus());
  EXPECT_EQ(records, (RecordMap{{0, "x"}, {1, "y"}}));
}

// And the records of the first one after it.
TEST_F(LogFilterTest, ACopyOfAClaimEndsTheClaimAndOpensNone) {
  for (int i = 0; i < 2; ++i) {
    log_.Append(EncodeClaim({1, 0, "a"}));
    log_.Append(RecordsValue(OneRecord(1, 0), "x"));
  }
  log_.Append(RecordsValue(OneRecord(1, 1), "void"));
  log_.Append(EncodeClaim({2, 0, "b"}));
  log_.Append(RecordsValue(OneRecord(2, 1, 5), "y"));
  RecordMap records;
  EXPECT_EQ(Read(&records), absl::OkStatus());
  EXPECT_EQ(records, (RecordMap{{0, "x"}, {1, "y"}}));
}

TEST_F(LogFilterTest, AnotherLogIsNotReadOn) {
  log_.Append(EncodeClaim({1, 0, "a"}));
  RecordsMessage header = OneRecord(1, 0);
  header.log_id = 2;
  log_.Append(RecordsValue(header, "x"));
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
}

TEST_F(LogFilterTest, AnOwnerThatIsAheadOrBehindIsOfAnotherLog) {
  for (const uint64_t first : {0, 2}) {
    log_ = SimulatedLog();
    log_.Append(EncodeClaim({1, 0, "a"}));
    log_.Append(RecordsValue(OneRecord(1, 0), "x"));
    log_.Append(EncodeClaim({2, 0, "b"}));
    log_.Append(RecordsValue(OneRecord(2, first, 2), "y"));
    EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
  }
}

// It was appended, brokers have lost what was before it, and gave it an offset
// that its sender knew.
TEST_F(LogFilterTest, AMessageWhoseOwnerKnewItsOffsetIsVoid) {
  for (const bool opened : {false, true}) {
    log_ = SimulatedLog();
    log_.Append(EncodeClaim({1, 0, "a"}));
    if (opened) log_.Append(RecordsValue(OneRecord(1, 0), "x"));
    RecordsMessage header = OneRecord(1, 3);
    header.end = log_.end + 1;
    log_.Append(RecordsValue(header, "void"));
    const uint64_t claim = log_.Append(EncodeClaim({2, 0, "b"}));
    log_.Append(RecordsValue(OneRecord(2, opened ? 1 : 0, claim), "y"));
    RecordMap records;
    EXPECT_EQ(Read(&records), absl::OkStatus());
    EXPECT_EQ(records.size(), opened ? 2 : 1);
    EXPECT_EQ(records.rbegin()->second, "y");
  }
}

// Where it has read on, there was another message before brokers lost it.
TEST_F(LogFilterTest, AReaderThatHasMissedAClaimNoticesIt) {
  log_.Append(EncodeClaim({1, 0, "a"}));
  log_.Append(RecordsValue(OneRecord(1, 0), "x"));
  RecordsMessage later = OneRecord(2, 1, 1);
  log_.Append(RecordsValue(later, "y"));
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
  // One of another log says nothing of this one.
  later.log_id = 2;
  log_.messages[2] = RecordsValue(later, "y");
  EXPECT_EQ(Read(), absl::OkStatus());
}

TEST_F(LogFilterTest, ARecordThatIsCutOffIsALoss) {
  log_.Append(EncodeClaim({1, 0, "a"}));
  std::string value = RecordsValue(OneRecord(1, 0), "x");
  value.pop_back();
  log_.Append(value);
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
}

TEST_F(LogFilterTest, PiecesOfTwoAttemptsAreNoGroup) {
  log_.Append(EncodeClaim({1, 0, "a"}));
  const std::string record = RecordsValue(OneRecord(1, 0), "record");
  const auto append = [&](uint32_t attempt, uint32_t piece) {
    RecordsMessage header = OneRecord(1, 0);
    header.attempt = attempt;
    header.piece = piece;
    header.is_last = piece == 1;
    std::string value;
    PutRecordsHeader(&value, header);
    const std::string bytes = record.substr(kRecordsHeaderBytes);
    log_.Append(value + (piece == 0 ? bytes.substr(0, 6) : bytes.substr(6)));
  };
  append(1, 0);
  append(2, 1);
  RecordMap records;
  EXPECT_EQ(Read(&records), absl::OkStatus());
  EXPECT_EQ(records, RecordMap());
  append(1, 1);
  EXPECT_EQ(Read(&records), absl::OkStatus());
  EXPECT_EQ(records, (RecordMap{{0, "record"}}));
}

TEST_F(LogFilterTest, AReaderBeginsAtNoClaimAndNoPiece) {
  LogFilter filter;
  EXPECT_EQ(filter.BeginAt(3, EncodeClaim({1, 0, "a"})).code(),
            absl::StatusCode::kDataLoss);
  RecordsMessage header = OneRecord(1, 0);
  header.piece = 1;
  EXPECT_EQ(filter.BeginAt(3, RecordsValue(header, "x")).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(filter.BeginAt(3, "").code(), absl::StatusCode::kDataLoss);
}

TEST_F(LogFilterTest, AnyBytesAreRead) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    log_.messages.clear();
    log_.Append(EncodeClaim({1, 0, "a"}));
    std::string value = RecordsValue(OneRecord(1, 0), "record");
    for (int flips = 0; flips < 3; ++flips) {
      value[random() % value.size()] = static_cast<char>(random());
    }
    value.resize(random() % (value.size() + 1));
    log_.Append(value);
    Read().IgnoreError();
  }
}

// --- Random histories.

class History {
 public:
  explicit History(uint32_t seed) : random_(seed) {
    log_.message_bytes_max = Chance(3) ? 1'500 : SIZE_MAX;
  }

  void Run() {
    for (int step = 0; step < 400; ++step) Step();
    // Late ones come at the end, too.
    while (!log_.late.empty()) AppendLate();
    for (const auto& node : nodes_) {
      node->io.answer = nullptr;
      node->io.Run();
    }
    Check();
  }

 private:
  static constexpr uint64_t kBase = 4'000;
  struct Node {
    explicit Node(SimulatedLog* log) : io(log) {}
    SimulatedIo io;
    std::unique_ptr<PartitionAppender> appender;
    bool lost = false;
  };

  bool Chance(uint32_t n) { return random_() % n == 0; }

  void Step() {
    if (nodes_.empty() || Chance(60)) return Claim();
    // Any node goes on, whether it owns or was replaced.
    Node& node = *nodes_[random_() % nodes_.size()];
    if (Chance(4)) {
      Append(&node);
    } else if (Chance(25) && !log_.late.empty()) {
      AppendLate();
    } else if (Chance(40)) {
      log_.end += random_() % 3;
    } else if (Chance(40)) {
      Trim(&node);
    } else {
      node.io.RunOne();
    }
  }

  void Claim() {
    auto node = std::make_unique<Node>(&log_);
    const uint64_t offset = log_.Append(EncodeClaim({++claims_, 0, "n"}));
    LogFilter filter(kBase);
    RecordMap records;
    ASSERT_EQ(ReadLog(log_, log_.low, &filter, &records), absl::OkStatus());
    node->io.answer = [this] {
      if (!Chance(5)) return Answer::kStored;
      constexpr Answer kAnswers[] = {
          Answer::kRefused,     Answer::kUnknownLost, Answer::kUnknownStored,
          Answer::kUnknownLate, Answer::kOffsetZero,  Answer::kOffsetMissing};
      return kAnswers[random_() % std::size(kAnswers)];
    };
    node->appender = std::make_unique<PartitionAppender>(
        0, std::move(filter), offset, &node->io,
        [node = node.get()](const absl::Status& why) {
          EXPECT_EQ(why.code(), absl::StatusCode::kFailedPrecondition) << why;
          node->lost = true;
        });
    nodes_.push_back(std::move(node));
  }

  void Append(Node* node) {
    std::vector<std::string> records;
    for (uint32_t i = 0; i <= random_() % 3; ++i) {
      const size_t size = Chance(5) ? random_() % 5'000 : random_() % 50;
      records.push_back(absl::StrCat(++records_, std::string(size, 'x')));
    }
    node->appender->Append(
        records, [this, records](absl::StatusOr<uint64_t> position,
                                 std::vector<std::string>) {
          if (!position.ok()) return;
          for (const std::string& record : records) {
            // No two owners take a position for theirs.
            EXPECT_TRUE(acknowledged_.emplace((*position)++, record).second);
          }
        });
  }

  void AppendLate() {
    const size_t index = random_() % log_.late.size();
    log_.Append(log_.late[index]);
    log_.late.erase(log_.late.begin() + static_cast<ptrdiff_t>(index));
  }

  void Trim(Node* node) {
    const uint64_t first = node->appender->First();
    const uint64_t room = node->appender->End() - first;
    EXPECT_EQ(node->appender->TrimBefore(first + random_() % (room + 1)),
              absl::OkStatus());
  }

  void Check() {
    LogFilter filter(kBase);
    RecordMap all;
    // Nothing is gone in the simulation, whatever was deleted.
    ASSERT_EQ(ReadLog(log_, 0, &filter, &all), absl::OkStatus());
    for (const auto& [position, record] : acknowledged_) {
      ASSERT_EQ(all[position], record) << "at " << position;
    }
    EXPECT_GE(filter.trimmed(), log_.low);
    for (uint64_t position = filter.first(); position <= filter.next();
         ++position) {
      CheckReader(filter.BaseOffset(position), position, filter, all);
    }
    if (log_.low > 0) CheckReader(log_.low, filter.first(), filter, all);
  }

  void CheckReader(uint64_t from, uint64_t position, const LogFilter& full,
                   const RecordMap& all) {
    LogFilter filter(kBase);
    RecordMap records;
    ASSERT_EQ(ReadLog(log_, from, &filter, &records), absl::OkStatus());
    EXPECT_EQ(filter.next(), full.next());
    EXPECT_EQ(filter.claim(), full.claim());
    EXPECT_EQ(filter.log_id(), full.log_id());
    EXPECT_LE(records.empty() ? position : records.begin()->first, position);
    for (const auto& [at, record] : records) ASSERT_EQ(all.at(at), record);
    EXPECT_EQ(records.empty() ? full.next() : records.rbegin()->first + 1,
              full.next());
  }

  std::mt19937 random_;
  SimulatedLog log_;
  std::vector<std::unique_ptr<Node>> nodes_;
  uint64_t claims_ = 0;
  uint64_t records_ = 0;
  RecordMap acknowledged_;
};

TEST(LogFilterModelTest, ReadersAgreeAndHaveWhatWasAcknowledged) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    History(seed).Run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace timecache::server
