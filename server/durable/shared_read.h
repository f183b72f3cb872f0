// One pass over a journal, for several threads that each take a part of it.

#ifndef TIMECACHED_SERVER_DURABLE_SHARED_READ_H_
#define TIMECACHED_SERVER_DURABLE_SHARED_READ_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/log/journal.h"

namespace timecache::server {

// Run reads, and the parts take their records from queues. So each byte is read
// and checked once, and no part is further in the log than another by more than
// its queue: what they rebuild is of about one time, and together takes about
// the memory that it took then.
//
// Thread-safe. Holds a group of the journal and kQueueBytes for each part, or
// one record if that is larger. Costs a copy of the records.
class SharedRead {
 public:
  using Partitions = std::vector<Journal::ReadFrom>;
  static constexpr size_t kQueueBytes = size_t{1} << 20;
  // Handed over at once.
  static constexpr size_t kBatchBytes = size_t{64} << 10;

  // The partitions of each part, none in two. `journal` must outlive this.
  SharedRead(const Journal* journal, const std::vector<Partitions>& parts);
  SharedRead(const SharedRead&) = delete;
  SharedRead& operator=(const SharedRead&) = delete;

  // Called when all that the journal had is handed to the parts: true to read
  // what it has meanwhile.
  using More = std::function<bool()>;

  // Reads all, as Journal::Read, and again as long as `more` says so; null:
  // once. Once, beside a Read of each part, without which it does not end.
  absl::Status Run(const More& more = nullptr) ABSL_LOCKS_EXCLUDED(mu_);

  // Visits the records of a part: in order within a partition. Once for each.
  // An error, of Run or of any part's visitor, ends Run and all parts with it.
  absl::Status Read(size_t part, Journal::Visitor visit)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Batch {
    struct Record {
      uint32_t partition;
      uint64_t position;
      size_t bytes;
    };
    std::vector<Record> records;
    // Of all of them.
    std::string bytes;
  };
  struct Part {
    // Run's.
    Batch open;
    std::deque<Batch> queue;
    size_t queued_bytes = 0;
  };

  absl::Status ReadOnce() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for room.
  absl::Status Push(Part* part) ABSL_LOCKS_EXCLUDED(mu_);
  // Null at the end, or after an error.
  std::unique_ptr<Batch> Pop(Part* part) ABSL_LOCKS_EXCLUDED(mu_);
  static absl::Status Visit(const Batch& batch, Journal::Visitor visit);
  // The first error is that of all.
  absl::Status End(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);

  const Journal* const journal_;
  // What is to be read next.
  Partitions from_;
  // By partition.
  std::vector<Part*> part_of_;
  std::vector<size_t> from_of_;

  // Of all queues and the end.
  absl::Mutex mu_;
  std::vector<std::unique_ptr<Part>> parts_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_SHARED_READ_H_
