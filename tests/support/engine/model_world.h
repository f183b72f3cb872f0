// A world for the model test: one configuration of a map, and a stream of
// random operations and clock steps that suits it.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_WORLD_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_WORLD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/map/time_cache_map.h"
#include "tests/support/engine/change_auditor.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/event_auditor.h"
#include "tests/support/engine/reference_model.h"

namespace timecache::server {

struct WorldOptions {
  std::string name;
  NamespaceOptions map;
  int keys = 100;
  int max_value_bytes = 64;
  // Of a thousand puts, how many carry a value of up to 1 MiB.
  int huge_values_per_mille = 0;
  // Of a thousand steps, how many move the clock.
  int clock_per_mille = 120;
  // Of a thousand puts and touches, how many bring their own TTL.
  int own_ttl_per_mille = 100;
  bool updates = false;
  // Each key has the tag of another. In one shard.
  bool same_tags = false;
  // The watcher reads so rarely that it loses events.
  bool slow_watcher = false;
  // Share of the whole run's steps, relative to the other worlds.
  double weight = 1;
};

// For GoogleTest.
inline void PrintTo(const WorldOptions& options, std::ostream* out) {
  *out << options.name;
}

// Runs the engine beside the model and fails the test where they differ.
//
// Not thread-safe.
class ModelWorld {
 public:
  ModelWorld(const WorldOptions& options, Dice dice);

  // One random operation, clock step or act of whoever drives the map.
  void Step();

  // Sweeps and reads everything, compares all there is to compare.
  void CheckAtRest();

 private:
  int64_t Draw(int64_t least, int64_t most) { return dice_.Draw(least, most); }
  bool Chance(int per_mille) { return dice_.Chance(per_mille); }

  void StepClock();
  void StepOperation();
  void StepBatch();
  void StepAtomic();
  void StepDriver();
  void StepReader();

  Operation RandomOperation();
  void RandomChange(Operation* op);
  void Spoil(Operation* op);
  void FindKeysOfSameTags();
  absl::string_view RandomKey();
  absl::string_view RandomValue();
  int64_t RandomTtlUs();
  void Compare(const Operation& op, const Result& engine, const Result& model);
  void CheckVersion(absl::string_view key, uint64_t version);
  void CheckSize();
  void CheckScan();
  void CheckStatistics();
  void CheckDeathsAhead();
  void Rotate();
  void Update();
  void Read(ExpiryLog::Cursor* cursor, int64_t max_bytes);
  void Join();
  void ReadJoiner();
  void CheckJoiner();
  void CollectDeaths();
  Result Expect(const Operation& op, const Result& engine);
  void WatchChanges();
  void ReadChanges();

  const WorldOptions options_;
  Dice dice_;
  int64_t now_us_;
  ReferenceModel model_;
  TimeCacheMap map_;
  std::unique_ptr<ExpiryLog::Cursor> cursor_;
  EventAuditor auditor_;
  // Null while the map keeps no changes.
  std::unique_ptr<ChangeFeed::Cursor> changes_;
  ChangeAuditor change_auditor_;
  // The earliest time that the map has asked its driver to come.
  int64_t due_us_ = kNeverUs;

  // Versions given out, ever and last for each key.
  std::unordered_set<uint64_t> versions_;
  std::unordered_map<std::string, uint64_t> last_versions_;
  // How many died, by cause.
  std::map<Cause, uint64_t> deaths_;
  // What the views of operations point into.
  std::deque<std::string> keys_;
  // Of options_.same_tags: what makes two keys that the index cannot tell
  // apart.
  std::vector<int64_t> same_tags_;
  std::deque<Gathering> gatherings_;
  std::string value_;
  // Used again, as those who serve requests do.
  Result result_;

  // A watcher that came later, and what both were told since.
  std::unique_ptr<ExpiryLog::Cursor> joiner_;
  int64_t joined_us_ = 0;
  std::vector<std::pair<int64_t, uint64_t>> joiner_told_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_MODEL_WORLD_H_
