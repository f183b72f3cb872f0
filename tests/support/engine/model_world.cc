#include "tests/support/engine/model_world.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/shard/compact_index.h"
#include "server/engine/store/key_hash.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

// No version that a map ever gives out.
constexpr uint64_t kNoWorldVersion = UINT64_MAX;
constexpr int64_t kHugeValueBytes = 1 << 20;
// Longer values are not appended to.
constexpr size_t kMaxGrownBytes = 8 << 10;
constexpr int kLongestRandomKeyBytes = 300;
// Most operations that are applied together.
constexpr int64_t kMaxBatch = 200;
constexpr int64_t kMaxAtomicBatch = 12;
// By how many entries a scan may pass what it was asked for.
constexpr int kLineEntries = 64;

}  // namespace

ModelWorld::ModelWorld(const WorldOptions& options, Dice dice)
    : options_(options),
      dice_(std::move(dice)),
      now_us_(kStartUs + Draw(0, kSecond)),
      model_(options.map),
      map_("model", options.map, nullptr, now_us_,
           {.hash_seed = static_cast<uint64_t>(Draw(1, INT64_MAX))}),
      auditor_(options.slow_watcher) {
  if (options_.same_tags) FindKeysOfSameTags();
  map_.SetSchedule(
      [this](int64_t due_us) { due_us_ = std::min(due_us_, due_us); });
  due_us_ = map_.NextDueUs(now_us_);
  cursor_ = map_.Subscribe(ExpiryLog::Start::kNow, now_us_, [] {});
  WatchChanges();
  model_.SetSurvives([this](const std::string& key) {
    if (!keys_.empty() && key == keys_.back()) return result_.found;
    return map_.Apply(Operation::Contains(key), now_us_).found;
  });
}

void ModelWorld::Step() {
  const int64_t what = Draw(0, 999);
  if (what < options_.clock_per_mille) {
    StepClock();
  } else if (what < 940) {
    StepOperation();
  } else if (what < 975) {
    StepDriver();
  } else {
    StepReader();
  }
  CollectDeaths();
  EXPECT_LE(due_us_, model_.NextDeathUs())
      << "nobody was told when the next bucket is due";
}

void ModelWorld::StepClock() {
  const int64_t width_us = BucketWidthUs(model_.options());
  const int64_t next_us = model_.NextDeathUs();
  const int64_t kind = Draw(0, 999);
  if (kind < 150) {
    now_us_ += 1;
  } else if (kind < 550) {
    now_us_ += Draw(0, width_us / 4);
  } else if (kind < 700) {
    now_us_ += Draw(0, 3 * width_us);
  } else if (kind < 850) {
    if (next_us != kNeverUs) now_us_ = next_us;
  } else if (kind < 950) {
    if (next_us != kNeverUs) now_us_ = std::max(now_us_, next_us - 1);
  } else if (kind < 990) {
    now_us_ += Draw(0, model_.options().ttl_us / 2);
  } else if (kind < 995) {
    now_us_ += Draw(0, 2 * model_.options().ttl_us);
  } else if (kind == 999) {
    now_us_ += kHour;
  }
  model_.Advance(now_us_);
}

void ModelWorld::StepOperation() {
  // At a limit the order among keys matters, which a batch does not promise.
  const NamespaceOptions& limits = model_.options();
  if (limits.max_entries == 0 && limits.max_bytes == 0 && Chance(20)) {
    if (Chance(500)) {
      StepBatch();
    } else {
      StepAtomic();
    }
    return;
  }
  keys_.clear();
  gatherings_.clear();
  const Operation op = RandomOperation();
  map_.Apply(op, now_us_, &result_);
  const Result model = Expect(op, result_);
  Compare(op, result_, model);
  if (Chance(100)) CheckSize();
}

