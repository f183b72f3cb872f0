// Each key is linearizable: whatever eight clients ask of it at a time, over
// connections of their own, while the clock moves across expiries, the answers
// are those of one map that does one operation after the other.
//
// TIMECACHED_HISTORY_ROUNDS=N: more rounds; TIMECACHED_SEED=N: other ones.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/engine/dice.h"
#include "tests/support/key_history.h"
#include "tests/support/test_server.h"
#include "timecache/client.h"
#include "timecache/status.h"

namespace timecache::test {
namespace {

constexpr int kClients = 8;
constexpr int kOperations = 40;  // Of each client in a round.
constexpr int kKeys = 4;
constexpr int kDefaultRounds = 12;
// Of the calls, how many are given up on before their answer may be in.
constexpr int kImpatientPerMille = 15;
constexpr absl::Duration kImpatience = absl::Microseconds(250);

int64_t Environment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  int64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number
                                                            : otherwise;
}

// By key. The clock's advances belong to all.
using Histories = std::map<std::string, std::vector<HistoryEntry>>;

// Moments, and what is known of the server's clock.
struct Shared {
  std::atomic<int64_t> moment = 0;
  std::atomic<int64_t> clock_us = kStartUs;
};

// Calls, and writes down what was asked and answered. One thread's.
class Recorder {
 public:
  Recorder(Client client, Shared* shared, uint64_t seed)
      : client_(std::move(client)), shared_(*shared), dice_(seed) {}

  // Waits for every answer from now on.
  void BePatient() { impatient_per_mille_ = 0; }

  // Any operation on any of the keys.
  void CallAny(const std::vector<std::string>& keys) {
    const std::string& key = keys[dice_.Index(keys.size())];
    // Digits, so that a Combine finds a number, mostly.
    const std::string digits = absl::StrCat(dice_.Draw(1, 99));
    switch (dice_.Draw(0, 9)) {
      case 0:
        Put(key, digits);
        break;
      case 1:
        Put(key, digits, {.condition = PutCondition::kIfAbsent});
        break;
      case 2:
        Put(key, digits, {.if_version = Seen(key)});
        break;
      case 3:
        Remove(key, {});
        break;
      case 4:
        Remove(key, {.if_version = Seen(key)});
        break;
      case 5:
        Touch(key);
        break;
      case 6:
        Append(key, "3");
        break;
      case 7:
        Add(key, dice_.Draw(-5, 50));
        break;
      case 8:
        Put(key, digits, {.keep_deadline = true});
        break;
      default:
        Get(key);
        break;
    }
  }

  void Put(const std::string& key, const std::string& value,
           const PutOptions& options = {}) {
    HistoryEntry& entry = Begin(key, HistoryKind::kPut);
    entry.value = value;
    entry.if_version = options.if_version;
    entry.if_absent = options.condition == PutCondition::kIfAbsent;
    entry.keep_deadline = options.keep_deadline;
    const auto put = client_.Put(key, value, options, call_);
    if (put.ok()) entry.version = put->version;
    End(entry, put.status());
  }

  void Get(const std::string& key) {
    HistoryEntry& entry = Begin(key, HistoryKind::kGet);
    const auto got = client_.Get(key, {}, call_);
    if (got.ok() && *got) {
      entry.found = true;
      entry.got = (*got)->value;
      entry.version = seen_[key] = (*got)->version;
    }
    End(entry, got.status());
  }

  void Remove(const std::string& key, const RemoveOptions& options) {
    HistoryEntry& entry = Begin(key, HistoryKind::kRemove);
    entry.if_version = options.if_version;
    const auto removed = client_.Remove(key, options, call_);
    if (removed.ok()) entry.found = removed->removed;
    End(entry, removed.status());
  }

  void Touch(const std::string& key) {
    HistoryEntry& entry = Begin(key, HistoryKind::kTouch);
    const auto touched = client_.Touch(key, {}, call_);
    if (touched.ok() && *touched) {
      entry.found = true;
      entry.version = **touched;
    }
    End(entry, touched.status());
  }

  void Append(const std::string& key, const std::string& value) {
    HistoryEntry& entry = Begin(key, HistoryKind::kAppend);
    entry.value = value;
    const auto appended = client_.Append(key, value, {}, call_);
    if (appended.ok()) {
      entry.found = !appended->created;
      entry.version = appended->version;
      entry.result = static_cast<int64_t>(appended->value_bytes);
    }
    End(entry, appended.status());
  }

  void Add(const std::string& key, int64_t number) {
    HistoryEntry& entry = Begin(key, HistoryKind::kAdd);
    entry.number = number;
    const auto sum = client_.Combine(key, Combination::kAdd, number, {}, call_);
    if (sum.ok()) {
      entry.found = !sum->created;
      entry.version = sum->version;
      entry.result = sum->result;
    }
    End(entry, sum.status());
  }

  const Histories& histories() const { return histories_; }
  int unanswered() const { return unanswered_; }

 private:
  // The last version that was read, or else one that no entry has.
  uint64_t Seen(const std::string& key) {
    return seen_.try_emplace(key, 1).first->second;
  }

  HistoryEntry& Begin(const std::string& key, HistoryKind kind) {
    call_ = {};
    if (dice_.Chance(impatient_per_mille_)) call_.timeout = kImpatience;
    auto& history = histories_[key];
    history.push_back({.kind = kind, .clock_us = shared_.clock_us});
    history.back().called_at = ++shared_.moment;
    return history.back();
  }

