// A world for the model of delivery: a map whose entries die at random,
// watchers and consumer groups that come and go, and a reference of what each
// must see.

#ifndef TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WORLD_H_
#define TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WORLD_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "server/engine/map/time_cache_map.h"
#include "tests/support/delivery/delivery_group_player.h"
#include "tests/support/delivery/delivery_reference.h"
#include "tests/support/delivery/delivery_watcher.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/reference_model.h"

namespace timecache::server {

struct DeliveryWorldOptions {
  std::string name;
  NamespaceOptions map;
  int keys = 50;
  int max_value_bytes = 64;
  // Of a thousand steps, how many move the clock.
  int clock_per_mille = 100;
  int watchers = 6;
  int groups = 0;
  GroupPlayerOptions group;
  bool retention_changes = false;
  // Memory runs short now and then.
  bool squeezes = false;
  // A watcher that always reads tells the reference what the log appended. If
  // not, nobody may be there to be told of a death.
  bool recorded = true;
  // Share of the whole run's steps, relative to the other worlds.
  double weight = 1;
};

// For GoogleTest.
inline void PrintTo(const DeliveryWorldOptions& options, std::ostream* out) {
  *out << options.name;
}

// Runs the engine beside the reference and fails the test where they differ.
//
// Not thread-safe.
class DeliveryWorld {
 public:
  DeliveryWorld(const DeliveryWorldOptions& options, Dice dice);

  // One random operation, clock step, act of a watcher, of a group, or of
  // whoever drives the map.
  void Step();
  // Sweeps, and compares all there is to compare. Who stalls, stalls on.
  void CheckAtRest();
  // All watchers come back and read all, all groups settle all: every event
  // that died is accounted for. Then the map is deleted under them.
  void End();

  // What happened, for the eye: a world in which nothing does tests nothing.
  std::string Story() const;

 private:
  void StepClock();
  void StepOperation();
  void StepDriver();
  void StepWatcher();
  void StepGroup();
  absl::string_view RandomValue();

  Result ApplyToModel(const Operation& op, uint64_t version);
  void CollectDeaths();
  // All that died is known to the reference afterwards.
  void AdvanceModel();
  uint64_t NeededByCursors() const;
  void Sweep(int max_records);
  bool SweepSome(int max_records);
  void Record();
  void Rotate();
  void UpdateRetention();
  void Squeeze();
  int64_t PassTo(int64_t time_us);
  absl::Status PutDeadLetter(absl::string_view to_map, const std::string& key,
                             const std::string& value);
  void CheckDue() const;
  void CheckLogStatistics();

  const DeliveryWorldOptions options_;
  Dice dice_;
  int64_t now_us_;
  ReferenceModel model_;
  DeliveryReference events_;
  RetainedReference log_;
  // Where dead letters go.
  TimeCacheMap dead_map_;
  TimeCacheMap map_;
  // The earliest time that the map has asked its driver to come.
  int64_t due_us_ = kNeverUs;
  std::unique_ptr<ExpiryLog::Cursor> recorder_;
  std::vector<std::unique_ptr<DeliveryWatcher>> watchers_;
  std::vector<std::unique_ptr<GroupPlayer>> groups_;

  // What the views of operations point into.
  std::string key_;
  Result result_;

  uint64_t resumes_ = 0;
  uint64_t reclaimed_ = 0;
  uint64_t delivered_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WORLD_H_