void ModelWorld::StepBatch() {
  keys_.clear();
  gatherings_.clear();
  std::vector<Operation> operations(static_cast<size_t>(Draw(0, kMaxBatch)));
  for (Operation& operation : operations) operation = RandomOperation();
  std::vector<Result> results(operations.size());
  map_.ApplyBatch(operations, now_us_, absl::MakeSpan(results));
  int64_t answered_bytes = kHugeValueBytes;
  for (const Result& result : results) {
    if (result.has_entry) {
      answered_bytes += static_cast<int64_t>(result.entry.value.size());
    }
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("operation ", i, " of ", operations.size()));
    if (ReasonOf(results[i].status) == Reason::kMaxResponseBytes) {
      ASSERT_GT(answered_bytes, ResponseBudget::kMaxBytes);
      continue;
    }
    Compare(operations[i], results[i], Expect(operations[i], results[i]));
  }
}

// All of them as the model does them one by one, or none.
void ModelWorld::StepAtomic() {
  keys_.clear();
  gatherings_.clear();
  std::vector<Operation> operations;
  std::unordered_set<std::string> keys;
  bool has_id = false;
  for (int64_t i = Draw(1, kMaxAtomicBatch); i > 0; --i) {
    const Operation operation = RandomOperation();
    if (!keys.insert(std::string(operation.key)).second) continue;
    operations.push_back(operation);
    has_id |= operation.id_bytes != 0;
  }
  for (Operation& operation : operations) {
    // Of a repetition they do not count.
    if (has_id && (operation.kind == OpKind::kTouch ||
                   operation.kind == OpKind::kContains)) {
      operation.condition = Condition::kNone;
    }
  }
  std::vector<Result> results(operations.size());
  ASSERT_TRUE(
      map_.ApplyAtomic(operations, now_us_, absl::MakeSpan(results)).ok());
  model_.Advance(now_us_);
  ReferenceModel after = model_;
  bool applied = true;
  bool malformed = false;
  for (const Result& result : results) {
    applied &= result.status.ok();
    malformed |= absl::IsInvalidArgument(result.status);
  }
  int blamed = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("operation ", i, " of ", operations.size()));
    const uint64_t version = results[i].version;
    const Result model = after.Apply(operations[i], now_us_,
                                     version == 0 ? kNoWorldVersion : version);
    const std::optional<Reason> reason = ReasonOf(results[i].status);
    if (reason == Reason::kNotApplied) {
      EXPECT_TRUE(model.status.ok() || malformed) << model.status;
      continue;
    }
    blamed += applied ? 0 : 1;
    ASSERT_EQ(results[i].status.ok(), applied);
    if (reason == Reason::kMaxResponseBytes) continue;
    Compare(operations[i], results[i], model);
  }
  if (!applied) {
    EXPECT_GT(blamed, 0);
  } else if (changes_ == nullptr) {
    model_ = std::move(after);
  } else {
    for (size_t i = 0; i < operations.size(); ++i) {
      Expect(operations[i], results[i]);
    }
  }
  CheckSize();
}

// What the model makes of it.
Result ModelWorld::Expect(const Operation& op, const Result& engine) {
  const uint64_t version =
      engine.version == 0 ? kNoWorldVersion : engine.version;
  if (changes_ == nullptr) return model_.Apply(op, now_us_, version);
  return change_auditor_.Apply(op, now_us_, version, &model_);
}

// What a reaper does, and administrators.
void ModelWorld::StepDriver() {
  const int64_t kind = Draw(0, 999);
  if (kind < 350) {
    map_.Sweep(now_us_, static_cast<int>(Draw(1, 20)));
  } else if (kind < 500) {
    map_.Advance(now_us_);
    due_us_ = map_.NextDueUs(now_us_);
    map_.Sweep(now_us_, static_cast<int>(Draw(1, 200)));
  } else if (kind < 600) {
    map_.Advance(now_us_);
    due_us_ = map_.NextDueUs(now_us_);
  } else if (kind < 750) {
    map_.RefreshWatermark(now_us_);
  } else if (kind < 900) {
    while (map_.Sweep(now_us_, 100)) {
    }
  } else if (kind < 950) {
    Rotate();
  } else if (kind < 960) {
    CheckScan();
  } else if (kind < 965) {
    CheckAtRest();
  } else if (options_.updates) {
    Update();
  }
}

