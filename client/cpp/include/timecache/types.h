// What the client takes and gives: plain structs. Times are absolute and on the
// server's clock (which in tests may be a virtual one), with a resolution of 1
// us.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "timecache/call_options.h"
#include "timecache/gathered_parts.h"

namespace timecache {

struct ClientOptions {
  // The namespace of all calls that name none. The server has one called so
  // from its start, unless it was configured otherwise.
  std::string default_namespace = "default";
  // Longest duration of one call; past it the call ends with DEADLINE_EXCEEDED,
  // and whether it had an effect is unknown. absl::InfiniteDuration(): no
  // limit. Scan has its own.
  absl::Duration timeout = absl::Seconds(5);
  // Which calls are tried again, and how often.
  RetryPolicy retry = {};
};

// A live entry.
struct Entry {
  std::string key;    // 1 B to 4 KiB.
  std::string value;  // Empty where only keys were asked for.
  // In a scan: the size of a value that was left out because the entry does not
  // fit into ScanOptions::max_message_bytes. Otherwise 0.
  uint64_t omitted_value_bytes = 0;
  // Stands for the value: a renewed time to live leaves it as it is. Unique in
  // the namespace; grows with every change of one key. Never 0.
  uint64_t version = 0;
  // When the time to live last began: the last put or touch.
  absl::Time put_time;
  // put_time + ttl. The entry does not die before it, and at most one bucket
  // width (ttl / (num_buckets - 1)) after it.
  absl::Time deadline;
  // In place of a value, where the key collects the parts of a Gather.
  std::optional<GatheredParts> parts = {};
};

// What must hold for a Put to store.
enum class PutCondition {
  kAlways,
  kIfAbsent,   // Else FAILED_PRECONDITION, reason KEY_EXISTS.
  kIfPresent,  // Else FAILED_PRECONDITION, reason KEY_NOT_FOUND.
};

struct PutOptions {
  // The entry's own time to live, 1 ms to the namespace's max_ttl. Unset: the
  // namespace's. Zero or negative is INVALID_ARGUMENT.
  std::optional<absl::Duration> ttl = {};
  // Of no account with if_version.
  PutCondition condition = PutCondition::kAlways;
  // Store only if the key is there with this version; else FAILED_PRECONDITION,
  // reason KEY_NOT_FOUND or VERSION_MISMATCH.
  std::optional<uint64_t> if_version = {};
  // Answer with the entry that was replaced.
  bool return_previous = false;
  // An entry that is there keeps its put time, deadline and own time to live.
  // Not together with ttl.
  bool keep_deadline = false;
};

struct PutResult {
  uint64_t version = 0;  // The new entry's.
  // The replaced entry, if there was one and return_previous was set.
  std::optional<Entry> previous = {};
};

struct GetOptions {
  // Renew the time to live.
  bool touch = false;
};

struct RemoveOptions {
  // Remove only this version; else FAILED_PRECONDITION, reason KEY_NOT_FOUND or
  // VERSION_MISMATCH.
  std::optional<uint64_t> if_version = {};
  // Answer with the entry that was removed.
  bool return_previous = false;
};

struct RemoveResult {
  bool removed = false;  // Whether the key was there.
  // The removed entry, if there was one and return_previous was set.
  std::optional<Entry> previous = {};
};

struct TouchOptions {
  // The entry's own time to live from now on, 1 ms to the namespace's max_ttl.
  // Unset: the one it was put with.
  std::optional<absl::Duration> ttl = {};
  // Renew only this version; else FAILED_PRECONDITION, reason KEY_NOT_FOUND or
  // VERSION_MISMATCH.
  std::optional<uint64_t> if_version = {};
};

struct AppendOptions {
  // The own time to live of an entry that is created, and with `touch` of one
  // that is there, as in PutOptions.
  std::optional<absl::Duration> ttl = {};
  // As in PutOptions.
  PutCondition condition = PutCondition::kAlways;
  std::optional<uint64_t> if_version = {};
  // Renew the time to live of an entry that is there.
  bool touch = false;
};

struct AppendResult {
  uint64_t version = 0;      // The entry's new one.
  uint64_t value_bytes = 0;  // The value's new length.
  bool created = false;      // Whether the key was not there.
};

// What Combine does with the value and a number.
enum class Combination {
  kAdd,
  kXor,  // In two's complement.
};

struct CombineOptions {
  // What a key that is not there counts as.
  int64_t initial = 0;
  // Remove the entry if the result is 0; nothing is created then, either.
  bool remove_if_zero = false;
  // Renew the time to live of an entry that is there.
  bool touch = false;
  // As in AppendOptions.
  std::optional<absl::Duration> ttl = {};
  // Only this version; else FAILED_PRECONDITION, reason KEY_NOT_FOUND or
  // VERSION_MISMATCH.
  std::optional<uint64_t> if_version = {};
};

struct CombineResult {
  int64_t result = 0;
  uint64_t version = 0;  // The entry's new one; 0 if it was removed.
  bool created = false;  // Whether the key was not there, and is now.
  bool removed = false;  // Whether it is not there now, as the result was 0.
};

// What is expected under a key: one of the first two, and the same for all of
// its parts.
struct GatherOptions {
  // How many parts complete it, whatever their names: 1 to 1,024.
  uint32_t expected_parts = 0;
  // The names of the parts that do: 1 to 1,024 distinct ones, in any order.
  std::vector<std::string> expected_names = {};
  // Renew the time to live of an entry that is there.
  bool touch = false;
  // As in AppendOptions.
  std::optional<absl::Duration> ttl = {};
};

struct GatherResult {
  // All of them, if this part was the last one: the key is gone then.
  std::optional<GatheredParts> parts = {};
  uint64_t version = 0;    // The entry's; 0 if it is complete.
  uint32_t count = 0;      // How many parts are in.
  bool duplicate = false;  // Whether it was in, with this value.
};

struct SizeResult {
  uint64_t entries = 0;  // Live entries.
  uint64_t bytes = 0;    // Bytes of their keys and values.
};

struct ScanOptions {
  std::string key_prefix = {};  // At most 4 KiB. Empty: all keys.
  bool keys_only = false;       // Leave the values out.
  // Largest message that the client's channel takes, at least 4 MiB; a value
  // that does not fit is left out. Unset: what channels of timecache/channel.h
  // take, which is larger than any value.
  std::optional<uint32_t> max_message_bytes = {};
  // Longest duration of the whole scan, the visitor's time included; past it
  // the scan ends with DEADLINE_EXCEEDED. None unless given, because how long a
  // scan takes is the namespace's size and the visitor's pace; a dead
  // connection ends it all the same.
  absl::Duration timeout = absl::InfiniteDuration();
};

// How namespaces and groups are described.
struct DescribeOptions {
  // With their statistics, too. Those of a namespace lock each of its shards
  // for a moment.
  bool include_statistics = false;
};

// The first entries of a scan.
struct ScanResult {
  std::vector<Entry> entries;
  bool more = false;  // Whether there were more than were asked for.
};

}  // namespace timecache
