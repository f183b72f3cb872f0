// Holds the changes that a watcher reads against what operations have done to a
// model.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_CHANGE_AUDITOR_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_CHANGE_AUDITOR_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/engine/store/expiry_types.h"
#include "server/engine/store/operation.h"
#include "tests/support/engine/reference_model.h"

namespace timecache::server {

// Fails the test at the first change that is wrong, comes twice or out of the
// order of its key, or after a watermark that said it had come; and at a
// watermark that is ahead of a change.
//
// Not thread-safe.
class ChangeAuditor {
 public:
  // Applies the operation to the model, and expects what it changes.
  Result Apply(const Operation& op, int64_t now_us, uint64_t version,
               ReferenceModel* model);

  // One chunk of the watcher's, in the order of reading.
  void Check(const EventChunk& chunk);
  // After everything has been read.
  void CheckComplete() const;

 private:
  struct Change {
    ChangeKind kind;
    Entry entry;
    int64_t at_us;
  };

  // By key.
  std::unordered_map<std::string, std::deque<Change>> expected_;
  std::unordered_map<std::string, int64_t> last_us_;
  int64_t watermark_us_ = INT64_MIN;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_CHANGE_AUDITOR_H_