void ModelWorld::StepReader() {
  ReadChanges();
  if (options_.slow_watcher) {
    if (Chance(200)) Read(cursor_.get(), 64 << 10);
    return;
  }
  Read(cursor_.get(), Draw(1, 1 << 20));
  if (joiner_ != nullptr) {
    ReadJoiner();
  } else if (Chance(20)) {
    Join();
  }
}

Operation ModelWorld::RandomOperation() {
  const int64_t kind = Draw(0, 999);
  Operation op;
  op.key = RandomKey();
  if (kind < 320) {
    op.kind = OpKind::kPut;
    op.value = Chance(100) ? absl::string_view("0") : RandomValue();
    op.keep_deadline = Chance(200);
  } else if (kind < 500) {
    RandomChange(&op);
  } else if (kind < 700) {
    op.kind = OpKind::kGet;
    op.touch = Chance(200);
    op.never_touch = !op.touch && Chance(300);
  } else if (kind < 830) {
    op.kind = OpKind::kRemove;
  } else if (kind < 880) {
    op.kind = OpKind::kContains;
  } else {
    op.kind = OpKind::kTouch;
  }
  const bool writes = op.kind == OpKind::kPut || op.kind == OpKind::kRemove;
  if (writes) op.return_previous = Chance(300);
  if (op.kind != OpKind::kGet && op.kind != OpKind::kGather && Chance(300)) {
    const bool put = op.kind == OpKind::kPut || op.kind == OpKind::kAppend ||
                     op.kind == OpKind::kContains;
    op.condition =
        put ? static_cast<Condition>(Draw(1, 3)) : Condition::kIfVersion;
    const auto stored = model_.entries().find(std::string(op.key));
    const auto last = last_versions_.find(std::string(op.key));
    if (stored != model_.entries().end() && Chance(700)) {
      op.if_version = stored->second.entry.version;
    } else if (last != last_versions_.end()) {
      op.if_version = last->second;
    }
  }
  const bool takes_ttl = op.kind != OpKind::kGet &&
                         op.kind != OpKind::kRemove &&
                         op.kind != OpKind::kContains && !op.keep_deadline;
  if (takes_ttl && Chance(options_.own_ttl_per_mille)) {
    op.has_ttl = true;
    op.ttl_us = RandomTtlUs();
  }
  op.namespace_ttl = op.kind == OpKind::kTouch && !op.has_ttl && Chance(100);
  const bool takes_time =
      takes_ttl && (op.kind == OpKind::kPut || op.kind == OpKind::kTouch);
  if (takes_time && Chance(options_.own_ttl_per_mille)) {
    op.allow_past = Chance(500);
    op = op.ExpiringAt(
        now_us_ + (op.allow_past && Chance(300) ? -RandomTtlUs() * Draw(0, 2)
                                                : RandomTtlUs()),
        op.allow_past);
  }
  const bool takes_id = writes || op.kind == OpKind::kAppend ||
                        op.kind == OpKind::kCombine ||
                        op.kind == OpKind::kGather;
  if (takes_id && !op.return_previous && Chance(200) &&
      model_.options().idempotency_window_us != 0) {
    static constexpr absl::string_view kIds[] = {"1", "2", "3"};
    op.SetId(kIds[Draw(0, 2)]);
  }
  if ((op.kind == OpKind::kPut || op.kind >= OpKind::kAppend) && Chance(100)) {
    op.SetTrace(kTraces[Draw(0, 1)]);
  }
  if (Chance(8)) Spoil(&op);
  return op;
}

