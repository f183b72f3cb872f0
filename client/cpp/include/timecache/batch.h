// Many operations in one round trip.
//
//   timecache::Batch batch;
//   batch.Add(timecache::Operation::Put("a", "1", {.ttl = absl::Minutes(5)}));
//   batch.Add(timecache::Operation::Get("b"));
//   absl::StatusOr<std::vector<timecache::OperationResult>> results =
//       client.Execute(batch);
//   if (results.ok() && (*results)[1].found) {
//     std::cout << (*results)[1].entry->value;
//   }
//
// All or none, here a move of 5 from one number to another one:
//
//   timecache::Batch batch;
//   batch.set_atomic(true);
//   batch.Add(timecache::Operation::Combine("a", timecache::Combination::kAdd, -5));
//   batch.Add(timecache::Operation::Combine("b", timecache::Combination::kAdd, 5));
//   auto results = client.Execute(batch);
//   absl::Status moved =
//       results.ok() ? timecache::AtomicStatus(*results) : results.status();
//
// For an unbounded number of operations see timecache/pipeline.h.

#ifndef TIMECACHE_BATCH_H_
#define TIMECACHE_BATCH_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/operation.h"

namespace timecache::v1 {
class ExecuteRequest;
}  // namespace timecache::v1

namespace timecache {

// Operations for one call, Client::Execute, on one namespace. Not a
// transaction, unless it is atomic: each succeeds or fails by itself, and
// operations of other calls may come between; those of one key apply in the order
// in which they were added.
//
// Not thread-safe. Holds all of its keys and values.
class TIMECACHED_EXPORT Batch {
 public:
  Batch();
  Batch(const Batch& other);
  Batch& operator=(const Batch& other);
  // A moved-from object may only be assigned to or destroyed.
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch&& other) noexcept;
  ~Batch();

  // Most operations, and most bytes of all of them on the wire: keys, values,
  // and up to some tens of bytes for each.
  static constexpr size_t kMaxOperations = kMaxRequestOperations;
  static constexpr size_t kMaxBytes = kMaxRequestBytes - kMaxRequestHeadBytes;

  // All operations or none: if one fails, its result says why, and the others
  // have ABORTED (reason NOT_APPLIED). No other call sees a part of them, and no
  // crash leaves one. At most 128 operations, 1 MiB in all, each on a key of its
  // own; otherwise Execute is INVALID_ARGUMENT (INVALID_FIELD).
  void set_atomic(bool atomic);
  bool atomic() const;

  // A batch may grow beyond the limits; Execute refuses it then.
  void Add(Operation operation);

  size_t size() const;
  bool empty() const { return size() == 0; }
  // On the wire.
  size_t bytes() const { return bytes_; }
  // As new: not atomic either.
  void Clear();

  // The request message, without a namespace: for the client itself.
  const v1::ExecuteRequest& proto() const { return *request_; }

 private:
  std::unique_ptr<v1::ExecuteRequest> request_;
  size_t bytes_ = 0;
};

// Of an atomic batch: OK if it was applied, or the first error that says why it
// was not.
TIMECACHED_EXPORT absl::Status AtomicStatus(
    const std::vector<OperationResult>& results);

}  // namespace timecache

#endif  // TIMECACHE_BATCH_H_
