// How the items of a ChangeRecord are written: what its writer and its reader
// share.

#ifndef TIMECACHED_SERVER_DURABLE_CHANGE_ITEMS_H_
#define TIMECACHED_SERVER_DURABLE_CHANGE_ITEMS_H_

#include <cstdint>

#include "server/engine/groups/group_change.h"

namespace timecache::server {

// A record is a sequence of items. Each begins with a byte: Change::Kind,
// kTickItem, kStorePartsItem, kRetainedItem, kRetainedTimesItem,
// kRetainedTracesItem, kTimesItem, kTraceItem, kBatchItem, or kGroupItem +
// GroupChange::Kind.
// Numbers are varints, signed ones zigzag.
//
//   kStore   shard  at  version  put  ttl << 1 | own  death  key  value
//            kStorePartsItem: the value is GatheredParts
//   kAppend  shard  at  base  version - base  renewed, and if it is, put
//            ttl << 1 | own  death;  key  bytes
//   kRenew   shard  at  version  put  ttl << 1 | own  death  key
//   kRemove  shard  at  key
//   kKill    shard  at  death  number  cause
//   kEvict   shard  at  death  number  cause  key
//   kRemember  shard  at  death  key
//   kAnswer  shard  at  until  key's hash  id's hash  version  number
//            has parts << 3 | duplicate << 2 | removed << 1 | found  value
//   kTickItem    watermark  next event  next event - retained event  kills
//   kRetainedItem  first  count  appended  death  published  cause, and of each
//                  event  parts  version  put  deadline  key  value
//   kRetainedTimesItem  the same, and of each event  own  put - create  more
//   kRetainedTracesItem  the same as of kRetainedTimesItem, and of each event
//                  whether it has a traceparent, and that
//   kTraceItem   the packed traceparent of the entry in the item behind it, a
//                kStore or a kKept, which may be a kTimesItem's
//   kTimesItem   own  life  put - create: of the entry in the item behind it,
//                whose ttl and own are then 0, or of the event of a kKept. In
//                front of those whose own TTL is not its life, whose life is
//                over when it begins, or which a store has not created
//   kBatchItem   the changes behind it, all that the record has, are one atomic
//                batch
//
//   kGroupItem +
//   kExists        group  first  end - first  options  creator  unused
//                  unreported  statistics
//   kOptions       group  options
//   kDeleted       group
//   kExpired       group  end  unreported
//   kUnused        group  unused
//   kLossReported  group
//   kKept          group  first  attempt  ready  death  published
//                  parts << 2 | cause  version  put  deadline  key  value
//   kPast          group  first  end - first  ready  returns << 1 | returned
//                  reason
//   kCounts        group  number  and so many counts
//   kIdentity      group  id
//   kLaterOptions  group  number  and so many options
//   kReason        group  first  end - first  reason
//   kSeek          group  first  end - first  next  lost << 1 | dropped
//                  delivered  redelivered  dropped
//   kRetryDelays   group  number  and so many delays
//   kKeyPrefix     group  prefix
//   the others     group  first  end - first  attempt  and, if they fail, ready
//
// `at`, `version`, `base`, `watermark`, `ready`, `death`, `first` and `end` are
// differences from the item before that had one: all times from the same row,
// and base and version from the same. put is one from `at` or, of an event, from
// the death; death one from the deadline or, of a kill and of kRemember, from `at`, as is
// until; the hashes have eight bytes each; published one
// from the death; an event's deadline one from put. A key, a value or a name is
// its length and its bytes. A group without a name is that of the item before. `unused` is 0 for
// none, or 1 and a time.
inline constexpr uint8_t kTickItem = 6;
inline constexpr uint8_t kStorePartsItem = 8;
inline constexpr uint8_t kRetainedItem = 9;
inline constexpr uint8_t kTimesItem = 10;
inline constexpr uint8_t kRetainedTimesItem = 11;
inline constexpr uint8_t kBatchItem = 14;
inline constexpr uint8_t kGroupItem = 16;
inline constexpr uint8_t kTraceItem = 64;
inline constexpr uint8_t kRetainedTracesItem = 65;
// Of a kept event's cause.
inline constexpr int kItemCauseBits = 2;

// Differences wrap: what is read is what was written.
inline int64_t WrappingMinus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(b));
}

inline int64_t WrappingPlus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}

// What kExists has of a group's statistics.
inline constexpr GroupCount kItemCounts[] = {
    &GroupStatistics::delivered,
    &GroupStatistics::redelivered,
    &GroupStatistics::acked,
    &GroupStatistics::nacked,
    &GroupStatistics::put_back,
    &GroupStatistics::timed_out,
    &GroupStatistics::dead_lettered,
    &GroupStatistics::dead_letter_failures,
    &GroupStatistics::dead_letters_denied,
    &GroupStatistics::dead_letters_dropped,
    &GroupStatistics::lost,
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_CHANGE_ITEMS_H_
