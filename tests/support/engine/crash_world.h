// A world in which a map, and what reads it, crash.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_WORLD_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/engine/crash_groups.h"
#include "tests/support/engine/crash_map.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/reference_model.h"

namespace timecache::server {

struct CrashWorldOptions {
  std::string name;
  NamespaceOptions map;
  int keys = 60;
  bool groups = false;
  // What is live and retained is told again now and then, and all before that is
  // dropped.
  bool trims = false;
};

// For GoogleTest.
inline void PrintTo(const CrashWorldOptions& options, std::ostream* out) {
  *out << options.name;
}

// Plain, with two buckets, with sliding expiry, evicting buckets and entries;
// with groups: plain, of which some is lost, evicting; with a log that is
// trimmed, with and without events that are retained.
std::vector<CrashWorldOptions> CrashWorlds();

// Operations, time, kills, commits and crashes by chance, beside the model,
// which goes back with each crash to what was committed. Fails the test where
// they differ. Not thread-safe.
class CrashWorld {
 public:
  // `log` is not owned.
  CrashWorld(const CrashWorldOptions& options, CommitLog* log, Dice dice);

  void Step();
  // All that died was told, once, in order; all that lives is there.
  void CheckAtRest();
  size_t told() const { return journaled_.told().size(); }
  // What groups did; null without groups.
  const CrashGroups* groups() const { return groups_.get(); }
  uint64_t trims() const { return trims_; }

 private:
  // What a crash goes back to.
  struct Durable {
    ReferenceModel model;
    std::vector<ReferenceModel::Death> deaths;
    int64_t now_us;
  };

  void StepClock();
  void StepOperation();
  void StepTrim();
  Result PutBackIntoModel(const Operation& op, uint64_t version);
  void Pass();
  void Commit();
  void TakeDeaths();
  void Crash();
  void CheckRetained();

  const CrashWorldOptions options_;
  Dice dice_;
  int64_t now_us_ = kStartUs;
  JournaledMap journaled_;
  ReferenceModel model_;
  std::vector<ReferenceModel::Death> deaths_;
  Durable durable_;
  std::unique_ptr<CrashGroups> groups_;
  uint64_t trims_ = 0;
  // Of the last operation.
  std::string key_;
  Result result_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_WORLD_H_
