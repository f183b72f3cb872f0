// Dead letters: what the commands of `dead` do with them, and their output.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_DEAD_LETTERS_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_DEAD_LETTERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/context.h"
#include "client/cli/ui/output.h"
#include "timecache/client.h"
#include "timecache/dead_letter.h"

namespace timecache::cli {

// Which of a namespace's letters: those of events of a namespace, and of a
// group. Empty: of all.
struct DeadLetterFilter {
  std::string ns;
  std::string group;

  bool is_empty() const { return ns.empty() && group.empty(); }
  // Of the keys that match.
  std::string Prefix() const;
  // "dead letters of group billing, from namespace orders".
  std::string Text() const;
};

// What a walk has come across.
struct DeadLetterWalk {
  uint64_t letters = 0;
  // Entries that are no letters, of those with the prefix.
  uint64_t others = 0;
};

// Calls `visit` for each letter in the client's namespace that matches, until
// it returns false. `visit` may change letters that it has been given.
absl::Status VisitDeadLetters(
    const Context& context, const Client& client,
    const DeadLetterFilter& filter,
    absl::FunctionRef<bool(const Entry& entry, const DeadLetter& letter)> visit,
    DeadLetterWalk* walk);

struct PutBackOptions {
  std::optional<absl::Duration> ttl = {};  // Unset: as it had.
  bool overwrite = false;
};

// Puts an event's value or parts back under its key, into its namespace.
// FAILED_PRECONDITION where the key exists, unless it is to be overwritten.
// Parts are put one by one: after another error some may be there, and the same
// again adds the others.
absl::Status PutBackEvent(const Client& client, const ExpiredEvent& event,
                          const PutBackOptions& options);

// FAILED_PRECONDITION: it has changed since it was read, or is gone.
absl::Status RemoveLetter(const Client& client, const Entry& entry);

// {"letter":KEY,"group":..,"attempts":..,"reason":..,"time":..,"event":{..}};
// the reason is null in a letter that does not say it.
Json ToJson(const Entry& entry, const DeadLetter& letter,
            const Encodings& encodings);

// TIME, reason, attempts, the letter's key, the entry's key, tab-separated.
std::string LineText(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings);

// All of it, a field a line, the value last.
std::string Describe(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_DEAD_LETTERS_H_
