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
// For an unbounded number of operations see timecache/pipeline.h.

#ifndef TIMECACHE_BATCH_H_
#define TIMECACHE_BATCH_H_

#include <cstddef>
#include <memory>

#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/operation.h"

namespace timecache::v1 {
class ExecuteRequest;
}  // namespace timecache::v1

namespace timecache {

// Operations for one call, Client::Execute, on one namespace. Not a
// transaction: each succeeds or fails by itself, and operations of other calls
// may come between; those of one key apply in the order in which they were
// added.
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

  // A batch may grow beyond the limits; Execute refuses it then.
  void Add(Operation operation);

  size_t size() const;
  bool empty() const { return size() == 0; }
  // On the wire.
  size_t bytes() const { return bytes_; }
  void Clear();

  // The request message, without a namespace: for the client itself.
  const v1::ExecuteRequest& proto() const { return *request_; }

 private:
  std::unique_ptr<v1::ExecuteRequest> request_;
  size_t bytes_ = 0;
};

}  // namespace timecache

#endif  // TIMECACHE_BATCH_H_
