// One of many operations that are sent to the server together, and its result.
// See timecache/batch.h and timecache/pipeline.h.

#ifndef TIMECACHE_OPERATION_H_
#define TIMECACHE_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "timecache/export.h"
#include "timecache/types.h"

namespace timecache::v1 {
class Operation;
}  // namespace timecache::v1

namespace timecache {

// Most operations of one request, and most bytes of a whole request: 16 MiB,
// the largest value that a namespace may allow, and its overhead. Batch and
// Pipeline refuse a single operation that is larger.
inline constexpr size_t kMaxRequestOperations = 4096;
inline constexpr size_t kMaxRequestBytes = (16 << 20) + (64 << 10);
// The part of it for the namespace's name.
inline constexpr size_t kMaxRequestHeadBytes = 128;

// An operation to apply: as the call of the same name of Client, with the same
// options. A value, as thread-safe as an int. Copies key and value.
class TIMECACHED_EXPORT Operation {
 public:
  Operation(const Operation& other);
  Operation& operator=(const Operation& other);
  // A moved-from object may only be assigned to or destroyed.
  Operation(Operation&& other) noexcept;
  Operation& operator=(Operation&& other) noexcept;
  ~Operation();

  static Operation Put(std::string_view key, std::string_view value,
                       const PutOptions& options = {});
  static Operation Get(std::string_view key, const GetOptions& options = {});
  static Operation Remove(std::string_view key,
                          const RemoveOptions& options = {});
  static Operation Contains(std::string_view key,
                            const ContainsOptions& options = {});
  static Operation Touch(std::string_view key,
                         const TouchOptions& options = {});
  static Operation Append(std::string_view key, std::string_view value,
                          const AppendOptions& options = {});
  static Operation Combine(std::string_view key, Combination combination,
                           int64_t operand, const CombineOptions& options = {});
  static Operation Gather(std::string_view key, std::string_view part,
                          std::string_view value, const GatherOptions& options);

  // Its size in a request.
  size_t bytes() const;

  // The request message, without a namespace: for the client itself.
  const v1::Operation& proto() const& { return *proto_; }
  std::unique_ptr<v1::Operation> proto() &&;

 private:
  Operation();

  std::unique_ptr<v1::Operation> proto_;
};

// The outcome of one operation. A plain value.
struct OperationResult {
  // Why it changed nothing: the error of the call of the same name, with the
  // same ErrorReason. Also RESOURCE_EXHAUSTED, reason MAX_RESPONSE_BYTES, for
  // an entry that did not fit into the rest of the response: ask for it again.
  // After an error the other fields have their defaults.
  absl::Status status = {};
  // Of Get, Remove, Contains and Touch: whether the key existed.
  bool found = false;
  // Of Put, Append, Combine and Gather: the entry's new version, 0 if it was
  // removed. Of a Touch that found it, and of a duplicate part: the entry's
  // version, which did not change.
  uint64_t version = 0;
  // The entry that Get found; with return_previous the entry that Put replaced
  // or Remove removed.
  std::optional<Entry> entry = {};
  // Of Append: the value's new length. Of Combine: the result. Of Gather: the
  // number of collected parts.
  int64_t number = 0;
  // Of Append and Combine: whether the entry was created.
  bool created = false;
  // Of Combine: whether the entry was removed because the result was 0.
  bool removed = false;
  // Of Gather: whether the part had been collected before, with this value.
  bool duplicate = false;
  // Of the Gather that added the last part: all parts.
  std::optional<GatheredParts> parts = {};
};

}  // namespace timecache

#endif  // TIMECACHE_OPERATION_H_