// Of the value that is there.
void ModelWorld::RandomChange(Operation* op) {
  op->touch = Chance(150);
  const int64_t kind = Draw(0, 2);
  const auto stored = model_.entries().find(std::string(op->key));
  // An answer is compared as a whole: that takes time.
  const bool huge = stored != model_.entries().end() &&
                    stored->second.entry.value.size() > kMaxGrownBytes;
  if (kind == 0 && !huge) {
    op->kind = OpKind::kAppend;
    op->value = RandomValue();
  } else if (kind == 1) {
    op->kind = OpKind::kCombine;
    op->combination = Chance(500) ? Combination::kAdd : Combination::kXor;
    op->operand = Chance(20) ? INT64_MAX - Draw(0, 1) : Draw(-3, 3);
    op->initial = Chance(800) ? 0 : Draw(-3, 3);
    op->remove_if_zero = Chance(500);
  } else {
    static constexpr absl::string_view kNames[] = {"a", "b", "c", "d"};
    op->kind = OpKind::kGather;
    op->value = Chance(900) ? absl::string_view("part") : RandomValue();
    Gathering& gathering = gatherings_.emplace_back();
    const bool by_name = Chance(300);
    const absl::string_view part = kNames[Draw(0, by_name ? 2 : 3)];
    const absl::Status status =
        gathering.Set(part, by_name ? 0 : (Chance(950) ? 3 : Draw(1, 4)),
                      by_name ? absl::MakeConstSpan(kNames).subspan(0, 3)
                              : absl::Span<const absl::string_view>());
    EXPECT_TRUE(status.ok()) << status;
    if (Chance(100)) {
      EXPECT_TRUE(gathering.Set(part, 0, {}).ok());
    }
    gathering.keep_first = Chance(300);
    if (Chance(200)) gathering.remember_us = RandomTtlUs();
    op->gathering = &gathering;
  }
}

// In one way at a time: which of two errors is told is nobody's promise.
void ModelWorld::Spoil(Operation* op) {
  const int64_t way = Draw(0, 5);
  if (way == 0) {
    op->key = "";
  } else if (way == 1) {
    op->key = absl::string_view(Noise()).substr(0, kMaxKeyBytes + 1);
  } else if (way == 5 && op->trace_bytes != 0) {
    op->SetTrace(kNoTrace);
  } else if (op->kind == OpKind::kGet || op->kind == OpKind::kRemove ||
             op->kind == OpKind::kContains || op->keep_deadline) {
    return;
  } else if (way == 2 && op->kind != OpKind::kTouch &&
             op->kind != OpKind::kCombine) {
    value_.resize(model_.options().max_value_bytes + 1, 'v');
    op->value = value_;
  } else {
    op->namespace_ttl = false;
    op->has_ttl = true;
    op->ttl_us =
        way == 3 ? Draw(-1, kMinTtlUs - 1) : model_.options().max_ttl_us + 1;
  }
}

void ModelWorld::FindKeysOfSameTags() {
  const KeyHash hash(map_.origin().hash_seed);
  absl::flat_hash_map<uint32_t, int64_t> numbers;
  const auto wanted = static_cast<size_t>(options_.keys);
  for (int64_t i = 0; same_tags_.size() < wanted; ++i) {
    const uint32_t tag = CompactIndex::TagOf(hash(absl::StrCat("k", i)));
    const auto [it, is_new] = numbers.try_emplace(tag, i);
    if (!is_new) same_tags_.insert(same_tags_.end(), {it->second, i});
  }
}

// Some keys are hot.
absl::string_view ModelWorld::RandomKey() {
  const int keys = Chance(300) ? options_.keys / 10 + 1 : options_.keys;
  int64_t number = Draw(1, keys);
  if (options_.same_tags) number = same_tags_[static_cast<size_t>(number - 1)];
  std::string& key = keys_.emplace_back(absl::StrCat("k", number));
  if (options_.same_tags) return key;
  if (number % 17 == 0) key.append(number % kLongestRandomKeyBytes, 'l');
  if (number == 13) key.resize(kMaxKeyBytes, 'm');
  return key;
}

absl::string_view ModelWorld::RandomValue() {
  int64_t bytes = 16;
  if (Chance(options_.huge_values_per_mille)) {
    bytes = Draw(0, kHugeValueBytes);
  } else if (!Chance(300)) {
    bytes = Draw(0, options_.max_value_bytes);
  }
  return absl::string_view(Noise()).substr(Draw(0, kHugeValueBytes - 1), bytes);
}

