// One of many operations that go to the server together, and what became of it.
// See client/cpp/batch.h and client/cpp/pipeline.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/types.h"
#include "timecache/v1/data.pb.h"

namespace timecache::inline client {

// Most operations of one request, and most bytes of all of it: 16 MiB, the
// largest value that a namespace may allow, and what goes with it. A single
// operation that is larger is refused by whoever takes it.
inline constexpr size_t kMaxRequestOperations = 4096;
inline constexpr size_t kMaxRequestBytes = (16 << 20) + (64 << 10);
// Of that, for what is not an operation: the namespace's name.
inline constexpr size_t kMaxRequestHeadBytes = 128;

// An operation to be done: as the call of the same name of Client, with the
// same options. A value, as thread-safe as an int. Copies key and value.
class Operation {
 public:
  static Operation Put(std::string_view key, std::string_view value,
                       const PutOptions& options = {});
  static Operation Get(std::string_view key, const GetOptions& options = {});
  static Operation Remove(std::string_view key,
                          const RemoveOptions& options = {});
  static Operation Contains(std::string_view key);
  static Operation Touch(std::string_view key,
                         const TouchOptions& options = {});

  // What it takes of a request.
  size_t bytes() const;

  // As it goes on the wire; its namespace is empty.
  const v1::Operation& proto() const& { return proto_; }
  v1::Operation&& proto() && { return std::move(proto_); }

 private:
  v1::Operation proto_;
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
  // Of Put: the entry's new version. Of a Touch that found it: the entry's,
  // which stays.
  uint64_t version = 0;
  // What Get found; what Put replaced, or Remove removed, and was asked to
  // return.
  std::optional<Entry> entry = {};
};

// Reads the answer to an operation, and takes the bytes out of it. INTERNAL as
// its status where it is no answer to such an operation.
OperationResult TakeResult(const v1::Operation& operation,
                           v1::OperationResult& answer);

}  // namespace timecache::inline client
