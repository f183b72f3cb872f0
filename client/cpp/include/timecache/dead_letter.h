// Dead letters: the events that a consumer group could not get handled, as
// entries of the namespace's dead_letter_namespace.
//
//   client.In("orders-failed").Scan({.key_prefix = "orders/billing/"},
//       [](const timecache::Entry& entry) {
//         const auto letter = timecache::DecodeDeadLetter(entry);
//         if (letter.ok()) Show(letter->event.key, letter->event.value);
//         return true;
//       });

#ifndef TIMECACHE_DEAD_LETTER_H_
#define TIMECACHE_DEAD_LETTER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/export.h"
#include "timecache/types.h"
#include "timecache/watch_types.h"

namespace timecache {

// How the last attempt at an event ended.
enum class DeadLetterReason {
  kUnknown,   // The letter is of a server that did not say it.
  kNacked,    // By kNack.
  kTimedOut,  // It was not settled in time.
  kTerminated,
};

struct DeadLetter {
  // As it was last delivered, with its value or parts.
  ExpiredEvent event;
  std::string group;
  uint32_t attempts = 0;  // Those that counted.
  DeadLetterReason reason = DeadLetterReason::kUnknown;
  absl::Time time;  // When the letter was made.
  // What the member gave as its reason for the kNack or kTerminate.
  std::string reason_text;
};

// Reads an entry of a dead_letter_namespace, as Get or Scan return it; also
// letters of servers that wrote only the event, whose group is then taken from
// the key, "<namespace>/<group>/<event id>". INVALID_ARGUMENT for any other
// entry, and for one without its value. Copies the value.
TIMECACHED_EXPORT absl::StatusOr<DeadLetter> DecodeDeadLetter(
    const Entry& entry);

}  // namespace timecache

#endif  // TIMECACHE_DEAD_LETTER_H_