int64_t ModelWorld::RandomTtlUs() {
  const NamespaceOptions& options = model_.options();
  const int64_t kind = Draw(0, 99);
  if (kind < 6) return options.max_ttl_us;
  if (kind < 10) return kMinTtlUs;
  if (kind < 20) return options.ttl_us;
  const int64_t most_us = std::min(options.max_ttl_us, 3 * options.ttl_us);
  return Draw(kMinTtlUs, std::max(kMinTtlUs, most_us));
}

void ModelWorld::Compare(const Operation& op, const Result& engine,
                         const Result& model) {
  SCOPED_TRACE(absl::StrCat(
      "kind ", static_cast<int>(op.kind), ", condition ",
      static_cast<int>(op.condition), ", touch ", op.touch, ", own ttl ",
      op.has_ttl ? op.ttl_us : 0, ", expire at ",
      op.has_expire_at ? op.expire_at_us : 0, ", value of ", op.value.size(),
      " bytes, key ", std::string(op.key.substr(0, 20)), ", now ", now_us_));
  ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(engine, model));
  const bool repeated = op.id_bytes != 0 && versions_.contains(engine.version);
  const bool is_new = engine.version != 0 && !engine.duplicate && !repeated;
  if (is_new && op.kind != OpKind::kTouch) CheckVersion(op.key, engine.version);
}

void ModelWorld::CheckVersion(absl::string_view key, uint64_t version) {
  ASSERT_GE(version, static_cast<uint64_t>(kStartUs));
  ASSERT_TRUE(versions_.insert(version).second)
      << "a version twice: " << version;
  uint64_t& last = last_versions_[std::string(key)];
  ASSERT_GT(version, last) << "a key's versions must grow";
  last = version;
}

void ModelWorld::CheckSize() {
  const NamespaceSize size = map_.GetSize(now_us_);
  ASSERT_EQ(size.entries, static_cast<int64_t>(model_.entries().size()));
  ASSERT_EQ(size.bytes, model_.bytes());
}

// The model is not scanned in steps, so that nothing may change meanwhile.
void ModelWorld::CheckScan() {
  const std::string prefix = Chance(300) ? absl::StrCat("k", Draw(1, 9)) : "";
  const int page_entries = static_cast<int>(Draw(1, 500));
  const int64_t page_bytes = Draw(1, 1 << 16);
  std::map<std::string, Entry> scanned;
  int visited = 0;
  const EntryVisitor visit = [&](const EntryView& view) {
    ++visited;
    const Entry entry{std::string(view.value), view.version, view.put_us,
                      view.deadline_us,        view.parts,   view.create_us,
                      view.own_ttl_us};
    ASSERT_TRUE(scanned.insert({std::string(view.key), entry}).second)
        << "visited twice: " << view.key;
  };
  ScanPosition place;
  for (bool more = true; more;) {
    visited = 0;
    more = map_.Scan(prefix, now_us_, page_entries, page_bytes, &place, visit);
    ASSERT_LE(visited, page_entries + kLineEntries);
  }
  size_t expected = 0;
  for (const auto& [key, stored] : model_.entries()) {
    if (!absl::StartsWith(key, prefix)) continue;
    ++expected;
    const auto it = scanned.find(key);
    ASSERT_NE(it, scanned.end()) << "not visited: " << key;
    ASSERT_TRUE(it->second.value == stored.entry.value);
    ASSERT_EQ(it->second.version, stored.entry.version);
    ASSERT_EQ(it->second.put_us, stored.entry.put_us);
    ASSERT_EQ(it->second.deadline_us, stored.entry.deadline_us);
    ASSERT_EQ(it->second.create_us, stored.entry.create_us);
    ASSERT_EQ(it->second.own_ttl_us, stored.entry.own_ttl_us);
    ASSERT_EQ(it->second.parts, stored.entry.parts);
  }
  ASSERT_EQ(scanned.size(), expected);
}

void ModelWorld::Rotate() {
  ASSERT_EQ(map_.Rotate(now_us_), model_.Rotate(now_us_));
}

