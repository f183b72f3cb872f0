// The client's parameters and results: plain structs. Times are absolute and on
// the server's clock (which in tests may be a virtual one), with a resolution
// of 1 us.

#ifndef TIMECACHE_TYPES_H_
#define TIMECACHE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "timecache/call_options.h"
#include "timecache/gathered_parts.h"

namespace timecache {

struct ClientOptions {
  // The namespace of all calls that name none. The server creates it at start,
  // unless it is configured otherwise.
  std::string default_namespace = "default";
  // Longest duration of one call; after that the call ends with
  // DEADLINE_EXCEEDED, and its effect is unknown. absl::InfiniteDuration(): no
  // limit. Scan has its own timeout.
  absl::Duration timeout = absl::Seconds(5);
  // Which calls are retried, and how often.
  RetryPolicy retry = {};
  // Put, Remove, Append, Combine and Gather without an idempotency_id get a random
  // one, and so are retried, too. The namespace must have an idempotency_window;
  // not for calls with return_previous, nor for batches and pipelines.
  bool idempotent_changes = false;
  // Put, Get, Remove, Contains, Touch, Append, Combine and Gather that happen at
  // the same time go together, by a stream for each namespace; a call alone goes
  // at once. False: each is an RPC of its own, with its own metadata, for proxies
  // that look at these. Settles of one group share a request likewise, unless they
  // have metadata, a cancellation or `repeatable`. See CallOptions::batching.
  bool batching = true;
  // Where the nodes of a cluster share the ownership (cluster.forward_calls): calls
  // on keys and Execute go straight to the nodes that own the keys, which saves the
  // way between nodes: most of the CPU that forwarding costs. For a client that
  // reaches all nodes at their cluster.advertise; not behind a load balancer, where
  // it is of no use, and not over a channel of the caller's, where it does nothing.
  //
  // The client asks for the owners in the background, when calls use a namespace
  // (1,000 of them at most), each 5 s at most or when an owner fails; needs any
  // permission on it. A call whose owner is not known or not connected goes where
  // it would without this, and is forwarded: a wrong guess costs a hop, never an
  // error. A node that is not reached is left out for 1 to 30 s. Costs a thread, a
  // connection and shared streams to each node (64 at most), and some 100 ns a call.
  //
  // A batch is divided by owner; its parts are sent at the same time. Where a part
  // fails as a whole and another does not, its operations have its status. Atomic
  // batches go to the owner of their partition. All else goes to the node of
  // Client::address().
  bool owner_routing = false;
};

// A live entry.
struct Entry {
  std::string key;    // 1 B to 4 KiB.
  std::string value;  // Empty where only keys were asked for.
  // In a scan: the size of a value that was left out because the entry does not
  // fit into ScanOptions::max_message_bytes. Otherwise 0.
  uint64_t omitted_value_bytes = 0;
  // Identifies the value: renewing the time to live does not change it. Unique
  // in the namespace; grows with every change of one key. Never 0.
  uint64_t version = 0;
  // When the time to live last began: the last put or touch.
  absl::Time put_time;
  // put_time + ttl, or the expire_at that was asked for. The entry does not die
  // before it, and at most one bucket width (ttl / (num_buckets - 1)) after it,
  // or after the put that came later.
  absl::Time deadline;
  // In place of a value, if the key collects the parts of a Gather.
  std::optional<GatheredParts> parts = {};
  // Since when the key has been there without a break.
  absl::Time create_time = {};
  // What a renewal gives it. Unset: the namespace's ttl.
  std::optional<absl::Duration> own_ttl = {};
  // Of a Scan: the traceparent that the entry keeps; else empty.
  std::string traceparent = {};
};

// The condition under which a Put stores.
enum class PutCondition {
  kAlways,
  kIfAbsent,   // Else FAILED_PRECONDITION, reason KEY_EXISTS.
  kIfPresent,  // Else FAILED_PRECONDITION, reason KEY_NOT_FOUND.
};

struct PutOptions {
  // The entry's own time to live, 1 ms to the namespace's max_ttl. Unset: the
  // namespace's. Zero or negative is INVALID_ARGUMENT.
  std::optional<absl::Duration> ttl = {};
  // Ignored with if_version.
  PutCondition condition = PutCondition::kAlways;
  // Store only if the key exists with this version; else FAILED_PRECONDITION,
  // reason KEY_NOT_FOUND or VERSION_MISMATCH.
  std::optional<uint64_t> if_version = {};
  // Return the entry that was replaced.
  bool return_previous = false;
  // An existing entry keeps its put time, deadline and own time to live. Not
  // together with ttl or expire_at.
  bool keep_deadline = false;
  // The deadline of this life, on the server's clock, in place of now + ttl: a
  // due date. After now, and at most the namespace's max_ttl from now. A later
  // renewal gives `ttl`, if that is set, too, else the namespace's.
  std::optional<absl::Time> expire_at = {};
  // An expire_at that is not after now is no error: the entry is stored and
  // expires at once, with its event.
  bool allow_past = false;
  // Makes the call safe to repeat, so that it is retried as RetryPolicy says: 1 to
  // 64 B that no other call has. The namespace must have an idempotency_window;
  // not together with return_previous. Empty: none.
  std::string idempotency_id = {};
  // The W3C traceparent of the caller's trace, of version 00, which the entry's
  // ExpiredEvent has, too. Empty: none.
  std::string traceparent = {};
};

struct PutResult {
  uint64_t version = 0;  // The new entry's.
  // The replaced entry, if there was one and return_previous was set.
  std::optional<Entry> previous = {};
};

struct GetOptions {
  // True: renew the time to live. False: do not, in a sliding namespace, either.
  // Unset: renew it if the namespace is sliding.
  std::optional<bool> touch = {};
};

struct ContainsOptions {
  // What must hold; else FAILED_PRECONDITION, as in PutOptions. For an atomic
  // Batch: a condition on a key that does not change.
  PutCondition condition = PutCondition::kAlways;
  std::optional<uint64_t> if_version = {};
};

struct RemoveOptions {
  // Remove only this version; else FAILED_PRECONDITION, reason KEY_NOT_FOUND or
  // VERSION_MISMATCH.
  std::optional<uint64_t> if_version = {};
  // Return the entry that was removed.
  bool return_previous = false;
  // As in PutOptions.
  std::string idempotency_id = {};
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
  // As in PutOptions; without `ttl` the own time to live stays as it is.
  std::optional<absl::Time> expire_at = {};
  bool allow_past = false;
  // The entry has no time to live of its own from now on, but the namespace's.
  // Not together with ttl.
  bool namespace_ttl = false;
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
  // As in PutOptions.
  std::string idempotency_id = {};
  // As in PutOptions, of an entry that is created.
  std::string traceparent = {};
};

struct AppendResult {
  uint64_t version = 0;      // The entry's new one.
  uint64_t value_bytes = 0;  // The value's new length.
  bool created = false;      // Whether the entry was created.
};

// What Combine does with the value and a number.
enum class Combination {
  kAdd,
  kXor,  // In two's complement.
};

struct CombineOptions {
  // The value of a missing key.
  int64_t initial = 0;
  // Remove the entry if the result is 0; a missing key is not created then
  // either.
  bool remove_if_zero = false;
  // Renew the time to live of an entry that is there.
  bool touch = false;
  // As in AppendOptions.
  std::optional<absl::Duration> ttl = {};
  // Combine only this version; else FAILED_PRECONDITION, reason KEY_NOT_FOUND
  // or VERSION_MISMATCH.
  std::optional<uint64_t> if_version = {};
  // As in PutOptions.
  std::string idempotency_id = {};
  // As in PutOptions, of an entry that is created.
  std::string traceparent = {};
};

struct CombineResult {
  int64_t result = 0;
  uint64_t version = 0;  // The entry's new one; 0 if it was removed.
  bool created = false;  // Whether the entry was created.
  bool removed = false;  // Whether the result was 0.
};

// The parts that a key expects: its first part needs one of the first two; a
// later one may leave out both, or says the same.
struct GatherOptions {
  // How many parts complete the key, whatever their names: 1 to 1,024.
  uint32_t expected_parts = 0;
  // The names of the parts that complete the key: 1 to 1,024 distinct ones, in
  // any order.
  std::vector<std::string> expected_names = {};
  // Renew the time to live of an entry that is there.
  bool touch = false;
  // As in AppendOptions.
  std::optional<absl::Duration> ttl = {};
  // A part that has been collected with another value stays, and this one is a
  // duplicate.
  bool keep_first = false;
  // If this part completes the key, remember that for so long, 1 ms to the
  // namespace's max_ttl: until then a Gather on the key is ALREADY_EXISTS
  // (GATHER_COMPLETE), so that a late part begins nothing anew.
  std::optional<absl::Duration> remember = {};
  // As in PutOptions.
  std::string idempotency_id = {};
  // As in PutOptions, of an entry that is created.
  std::string traceparent = {};
};

struct GatherResult {
  // All parts, if this one was the last: the key is removed then.
  std::optional<GatheredParts> parts = {};
  uint64_t version = 0;    // The entry's; 0 if it is complete.
  uint32_t count = 0;      // The number of collected parts.
  bool duplicate = false;  // Whether it had this part and value.
};

struct SizeResult {
  uint64_t entries = 0;  // Live entries.
  uint64_t bytes = 0;    // Bytes of their keys and values.
};

struct ScanOptions {
  std::string key_prefix = {};  // At most 4 KiB. Empty: all keys.
  bool keys_only = false;       // Leave the values out.
  // Largest message that the client's channel accepts, at least 4 MiB; a value
  // that does not fit is left out. Unset: the limit of the channels of
  // timecache/channel.h, which is larger than any value.
  std::optional<uint32_t> max_message_bytes = {};
  // Longest duration of the whole scan, including the visitor's time; after
  // that the scan ends with DEADLINE_EXCEEDED. Default none, because the
  // duration depends on the namespace's size and the visitor's speed; without a
  // connection the scan ends as other calls do.
  absl::Duration timeout = absl::InfiniteDuration();
};

// How namespaces and groups are described.
struct DescribeOptions {
  // Include their statistics. Those of a namespace lock each of its shards
  // briefly.
  bool include_statistics = false;
};

// The first entries of a scan.
struct ScanResult {
  std::vector<Entry> entries;
  bool more = false;  // Whether there were more than were asked for.
};

}  // namespace timecache

#endif  // TIMECACHE_TYPES_H_
