// The operations on a namespace's entries, and their results.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_OPERATION_H_
#define TIMECACHED_SERVER_ENGINE_STORE_OPERATION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/gathered_parts.h"

namespace timecache::server {

enum class OpKind : uint8_t {
  kPut,
  kGet,
  kRemove,
  kContains,
  kTouch,
  kAppend,
  kCombine,
  kGather
};

inline constexpr size_t kMaxIdempotencyIdBytes = 64;

// Of an atomic batch. The bytes are those of the request.
inline constexpr size_t kMaxAtomicOperations = 128;
inline constexpr size_t kMaxAtomicBytes = size_t{1} << 20;

enum class Condition : uint8_t { kNone, kIfAbsent, kIfPresent, kIfVersion };

// How a Combine makes one number of two.
enum class Combination : uint8_t { kAdd, kXor };

// One operation on one key. The views must stay valid until it has been
// applied.
//
// It is applied as it is: keys of 1 to kMaxKeyBytes, values up to the
// namespace's max_value_bytes, own TTLs from kMinTtlUs to its max_ttl_us and
// expire_at_us are checked then, and anything else is the operation's error.
struct Operation {
  // User-provided, as else a vector zeroes the whole of a new one first, which
  // for this size is `rep stos`: 17 ns of each operation of a batch.
  Operation() {}

  OpKind kind = OpKind::kGet;
  // Put, Append, Remove, Touch, Combine: the condition. The last three support
  // kNone and kIfVersion.
  Condition condition = Condition::kNone;
  // Get, Append, Combine, Gather: renew the TTL of an existing entry.
  bool touch = false;
  // Get: do not renew it, in a sliding map, either.
  bool never_touch = false;
  // Put, Remove: return the previous entry.
  bool return_previous = false;
  // Put, Touch: the entry's own TTL was given in ttl_us. Append, Combine,
  // Gather: the same of an entry that they make, or renew.
  bool has_ttl = false;
  // Put, Touch: this life ends at expire_at_us, whatever the TTL. It is no later
  // than the namespace's max_ttl_us from now, and after now unless allow_past is
  // set, too: then the entry dies at once.
  bool has_expire_at = false;
  bool allow_past = false;
  // Put: an existing entry keeps its put time, TTL and death. Not with an own
  // TTL, nor with expire_at_us.
  bool keep_deadline = false;
  // Touch: the entry has no own TTL any more. Not with one.
  bool namespace_ttl = false;
  // Of the idempotency id, 1 to kMaxIdempotencyIdBytes; 0: there is none.
  uint8_t id_bytes = 0;
  // Of the traceparent, which must be one; 0: there is none.
  uint8_t trace_bytes = 0;
  // Combine.
  Combination combination = Combination::kAdd;
  bool remove_if_zero = false;
  // Put: the value is GatheredParts. Used by the server itself, to put back
  // expired entries.
  bool parts = false;
  // Put, alone in its call: a dead letter, which the server itself has written: of
  // any size, as max_value_bytes is for clients, and no rate limit counts it.
  // OUT_OF_RANGE where it is larger than all that the namespace, or its server, may
  // hold.
  bool letter = false;
  int64_t ttl_us = 0;
  int64_t expire_at_us = 0;
  uint64_t if_version = 0;
  absl::string_view key;
  // Put: the value. Append: what is appended to it. Gather: the part's.
  absl::string_view value;
  // Combine: the operand, and the value of a key that is not there.
  int64_t operand = 0;
  int64_t initial = 0;
  // Gather: the part's name, and the expected parts. Not owned.
  const Gathering* gathering = nullptr;
  // Put, Remove, Append, Combine, Gather: where the id is.
  const char* id_data = nullptr;
  // Put, Append, Combine, Gather: the traceparent's text, for an entry that they
  // make.
  const char* trace_data = nullptr;

  absl::string_view id() const { return {id_data, id_bytes}; }
  // At most 255 bytes of it.
  void SetId(absl::string_view id) {
    id_data = id.data();
    id_bytes = static_cast<uint8_t>(std::min(id.size(), size_t{UINT8_MAX}));
  }
  absl::string_view trace() const { return {trace_data, trace_bytes}; }
  // The same.
  void SetTrace(absl::string_view trace) {
    trace_data = trace.data();
    trace_bytes =
        static_cast<uint8_t>(std::min(trace.size(), size_t{UINT8_MAX}));
  }

  static Operation Put(absl::string_view key, absl::string_view value) {
    Operation op;
    op.kind = OpKind::kPut;
    op.key = key;
    op.value = value;
    return op;
  }
  static Operation DeadLetter(absl::string_view key, absl::string_view value) {
    Operation op = Put(key, value);
    op.letter = true;
    return op;
  }
  static Operation Get(absl::string_view key) { return Of(OpKind::kGet, key); }
  static Operation Remove(absl::string_view key) {
    return Of(OpKind::kRemove, key);
  }
  static Operation Contains(absl::string_view key) {
    return Of(OpKind::kContains, key);
  }
  static Operation Touch(absl::string_view key) {
    return Of(OpKind::kTouch, key);
  }
  static Operation Append(absl::string_view key, absl::string_view bytes) {
    Operation op = Of(OpKind::kAppend, key);
    op.value = bytes;
    return op;
  }
  static Operation Combine(absl::string_view key, Combination combination,
                           int64_t operand) {
    Operation op = Of(OpKind::kCombine, key);
    op.combination = combination;
    op.operand = operand;
    return op;
  }
  static Operation Gather(absl::string_view key, const Gathering* gathering,
                          absl::string_view value) {
    Operation op = Of(OpKind::kGather, key);
    op.gathering = gathering;
    op.value = value;
    return op;
  }

