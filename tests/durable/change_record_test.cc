// A map's changes in a journal on a disk: what is read is what was written, and
// what was committed outlives a power loss.

#include "server/durable/change_record.h"

#include <climits>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/effort.h"
#include "tests/support/engine/crash_world.h"
#include "tests/support/journal/change_text.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

absl::Status Read(absl::string_view record, std::vector<std::string>* texts) {
  return ReadChangeRecord(
      record,
      [&](int shard, const Change& change) {
        texts->push_back(TextOf(shard, change));
        return absl::OkStatus();
      },
      [&](const Tick& tick) {
        texts->push_back(TextOf(tick));
        return absl::OkStatus();
      },
      [&](const GroupChange& change) {
        texts->push_back(TextOf(change));
        return absl::OkStatus();
      },
      [&](const RetainedEvents& events) {
        texts->push_back(TextOf(events));
        return absl::OkStatus();
      });
}

// A change of that kind whose fields have these numbers.
GroupChange SomeGroupChange(GroupChange::Kind kind, absl::string_view name,
                            int64_t at_us, uint64_t number) {
  using Kind = GroupChange::Kind;
  GroupChange change;
  change.kind = kind;
  change.name = name;
  if (kind == Kind::kExists || kind == Kind::kOptions) {
    change.options = {at_us, 7, INT64_MAX, at_us + 1};
  }
  if (kind == Kind::kExists) {
    change.created_by = number == 1 ? "" : "alice";
    change.statistics.delivered = 1;
    change.statistics.redelivered = 2;
    change.statistics.acked = 3;
    change.statistics.nacked = 4;
    change.statistics.put_back = 5;
    change.statistics.timed_out = 6;
    change.statistics.dead_lettered = 7;
    change.statistics.dead_letter_failures = 8;
    change.statistics.dead_letters_denied = 9;
    change.statistics.dead_letters_dropped = 10;
    change.statistics.lost = number;
  }
  if (kind == Kind::kExists || kind == Kind::kExpired) {
    change.unreported = number;
    change.end = number;
  }
  if ((kind == Kind::kExists || kind == Kind::kUnused) && number != 1) {
    change.unused_since_us = at_us;
  }
  if (kind >= Kind::kKept && kind <= Kind::kPast) {
    change.first = number / 2;
    change.end = kind == Kind::kKept ? change.first + 1 : number;
    if (kind != Kind::kPast) change.attempt = kMaxAttempts;
  }
  if (kind == Kind::kKept || kind == Kind::kPast || change.fails()) {
    change.ready_us = at_us;
  }
  if (kind == Kind::kPast) {
    change.returns = number == 1 ? INT_MAX : 0;
    change.returned = number == 1;
    change.reason = FailureReason::kTimedOut;
  }
  if (kind == Kind::kIdentity) change.id = number;
  if (kind == Kind::kReason) change.reason_text = name;
  if (kind == Kind::kSeek) {
    change.id = number;
    change.first = number / 2;
    change.end = number;
    change.attempt = number == 1 ? 1 : 0;
    change.unreported = number / 4;
    change.statistics.delivered = number;
    change.statistics.redelivered = 1;
    change.statistics.skipped = 2;
  }
  if (kind == Kind::kRetryDelays) {
    change.options.retry_delays_us = {0, kMaxNackDelayUs, 7};
  }
  if (kind == Kind::kKeyPrefix) change.options.key_prefix = std::string(name);
  if (kind == Kind::kLaterOptions) {
    change.options.retry_delay_us = 7;
    change.options.retry_multiplier = kMaxRetryMultiplier;
    change.options.max_retry_delay_us = kMaxNackDelayUs - 1;
    change.options.retry_jitter_percent = 100;
    change.options.paused = true;
    change.options.single_active = true;
  }
  if (kind == Kind::kCounts) {
    change.statistics.returned = number;
    change.statistics.extended = 2;
    change.statistics.redelivered = 3;
    change.statistics.terminated = 4;
    change.statistics.moved = number;
    change.statistics.skipped = 5;
  }
  if (kind == Kind::kKept) {
    change.event = {name,       "value",     number,     at_us - 30,
                    at_us - 20, number == 1, at_us - 30, 0};
    if (number == UINT64_MAX) {
      change.event.create_us = at_us - 40;
      change.event.own_ttl_us = 5'000;
      change.event.trace = kTraces[0];
    }
    change.death = {at_us - 10, at_us - 5, Cause::kRotated};
  }
  return change;
}