  void End(HistoryEntry& entry, const absl::Status& status) {
    const int64_t moment = ++shared_.moment;
    if (!status.ok() && !ReasonName(status)) {
      ++unanswered_;
      return;
    }
    entry.answered_at = moment;
    entry.done = status.ok();
    if (status.ok()) return;
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    entry.found = !HasReason(status, ErrorReason::kKeyNotFound);
  }

  const Client client_;
  Shared& shared_;
  Dice dice_;
  int impatient_per_mille_ = kImpatientPerMille;
  CallOptions call_;
  Histories histories_;
  std::map<std::string, uint64_t> seen_;
  int unanswered_ = 0;
};

class LinearizabilityTest : public ::testing::Test {
 protected:
  // Of the namespace "default".
  HistoryOptions Options() const {
    return {.ttl_us = kTtlUs,
            .width_us = kWidthUs,
            .start_us = std::max(round_start_us_, kStartUs)};
  }

  std::unique_ptr<Recorder> MakeRecorder(uint64_t seed) {
    return std::make_unique<Recorder>(
        // An attempt that failed would not know what the one before did.
        Client(server_.NewChannel(), {.retry = {.max_attempts = 1}}), &shared_,
        seed);
  }

  void Advance(int64_t step_us, std::vector<HistoryEntry>* advances) {
    HistoryEntry entry = {.kind = HistoryKind::kAdvance,
                          .called_at = ++shared_.moment,
                          .number = server_.now_us() + step_us};
    server_.AdvanceTo(entry.number);
    shared_.clock_us = entry.number;
    entry.answered_at = ++shared_.moment;
    advances->push_back(entry);
  }

  // All clients at once, on keys that are new. The clock takes as many steps as
  // they leave it time for, up to a few.
  Histories Record(uint64_t seed) {
    round_start_us_ = server_.now_us();
    std::vector<std::string> keys;
    for (int i = 0; i < kKeys; ++i) keys.push_back(absl::StrCat(seed, "/", i));
    std::vector<std::unique_ptr<Recorder>> recorders;
    for (int i = 0; i < kClients; ++i) {
      recorders.push_back(
          MakeRecorder(seed * kClients + static_cast<uint64_t>(i)));
    }
    std::atomic<int> running = kClients;
    std::atomic<int> calls = 0;
    std::vector<std::thread> threads;
    for (const auto& recorder : recorders) {
      threads.emplace_back([&] {
        for (int i = 0; i < kOperations; ++i, ++calls) recorder->CallAny(keys);
        --running;
      });
    }
    std::vector<HistoryEntry> advances;
    Dice dice(seed);
    for (int at = 0; running > 0;) {
      // Some steps end short of a death, some at it, some far behind.
      if (calls < at) {
        std::this_thread::yield();
        continue;
      }
      Advance(dice.Draw(1, 12) * kTtlUs / 10, &advances);
      at += kClients * kOperations / 16;
    }
    for (std::thread& thread : threads) thread.join();

    Histories histories;
    for (const auto& recorder : recorders) {
      unanswered_ += recorder->unanswered();
      for (const auto& [key, history] : recorder->histories()) {
        auto& all = histories[key];
        all.insert(all.end(), history.begin(), history.end());
      }
    }
    for (auto& [key, history] : histories) {
      history.insert(history.end(), advances.begin(), advances.end());
    }
    return histories;
  }

  TestServer server_;
  Shared shared_;
  int64_t round_start_us_ = 0;
  int unanswered_ = 0;
};

TEST_F(LinearizabilityTest, KeysUnderEightClients) {
  const auto seed = static_cast<uint64_t>(Environment("TIMECACHED_SEED", 1));
  const auto rounds = static_cast<uint64_t>(
      Environment("TIMECACHED_HISTORY_ROUNDS", kDefaultRounds));
  size_t operations = 0;
  size_t states = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (const auto& [key, history] : Record(seed + round)) {
      const HistoryVerdict verdict = CheckHistory(history, Options());
      EXPECT_EQ(verdict.verdict, Verdict::kLinearizable)
          << "key " << key << " of TIMECACHED_SEED=" << seed << ": "
          << verdict.why;
      operations += history.size();
      states += verdict.states;
    }
    if (HasFailure()) break;
  }
  RecordProperty("operations", static_cast<int>(operations));
  RecordProperty("unanswered", unanswered_);
  RecordProperty("states", static_cast<int>(states));
}

// The same recording, of a server that is right, in which one read is replaced
// by what an earlier one could have said.
TEST_F(LinearizabilityTest, AStaleReadInARecordedHistoryIsFound) {
  Histories histories = Record(4711);
  auto& [key, history] = *histories.begin();
  const auto last = MakeRecorder(1);
  last->BePatient();
  last->Put(key, "old");
  last->Put(key, "new");
  last->Get(key);
  const auto& calls = last->histories().at(key);
  ASSERT_EQ(calls.size(), 3u);
  history.insert(history.end(), calls.begin(), calls.end());
  EXPECT_EQ(CheckHistory(history, Options()).verdict, Verdict::kLinearizable);

  ASSERT_EQ(history.back().got, "new");
  history.back().got = "old";
  history.back().version = calls[0].version;
  const HistoryVerdict verdict = CheckHistory(history, Options());
  EXPECT_EQ(verdict.verdict, Verdict::kNotLinearizable);
  EXPECT_NE(verdict.why.find("\"old\""), std::string::npos) << verdict.why;
}

}  // namespace
}  // namespace timecache::test