void ModelWorld::Update() {
  static constexpr int kBuckets[] = {2, 3, 7, 101, 1000};
  static constexpr int64_t kTtlTimes[] = {1, 3, 6, 15};
  NamespaceOptions options = model_.options();
  options.ttl_us = options_.map.ttl_us * kTtlTimes[Draw(0, 3)] / 3;
  options.num_buckets = kBuckets[Draw(0, 4)];
  options.sliding = Chance(300);
  options.idempotency_window_us = Chance(300) ? 0 : options.ttl_us * Draw(1, 3);
  options.max_life_us = Chance(500) ? 0 : options.ttl_us * Draw(1, 4);
  if (options_.map.max_entries != 0) {
    options.max_entries = Draw(1, 2 * options_.map.max_entries);
  }
  if (options_.map.max_bytes != 0) {
    options.max_bytes = Draw(100, 2 * options_.map.max_bytes);
  }
  if (Chance(200)) {
    options.change_retention_us =
        options.change_retention_us == 0 ? kMinTtlUs : 0;
  }
  if (!Validate(options).ok()) return;
  map_.Update(options, now_us_);
  model_.Update(options);
  ASSERT_EQ(map_.options().ttl_us, options.ttl_us);
  ASSERT_EQ(map_.options().num_buckets, options.num_buckets);
  if ((options.change_retention_us != 0) == (changes_ != nullptr)) return;
  if (changes_ == nullptr) return WatchChanges();
  // What has not been read yet can still be.
  ReadChanges();
  ASSERT_NO_FATAL_FAILURE(change_auditor_.CheckComplete());
  ASSERT_TRUE(changes_->Read(1).closed);
  changes_ = nullptr;
  const auto none =
      map_.WatchChanges(LogStart::kEarliest, nullptr, now_us_, [] {});
  ASSERT_EQ(ReasonOf(none.status()), Reason::kNoChanges);
}

void ModelWorld::WatchChanges() {
  if (model_.options().change_retention_us == 0) return;
  auto cursor = map_.WatchChanges(LogStart::kNow, nullptr, now_us_, [] {});
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  changes_ = *std::move(cursor);
  change_auditor_ = ChangeAuditor();
}

void ModelWorld::ReadChanges() {
  if (changes_ == nullptr) return;
  for (bool more = true; more && !testing::Test::HasFatalFailure();) {
    const EventChunk chunk = changes_->Read(Draw(1, 1 << 20));
    change_auditor_.Check(chunk);
    more = chunk.more;
  }
}

void ModelWorld::CollectDeaths() {
  std::vector<ReferenceModel::Death> deaths = model_.TakeDeaths();
  for (const ReferenceModel::Death& death : deaths) ++deaths_[death.cause];
  auditor_.Expect(std::move(deaths));
}

void ModelWorld::Read(ExpiryLog::Cursor* cursor, int64_t max_bytes) {
  CollectDeaths();
  auditor_.Check(cursor->Read(max_bytes));
}

void ModelWorld::Join() {
  joiner_ = map_.Subscribe(ExpiryLog::Start::kNow, now_us_, [] {});
  joined_us_ = now_us_;
  joiner_told_.clear();
  auditor_.TakeTold();
}

void ModelWorld::ReadJoiner() {
  const ExpiryLog::Chunk chunk = joiner_->Read(1 << 20);
  ASSERT_EQ(chunk.lost, 0u);
  ASSERT_GE(chunk.watermark_us, joined_us_);
  for (const auto& batch : chunk.batches) {
    ASSERT_GT(batch->death_us(), joined_us_) << "a death before the start";
    for (int i = 0; i < batch->size(); ++i) {
      joiner_told_.push_back({batch->death_us(), batch->event(i).version});
    }
  }
}

