// What clients asked of one key and were answered, and whether that can be:
// whether there is an order of the operations, each between its call and its
// answer, in which a single map would have given these answers.
//
// The search is Wing and Gong's, as in Lowe's "Testing for linearizability" and
// in porcupine: depth first, with a memory of what was tried.

#ifndef TIMECACHED_TESTS_SUPPORT_KEY_HISTORY_H_
#define TIMECACHED_TESTS_SUPPORT_KEY_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace timecache::test {

enum class HistoryKind {
  kPut,
  kGet,
  kRemove,
  kAppend,
  kAdd,  // Combine.
  kTouch,
  kAdvance,  // Of the server's clock: belongs to the history of every key.
};

// One call. Moments are numbers that grow in the order of what happens in the
// test.
struct HistoryEntry {
  static constexpr int64_t kNever = INT64_MAX;

  HistoryKind kind = HistoryKind::kGet;
  int64_t called_at = 0;
  // kNever: the caller was not answered. It may have happened, then or later,
  // or not.
  int64_t answered_at = kNever;
  // A time that the server's clock had reached before the call: what is put
  // lives from then on at the earliest.
  int64_t clock_us = 0;

  // What was asked. kAdvance: `number` is the time. kAdd: what is added.
  std::string value = {};
  int64_t number = 0;
  bool if_absent = false;
  bool keep_deadline = false;
  std::optional<uint64_t> if_version = {};

  // What was answered. Not `done`: a condition did not hold, or the value is no
  // number.
  bool done = true;
  bool found = false;  // Whether the key was there.
  std::string got = {};
  uint64_t version = 0;
  int64_t result = 0;  // Of kAppend the length, of kAdd the sum.

  // For messages.
  std::string Text() const;
};

// How long the key's entries live.
struct HistoryOptions {
  int64_t ttl_us = 0;
  int64_t width_us = 0;  // Of a bucket.
  int64_t start_us = 0;  // The clock's time at the beginning.
  // States that are looked at before the search gives up.
  size_t max_states = 5'000'000;
};

enum class Verdict { kLinearizable, kNotLinearizable, kGaveUp };

struct HistoryVerdict {
  Verdict verdict = Verdict::kGaveUp;
  size_t states = 0;  // That were looked at.
  // Where it is not linearizable: the most that could be put in order, and what
  // could not come next.
  std::string why = {};
};

// The entries in any order; the key is not there at the beginning.
HistoryVerdict CheckHistory(std::vector<HistoryEntry> history,
                            const HistoryOptions& options);

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_KEY_HISTORY_H_