// Those that not every record has: of one version.
void SetOtherTimes(uint64_t version, bool created_before, Record* record) {
  if (version != UINT64_MAX) return;
  record->life_us = -record->life_us;
  record->own_ttl_us = INT64_MAX;
  if (created_before) record->create_us -= 1'000'000;
}

constexpr char kPackedTrace[] = "0123456789abcdefghijklmn\1";
static_assert(sizeof(kPackedTrace) == kTraceBytes + 1);

// Of every kind, with all numbers that a map may have, and some that none has.
struct Written {
  std::string record;
  std::vector<std::string> texts;
};
Written WriteSome() {
  const std::string many(100'000, 'v');
  const absl::string_view long_value = many;
  const absl::string_view long_key = long_value.substr(0, 4'096);
  const std::vector<int64_t> times = {
      0, 1, -1, kStartUs, kStartUs - 1, INT64_MAX / 4};
  Written written;
  ChangeRecord record;
  for (const int64_t at_us : times) {
    for (const uint64_t version :
         {uint64_t{1}, UINT64_MAX, uint64_t{7} << 40}) {
      for (const int kind : {1, 2, 3, 4, 5, 7}) {
        Change change;
        change.kind = static_cast<Change::Kind>(kind);
        change.at_us = at_us;
        const bool stores = kind <= 2;
        if (stores) {
          change.record.version = version;
          change.record.SetTimes(at_us - 17, 1'000 + kind,
                                 version == 1 ? 1'000 + kind : 0);
          SetOtherTimes(version, kind == 1, &change.record);
          if (kind == 1) {
            change.record.value = version == 1 ? "" : long_value;
          }
        }
        if (kind == 1) change.record.parts = version != 1;
        if (kind == 1 && version != 1) change.record.trace = kPackedTrace;
        if (kind == 7) {
          change.base_version = version / 2;
          change.record.version = version;
          change.record.value = version == 1 ? "" : long_value;
          change.renewed = version != 1;
          if (change.renewed) {
            change.record.SetTimes(at_us, 1'000, 1'000);
            SetOtherTimes(version, false, &change.record);
          }
        }
        if (kind != 3 && (kind != 7 || change.renewed)) {
          change.death_us = at_us + 5;
        }
        if (kind == 4 || kind == 5) {
          change.kill = version;
          change.cause = Cause::kEvicted;
        }
        if (kind != 4) change.record.key = version == 1 ? "k" : long_key;
        const int shard = kind == 5 ? 65'535 : kind;
        record.Add(shard, change);
        written.texts.push_back(TextOf(shard, change));
      }
      const Tick tick = {at_us, version, version / 2, version / 3};
      record.Add(tick);
      written.texts.push_back(TextOf(tick));
      const ExpiredEvent events[] = {
          {"a", long_value, version, at_us - 30, at_us - 20, false, at_us - 30},
          {long_key, "", version / 2, at_us - 31, at_us - 20, true, at_us - 31,
           version == 1 ? 5'000 : 0, version == UINT64_MAX ? kTraces[0] : ""}};
      const RetainedEvents retained = {version / 2,
                                       at_us + 3,
                                       {at_us - 10, at_us - 5, Cause::kEvicted},
                                       events};
      record.Add(retained);
      written.texts.push_back(TextOf(retained));
      for (int kind = 1; kind <= static_cast<int>(GroupChange::kLastKind);
           ++kind) {
        const GroupChange change =
            SomeGroupChange(static_cast<GroupChange::Kind>(kind),
                            kind % 4 < 2 ? "workers" : "g", at_us, version);
        record.Add(change);
        written.texts.push_back(TextOf(change));
      }
    }
  }
  written.record = record.Take();
  return written;
}

TEST(ChangeRecordTest, WhatIsReadIsWhatWasWritten) {
  const Written written = WriteSome();
  std::vector<std::string> texts;
  ASSERT_TRUE(Read(written.record, &texts).ok());
  ASSERT_EQ(texts.size(), written.texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(texts[i] == written.texts[i]) << i;
  }
}

// Other times than these make a kind of item that older servers refuse.
TEST(ChangeRecordTest, AnEntryWithTimesAsOlderServersKnowThemHasNoOtherItem) {
  for (const int64_t own_ttl_us : {int64_t{0}, 10 * kSecond}) {
    Change change = {.record = {.key = "k", .version = 7}, .at_us = kStartUs};
    change.record.SetTimes(kStartUs, 10 * kSecond, own_ttl_us);
    ChangeRecord record;
    record.Add(0, change);
    EXPECT_EQ(record.Take().front(), static_cast<char>(Change::Kind::kStore));
  }
}

// As a server without create times wrote them: they are the put times.
TEST(ChangeRecordTest, AnEventOfAnOlderServerBeganWhenItWasPut) {
  ChangeRecord record;
  const ExpiredEvent event = {"a",          "v",   7,       kStartUs,
                              kStartUs + 5, false, kStartUs};
  record.Add(RetainedEvents{.first_event = 3, .events = {&event, 1}});
  const std::string bytes = record.Take();
  EXPECT_EQ(bytes.front(), 9);
  std::vector<std::string> texts;
  ASSERT_TRUE(Read(bytes, &texts).ok());
  EXPECT_TRUE(absl::StrContains(texts[0], absl::StrCat("created ", kStartUs)))
      << texts[0];
}

TEST(ChangeRecordTest, TimesOfAnItemWithoutAnyAreDataLoss) {
  const std::string times("\12\0\0\0", 4);
  ChangeRecord record;
  record.Add(0, {.kind = Change::Kind::kRemove, .record = {.key = "k"}});
  std::vector<std::string> texts;
  EXPECT_TRUE(absl::IsDataLoss(Read(times + record.Take(), &texts)));
  EXPECT_TRUE(absl::IsDataLoss(Read(times + times, &texts)));
  EXPECT_TRUE(absl::IsDataLoss(Read(times, &texts)));
  EXPECT_TRUE(texts.empty());
}

TEST(ChangeRecordTest, AnAtomicBatchIsARecordThatSaysSo) {
  const AnswerTo answer = {AnswerId(), {.until_us = 9, .number = 3}};
  Change remove;
  remove.kind = Change::Kind::kRemove;
  remove.record.key = "key";
  Change answered = remove;
  answered.answer = &answer;
  ChangeRecord record;
  record.Add(1, remove);
  const size_t plain = record.Take().size();
  record.BeginBatch();
  record.Add(1, remove);
  EXPECT_EQ(record.size(), plain + 1);
  record.Add(2, answered);
  std::vector<bool> more;
  EXPECT_TRUE(ReadChangeRecord(
                  record.Take(),
                  [&](int, const Change& change) {
                    more.push_back(change.more_of_batch);
                    return absl::OkStatus();
                  },
                  [](const Tick&) { return absl::OkStatus(); },
                  [](const GroupChange&) { return absl::OkStatus(); },
                  [](const RetainedEvents&) { return absl::OkStatus(); })
                  .ok());
  EXPECT_EQ(more, (std::vector<bool>{true, true, false}));
}

TEST(ChangeRecordTest, EachRecordStandsByItself) {
  ChangeRecord record;
  record.Add(3, {.kind = Change::Kind::kRemove,
                 .record = {.key = "a"},
                 .at_us = kStartUs});
  const std::string first = record.Take();
  EXPECT_TRUE(record.empty());
  record.Use(std::string(1'000, 'x'));
  EXPECT_TRUE(record.empty());
  record.Add(3, {.kind = Change::Kind::kRemove,
                 .record = {.key = "a"},
                 .at_us = kStartUs});
  EXPECT_EQ(record.Take(), first);
}

TEST(ChangeRecordTest, APutCostsTenBytesBesideItsKeyAndValue) {
  ChangeRecord record;
  constexpr int kPuts = 1'000;
  for (uint64_t i = 0; i < kPuts; ++i) {
    const auto at_us = kStartUs + static_cast<int64_t>(i) * 100;
    record.Add(5, {.kind = Change::Kind::kStore,
                   .record = {.key = "0123456789",
                              .value = "0123456789",
                              .version = 1'000'000 + i,
                              .put_us = at_us,
                              .life_us = 3600 * kSecond,
                              .create_us = at_us},
                   .death_us = kStartUs + 3660 * kSecond,
                   .at_us = at_us});
  }
  EXPECT_LE(record.Take().size(), kPuts * (20 + 18));
}

TEST(ChangeRecordTest, AnAppendCostsItsBytesWhateverTheValueHas) {
  ChangeRecord record;
  constexpr int kAppends = 1'000;
  for (uint64_t i = 0; i < kAppends; ++i) {
    record.Add(5, {.kind = Change::Kind::kAppend,
                   .record = {.key = "0123456789",
                              .value = "0123456789",
                              .version = 1'000'001 + i},
                   .base_version = 1'000'000 + i,
                   .at_us = kStartUs + static_cast<int64_t>(i) * 100});
  }
  EXPECT_LE(record.Take().size(), kAppends * (20 + 10));
}

TEST(ChangeRecordTest, AThousandEventsSettledInOrderCostAFewBytes) {
  ChangeRecord record;
  GroupChange change = {.kind = GroupChange::Kind::kAcked,
                        .name = "workers",
                        .first = uint64_t{1} << 40,
                        .end = (uint64_t{1} << 40) + 1'000,
                        .attempt = 1};
  record.Add(change);
  const size_t first = record.size();
  EXPECT_LE(first, 24u);
  change.first = change.end;
  change.end += 1'000;
  record.Add(change);
  EXPECT_LE(record.size() - first, 6u);
}

TEST(ChangeRecordTest, RetainedEventsWithoutOneAreDataLoss) {
  ChangeRecord record;
  record.Add(RetainedEvents{.first_event = 7});
  std::vector<std::string> texts;
  EXPECT_TRUE(absl::IsDataLoss(Read(record.Take(), &texts)));
}

TEST(ChangeRecordTest, AGroupWithoutANameIsDataLoss) {
  ChangeRecord record;
  record.Add(GroupChange{.kind = GroupChange::Kind::kDeleted, .name = ""});
  std::vector<std::string> texts;
  EXPECT_TRUE(absl::IsDataLoss(Read(record.Take(), &texts)));
}

// Of kStore, shard 0, at the end of time: version 1, put at once, and a key
// without a value.
TEST(ChangeRecordTest, ADeadlinePastTheEndOfTimeIsDataLoss) {
  const std::string at_the_end =
      absl::StrCat(std::string("\1\0\xfe", 3), std::string(8, '\xff'),
                   std::string("\1\2\0", 3));
  std::vector<std::string> texts;
  const std::string dies_then(1, '\0');
  const std::string dies_later(1, '\2');
  const std::string rest("\0\1k\0", 4);
  EXPECT_TRUE(Read(at_the_end + dies_then + rest, &texts).ok());
  EXPECT_EQ(texts.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(Read(at_the_end + dies_later + rest, &texts)));
}

TEST(ChangeRecordTest, AnUnknownKindIsDataLoss) {
  const int after_groups = 16 + static_cast<int>(GroupChange::kLastKind) + 1;
  for (const int kind : {0, 15, 16, after_groups, 255}) {
    const std::string record = {static_cast<char>(kind), 1, 'g', 0, 0, 0, 0};
    std::vector<std::string> texts;
    const absl::Status status = Read(record, &texts);
    EXPECT_TRUE(absl::IsDataLoss(status)) << kind;
    EXPECT_EQ(
        status.message(),
        absl::StrCat("a record of the journal has a change of a kind, ", kind,
                     ", that this version does not know: a newer one wrote it. "
                     "Start that one, or restore a backup of before"));
  }
}

TEST(ChangeRecordTest, WhatIsCutOffIsDataLossOrEndsEarlier) {
  const Written written = WriteSome();
  for (size_t size = 1; size < 3'000; ++size) {
    std::vector<std::string> texts;
    const absl::Status status =
        Read(absl::string_view(written.record).substr(0, size), &texts);
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    ASSERT_LT(texts.size(), written.texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(texts[i] == written.texts[i]) << i;
    }
  }
}

TEST(ChangeRecordTest, BytesOfChanceAreRefusedOrRead) {
  std::mt19937_64 random(test::Seed());
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 40 + 1, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::vector<std::string> texts;
    const absl::Status status = Read(bytes, &texts);
    ASSERT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 19'000);
}

TEST(ChangeRecordTest, AVisitorsErrorEndsTheWalk) {
  const Written written = WriteSome();
  int visited = 0;
  const absl::Status status = ReadChangeRecord(
      written.record,
      [&](int, const Change&) {
        return ++visited == 3 ? absl::CancelledError("") : absl::OkStatus();
      },
      [](const Tick&) { return absl::OkStatus(); },
      [](const GroupChange&) { return absl::OkStatus(); },
      [](const RetainedEvents&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(visited, 3);
}

// --- A map on a journal on a disk that loses power at each crash.

class DiskCommitLog final : public CommitLog {
 public:
  explicit DiskCommitLog(uint64_t seed) : random_(seed) {
    EXPECT_TRUE(harness_.Open().ok());
  }

  void Commit(Committed commit) override {
    std::string head(1, commit.walk_ends.has_value() ? '1' : '0');
    if (commit.walk_ends.has_value()) {
      head.append(reinterpret_cast<const char*>(&*commit.walk_ends),
                  sizeof(MapCounts));
    }
    head.append(reinterpret_cast<const char*>(&commit.first_retained),
                sizeof(uint64_t));
    ChangeRecord record(head);
    for (KeptRetainedEvents& kept : commit.retained) record.Add(kept.events());
    for (const KeptChange& kept : commit.changes) {
      record.Add(kept.shard(), kept.change());
    }
    for (const KeptGroupChange& kept : commit.groups) record.Add(kept.change());
    if (commit.tick.has_value()) record.Add(*commit.tick);
    if (record.empty() && head[0] == '0' && commit.first_retained == 0) {
      return;
    }
    const auto position = harness_.AppendNow(0, record.Take());
    EXPECT_TRUE(position.ok()) << position.status();
  }

  size_t size() const override {
    const Journal& journal = harness_.journal();
    return static_cast<size_t>(journal.End(0) - journal.First(0));
  }
  void DropFirst(size_t commits) override {
    Journal& journal = harness_.journal();
    EXPECT_TRUE(journal.TrimBefore(0, journal.First(0) + commits).ok());
  }

  // Syncs do nothing from now on, and a power loss takes all that they would
  // have kept.
  void IgnoreSyncs() {
    harness_.files().IgnoreSyncs();
    drop_all_ = true;
  }

  std::vector<Committed> Recover() override {
    // Written, and not synced: may be there or not.
    EXPECT_TRUE(harness_.AppendNow(1, "more", Durability::kAsync).ok());
    harness_.files().LosePower(drop_all_ || random_() % 2 == 0
                                   ? MemoryFileSystem::Unsynced::kDropped
                                   : MemoryFileSystem::Unsynced::kKeptInPart,
                               &random_);
    harness_.Crash();
    EXPECT_TRUE(harness_.Open().ok());
    std::vector<Committed> commits;
    const ReadResult read = ReadAll(harness_.journal());
    EXPECT_TRUE(read.status.ok()) << read.status;
    for (const auto& [position, whole] : read.partitions.at(0)) {
      Committed& commit = commits.emplace_back();
      absl::string_view record = whole;
      if (record[0] == '1') {
        std::memcpy(&commit.walk_ends.emplace(), &record[1], sizeof(MapCounts));
        record.remove_prefix(sizeof(MapCounts));
      }
      std::memcpy(&commit.first_retained, &record[1], sizeof(uint64_t));
      record.remove_prefix(1 + sizeof(uint64_t));
      const absl::Status status = ReadChangeRecord(
          record,
          [&](int shard, const Change& change) {
            commit.changes.emplace_back(shard, change);
            return absl::OkStatus();
          },
          [&](const Tick& tick) {
            commit.tick = tick;
            return absl::OkStatus();
          },
          [&](const GroupChange& change) {
            commit.groups.emplace_back(change);
            return absl::OkStatus();
          },
          [&](const RetainedEvents& events) {
            commit.retained.emplace_back(events);
            return absl::OkStatus();
          });
      EXPECT_TRUE(status.ok()) << status;
    }
    return commits;
  }

 private:
  std::mt19937_64 random_;
  bool drop_all_ = false;
  mutable JournalHarness harness_{/*partitions=*/2, /*segment_bytes=*/64 << 10};
};

// The disk does lose what is not synced, or the test below shows nothing.
TEST(MapOnDiskControlTest, WithoutSyncsWhatWasCommittedIsLost) {
  for (const bool syncs : {true, false}) {
    DiskCommitLog log(test::Seed());
    JournaledMap map(CrashOptions(10 * kSecond, 11), &log);
    if (!syncs) log.IgnoreSyncs();
    map.map().Apply(Operation::Put("a", "1"), kStartUs);
    map.Commit();
    map.Crash(kStartUs);
    EXPECT_EQ(map.map().Apply(Operation::Get("a"), kStartUs).found, syncs);
  }
}

class MapOnDiskTest : public ::testing::TestWithParam<CrashWorldOptions> {};

TEST_P(MapOnDiskTest, NothingCommittedIsLostToAPowerLoss) {
  constexpr int kSteps = 5'000;
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed));
  DiskCommitLog log(seed);
  CrashWorld world(GetParam(), &log, Dice(seed));
  for (int i = 0; i < kSteps && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("step ", i));
    world.Step();
  }
  world.CheckAtRest();
  EXPECT_GT(world.told(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Worlds, MapOnDiskTest,
                         ::testing::ValuesIn(CrashWorlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace timecache::server
