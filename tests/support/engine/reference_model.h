// The map that is right by being plain: every rule of the expiring map in the
// fewest words, one ordered map and one set of keys per death time, nothing
// swept, nothing lazy. Tests hold the engine against it.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_REFERENCE_MODEL_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_REFERENCE_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/operation.h"

namespace timecache::server {

// Not thread-safe. Time must not go back. O(log n) an operation.
class ReferenceModel {
 public:
  struct Stored {
    Entry entry;
    int64_t death_us = 0;
    // Of one that has them, as they lie in the value, and what it expects.
    std::map<std::string, std::string> parts = {};
    std::string expectation = {};
    std::string trace = {};
  };

  // An entry that died. What dies by hand dies at a time that the model only
  // knows to lie in [earliest_us, latest_us].
  struct Death {
    std::string key;
    Entry entry;
    int64_t earliest_us = 0;
    int64_t latest_us = 0;
    Cause cause = Cause::kExpired;
    std::string trace = {};
  };

  explicit ReferenceModel(const NamespaceOptions& options)
      : options_(options) {}

  // Applies `op`. Versions are the engine's to choose: where the model gives
  // one out, it is `version`. Errors carry their code and reason, but no
  // message.
  Result Apply(const Operation& op, int64_t now_us, uint64_t version);

  // Lets everything die whose time has come.
  void Advance(int64_t now_us);
  // Kills the live bucket that would die next; returns how many died.
  int64_t Rotate(int64_t now_us);
  void Update(const NamespaceOptions& options) { options_ = options; }

  // Where all lives in one bucket, an eviction takes only some of it: the
  // engine chooses which. `survives` says whether this entry still lives there,
  // after the operation that is applied next; not asked in other cases.
  void SetSurvives(std::function<bool(const std::string& key)> survives) {
    survives_ = std::move(survives);
  }

  const NamespaceOptions& options() const { return options_; }
  const std::map<std::string, Stored>& entries() const { return entries_; }
  int64_t bytes() const { return bytes_; }
  int64_t live_buckets() const { return static_cast<int64_t>(buckets_.size()); }
  // When the next bucket dies; kNeverUs if none lives.
  int64_t NextDeathUs() const {
    return buckets_.empty() ? kNeverUs : buckets_.begin()->first;
  }

  // What has died since the last call, in order of death.
  std::vector<Death> TakeDeaths() { return std::exchange(deaths_, {}); }

 private:
  Result ApplyOnce(const Operation& op, int64_t now_us, uint64_t version);
  // What a Put, Append, Combine or Gather comes to.
  struct Made {
    absl::Status status;
    // The entry, unless it is removed or left as it is.
    bool stores = false;
    Stored entry = {};
    bool renews = false;
    // Key and value that the operation would store if the key was not there.
    int64_t alone_bytes = 0;
    // Of the result.
    bool removed = false;
    bool duplicate = false;
    int64_t number = 0;
    // With all parts.
    Entry whole = {};
  };
  Made Make(const Operation& op, const Stored* stored) const;
  void Append(const Operation& op, const Stored* stored, Made* made) const;
  static void Combine(const Operation& op, const Stored* stored, Made* made);
  void Gather(const Operation& op, const Stored* stored, Made* made) const;
  absl::Status Full(const std::string& key, const Made& made,
                    const Stored* stored) const;
  bool EvictSome(const Operation& op, int64_t now_us);
  bool EvictFor(const Operation& op, int64_t alone_bytes, int64_t now_us);
  void Do(const Operation& op, const std::string& key, int64_t now_us,
          Stored* stored, Result* result);
  void DoMade(const Operation& op, const std::string& key, int64_t now_us,
              uint64_t version, Made made, const Stored* stored,
              Result* result);
  Stored* Renew(const Operation& op, const std::string& key, int64_t now_us,
                Stored renewed);
  void BeginLife(const Operation& op, int64_t now_us, Entry* entry) const;
  Stored* Store(const Operation& op, const std::string& key, Stored stored,
                int64_t now_us);
  Stored* Place(const std::string& key, Stored stored);
  void Erase(const std::string& key);
  int64_t Kill(int64_t bucket_us, int64_t earliest_us, int64_t latest_us,
               Cause cause);

  NamespaceOptions options_;
  std::function<bool(const std::string& key)> survives_;
  std::map<std::string, Stored> entries_;
  // Keys by the death time of their bucket; no bucket is empty.
  std::map<int64_t, std::set<std::string>> buckets_;
  int64_t bytes_ = 0;
  std::vector<Death> deaths_;
  // The time of the operation that is applied.
  int64_t now_us_ = 0;
  // Keys that a Gather has completed, and until when that is remembered.
  std::map<std::string, int64_t> remembered_;
  // By key and idempotency id, answers and until when they are remembered.
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, Result>>
      answers_;
};

// Fails the test where the engine answers otherwise than the model.
void ExpectSameAnswer(const Result& engine, const Result& model);

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_REFERENCE_MODEL_H_
