// One of many operations that go to the server together, and what became of it.
// See timecache/batch.h and timecache/pipeline.h.
#pragma once

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

// Most operations of one request, and most bytes of all of it: 16 MiB, the
// largest value that a namespace may allow, and what goes with it. A single
// operation that is larger is refused by whoever takes it.
inline constexpr size_t kMaxRequestOperations = 4096;
inline constexpr size_t kMaxRequestBytes = (16 << 20) + (64 << 10);
// Of that, for what is not an operation: the namespace's name.
inline constexpr size_t kMaxRequestHeadBytes = 128;

// An operation to be done: as the call of the same name of Client, with the
// same options. A value, as thread-safe as an int. Copies key and value.
class TIMECACHED_EXPORT Operation {
 public:
  Operation(const Operation& other);
  Operation& operator=(const Operation& other);
  // What was moved from may only be assigned to, or destroyed.
  Operation(Operation&& other) noexcept;
  Operation& operator=(Operation&& other) noexcept;
  ~Operation();

  static Operation Put(std::string_view key, std::string_view value,
                       const PutOptions& options = {});
  static Operation Get(std::string_view key, const GetOptions& options = {});
  static Operation Remove(std::string_view key,
                          const RemoveOptions& options = {});
  static Operation Contains(std::string_view key);
  static Operation Touch(std::string_view key,
                         const TouchOptions& options = {});
  static Operation Append(std::string_view key, std::string_view value,
                          const AppendOptions& options = {});
  static Operation Combine(std::string_view key, Combination combination,
                           int64_t operand, const CombineOptions& options = {});
  static Operation Gather(std::string_view key, std::string_view part,
                          std::string_view value, const GatherOptions& options);

  // What it takes of a request.
  size_t bytes() const;

  // As it goes on the wire, without a namespace: for the client itself.
  const v1::Operation& proto() const& { return *proto_; }
  std::unique_ptr<v1::Operation> proto() &&;

 private:
  Operation();

  std::unique_ptr<v1::Operation> proto_;
};

// What became of one operation. A plain value.
struct OperationResult {
  // Why it changed nothing: as the call of the same name would have failed,
  // with the same ErrorReason. And RESOURCE_EXHAUSTED, reason
  // MAX_RESPONSE_BYTES, for an entry that did not fit into the answer any more:
  // ask for it again. The rest is then as it stands here.
  absl::Status status = {};
  // Whether the key was there: of Get, Remove, Contains and Touch.
  bool found = false;
  // Of Put, Append, Combine and Gather: the entry's new version, 0 if it is
  // gone. Of a Touch that found it, and of a duplicate: the entry's, which
  // stays.
  uint64_t version = 0;
  // What Get found; what Put replaced, or Remove removed, and was asked to
  // return.
  std::optional<Entry> entry = {};
  // Of Append: the value's new length. Of Combine: the result. Of Gather: how
  // many parts are in.
  int64_t number = 0;
  // Of Append and Combine: whether the key was not there, and is now.
  bool created = false;
  // Of Combine: whether it is not there now, as the result was 0.
  bool removed = false;
  // Of Gather: whether the part was in, with this value.
  bool duplicate = false;
  // Of the Gather that brought the last one: all parts.
  std::optional<GatheredParts> parts = {};
};

}  // namespace timecache