// Both watchers were told the same, in the same order. What was killed by hand
// at the moment of joining may have died in the tick after it.
void ModelWorld::CheckJoiner() {
  while (true) {
    const size_t before = joiner_told_.size();
    ReadJoiner();
    if (joiner_told_.size() == before) break;
  }
  const auto at_joining = [this](const std::pair<int64_t, uint64_t>& told) {
    return told.first <= joined_us_ + 1;
  };
  std::vector<std::pair<int64_t, uint64_t>> told = auditor_.TakeTold();
  std::erase_if(told, at_joining);
  std::erase_if(joiner_told_, at_joining);
  ASSERT_TRUE(told == joiner_told_)
      << "a watcher from the start was told " << told.size()
      << " events, a later one " << joiner_told_.size();
  joiner_.reset();
}

void ModelWorld::CheckStatistics() {
  const NamespaceStatistics statistics = map_.GetStatistics(now_us_);
  ASSERT_EQ(statistics.entries, static_cast<int64_t>(model_.entries().size()));
  ASSERT_EQ(statistics.bytes, model_.bytes());
  ASSERT_EQ(statistics.live_buckets, model_.live_buckets());
  ASSERT_EQ(statistics.expired, deaths_[Cause::kExpired]);
  ASSERT_EQ(statistics.evicted, deaths_[Cause::kEvicted]);
  ASSERT_EQ(statistics.rotated, deaths_[Cause::kRotated]);
  ASSERT_EQ(statistics.bucket_width_us, BucketWidthUs(model_.options()));
  ASSERT_GE(statistics.memory_bytes, model_.bytes());
  CheckDeathsAhead();
}

void ModelWorld::CheckDeathsAhead() {
  DeathsQuery query = {.max_bars = static_cast<size_t>(Draw(1, 100))};
  if (Chance(300)) query.within_us = Draw(1, 2 * model_.options().ttl_us);
  const DeathsAhead deaths = map_.GetDeaths(query, now_us_);
  ASSERT_LE(deaths.bars.size(), query.max_bars);
  std::vector<std::pair<int64_t, int64_t>> expected(deaths.bars.size());
  std::pair<int64_t, int64_t> later;
  for (const auto& [key, stored] : model_.entries()) {
    const int64_t since_us = stored.death_us - deaths.begin_us;
    const auto bar = deaths.bar_us == 0 ? 0 : (since_us - 1) / deaths.bar_us;
    const bool in_bar = static_cast<size_t>(bar) < expected.size();
    auto& [entries, bytes] =
        in_bar ? expected[static_cast<size_t>(bar)] : later;
    ++entries;
    bytes += static_cast<int64_t>(key.size() + stored.entry.value.size());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(deaths.bars[i].entries, expected[i].first);
    ASSERT_EQ(deaths.bars[i].bytes, expected[i].second);
  }
  ASSERT_EQ(deaths.later.entries, later.first);
  ASSERT_EQ(deaths.later.bytes, later.second);
  const bool all = query.within_us == 0;
  ASSERT_TRUE(!all || later.first == 0);
}

void ModelWorld::CheckAtRest() {
  model_.Advance(now_us_);
  map_.Advance(now_us_);
  due_us_ = map_.NextDueUs(now_us_);
  while (map_.Sweep(now_us_, 1000)) {
  }
  map_.RefreshWatermark(now_us_);
  CollectDeaths();
  for (bool more = true; more && !testing::Test::HasFatalFailure();) {
    const ExpiryLog::Chunk chunk = cursor_->Read(1 << 20);
    auditor_.Check(chunk);
    more = chunk.more;
  }
  ASSERT_NO_FATAL_FAILURE(auditor_.CheckComplete());
  ASSERT_GE(auditor_.watermark_us(), now_us_);
  ASSERT_NO_FATAL_FAILURE(CheckSize());
  ASSERT_NO_FATAL_FAILURE(CheckScan());
  ASSERT_NO_FATAL_FAILURE(CheckStatistics());
  ReadChanges();
  ASSERT_NO_FATAL_FAILURE(change_auditor_.CheckComplete());
  if (joiner_ != nullptr) CheckJoiner();
  if (joiner_ == nullptr) auditor_.TakeTold();
}

}  // namespace timecache::server