  // The same operation with an own TTL.
  Operation WithTtl(int64_t own_ttl_us) const {
    Operation op = *this;
    op.has_ttl = true;
    op.ttl_us = own_ttl_us;
    return op;
  }
  // The same operation for a life until then.
  Operation ExpiringAt(int64_t time_us, bool past_too = false) const {
    Operation op = *this;
    op.has_expire_at = true;
    op.expire_at_us = time_us;
    op.allow_past = past_too;
    return op;
  }

 private:
  static Operation Of(OpKind kind, absl::string_view key) {
    Operation op;
    op.kind = kind;
    op.key = key;
    return op;
  }
};

// Whether a Get renews what it finds, in a map that is `sliding` or not.
inline bool GetRenews(const Operation& op, bool sliding) {
  return op.touch || (sliding && !op.never_touch);
}

// Whether `op` may change something.
inline bool Writes(const Operation& op, bool sliding) {
  if (op.kind == OpKind::kGet) return GetRenews(op, sliding);
  return op.kind != OpKind::kContains;
}

// What is stored under a key.
struct Entry {
  std::string value;
  // Identifies the value: a renewal does not change it.
  uint64_t version = 0;
  // When its life last began, and when it ends.
  int64_t put_us = 0;
  int64_t deadline_us = 0;
  // Whether the value is GatheredParts: see gathered_parts.h.
  bool parts = false;
  // When the key began to be there.
  int64_t create_us = 0;
  // What a renewal gives it; 0: the namespace's TTL.
  int64_t own_ttl_us = 0;
};

// What an operation did. After an error nothing was changed.
struct Result {
  absl::Status status;
  // Whether the key existed before the operation.
  bool found = false;
  // Combine, Gather: the entry was removed: the result was 0, or all parts were
  // collected.
  bool removed = false;
  // Gather: the part had been collected before, with the same value: nothing
  // has changed.
  bool duplicate = false;
  // Put, Append, Combine, Gather: the entry's new version, 0 if it was removed.
  // Touch, and a duplicate: the entry's, which is left as it is. Else 0.
  uint64_t version = 0;
  // Append: the value's new length. Combine: the result. Gather: the number of
  // collected parts.
  int64_t number = 0;
  // Get: the entry, if found. Put, Remove: the entry that was there, if found
  // and return_previous was set. Gather: the one that it removed, with all
  // parts.
  bool has_entry = false;
  // Not applied yet: see BatchProgress.
  bool waits = false;
  // Of a durable map: what must be stored before this is the answer (see
  // ChangeLog::WhenKept). 0: nothing.
  uint64_t position = 0;
  Entry entry;

  // As new, but for the memory of entry.value, which the next value may use.
  void Clear() {
    status = absl::OkStatus();
    found = false;
    removed = false;
    duplicate = false;
    version = 0;
    number = 0;
    has_entry = false;
    waits = false;
    position = 0;
  }
};

// Bounds the size of the entries that the operations of one batch return:
// kMaxBytes of values, or a single larger one. An operation whose entry has no
// room is not applied. Counts the work that depends on the size of entries, too.
class ResponseBudget {
 public:
  static constexpr int64_t kMaxBytes = int64_t{3} << 20;

  // Whether a value of this size has room; if so, takes the room.
  bool Take(size_t bytes) {
    const auto size = static_cast<int64_t>(bytes);
    if (size > left_ && left_ < kMaxBytes) return false;
    left_ -= size;
    return true;
  }

  // Bytes of values that the operations have copied within the map. A part of a
  // Gather's key that was read counts as some.
  void CountCopied(uint64_t bytes) { copied_ += bytes; }
  uint64_t copied() const { return copied_; }

 private:
  int64_t left_ = kMaxBytes;
  uint64_t copied_ = 0;
};

// How far a batch has got that is applied in turns: a batch of a few kilobytes
// may copy gigabytes, while others wait for its thread and its shards.
struct BatchProgress {
  // The least work that ends a turn: about a millisecond's.
  static constexpr uint64_t kTurnCopiedBytes = uint64_t{4} << 20;

  // Whether turns end: otherwise the first one does all.
  bool in_turns = true;
  // The operations that the rate limit has let through, since the first turn.
  std::optional<size_t> admitted;
  // Those before are done; from `begun` on, those whose result waits are not.
  size_t begun = 0;
  size_t reached = 0;
  // What a turn takes of it is taken before Execute returns.
  ResponseBudget room;
  bool done = false;
  // What the store keeps between turns.
  std::shared_ptr<void> state;
  // Called, unless null, where all is applied and `done` of Execute has to wait:
  // what comes from here on is behind it. No lock is held.
  std::function<void()> on_applied;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_OPERATION_H_
