// The current sessions, which are only kept in the server.

#ifndef TIMECACHED_CLIENT_EXAMPLES_SESSION_STORE_H_
#define TIMECACHED_CLIENT_EXAMPLES_SESSION_STORE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/examples/log_line.h"
#include "timecache/client.h"
#include "timecache/pipeline.h"

namespace timecache::sessionize {

inline constexpr absl::Duration kDefaultTtl = absl::Minutes(30);
inline constexpr uint32_t kDefaultBuckets = 101;

// The required options of the sessions' namespace. An unset one is the default
// for a new namespace, and any value for an existing one.
struct NamespaceWish {
  std::optional<absl::Duration> ttl;
  std::optional<uint32_t> buckets;
};

// Creates the client's namespace, or checks the existing one.
// FAILED_PRECONDITION if it exists with other options.
absl::StatusOr<Namespace> PrepareNamespace(const Client& client,
                                           const NamespaceWish& wish);

// Adds requests to sessions. An entry for each visitor has the session so far
// as its value; for a request the entry is read, changed, and put under the
// condition that no other store has put it meanwhile. So any number of stores,
// here and elsewhere, may work on one namespace, and one that dies loses
// nothing.
//
// Not thread-safe. Many requests at a time cost two round trips in all, and two
// more for each time that another was faster.
class SessionStore {
 public:
  // Most attempts for one session: each that fails is another's success.
  static constexpr int kMaxAttempts = 1000;

  // Into the client's namespace.
  explicit SessionStore(const Client& client) : pipeline_(client) {}

  // Adds each request to its visitor's session, which begins with it if there
  // is none, and gives the session a fresh time to live. After an error, any
  // part of them may have been added, and no more can be.
  absl::Status Add(absl::Span<const LogLine> lines);

  // The visitor whose session was put last. Empty: none.
  const std::string& last_visitor() const { return last_visitor_; }

 private:
  // A visitor with new requests.
  struct Visit {
    std::vector<const LogLine*> lines = {};  // At least one.
    OperationResult got = {};
    absl::Status put = {};

    const std::string& visitor() const { return lines.front()->visitor; }
  };

  // Each of these returns when everything has been answered.
  absl::Status Read(absl::Span<Visit* const> visits);
  absl::Status Write(absl::Span<Visit* const> visits);

  std::string last_visitor_;
  Pipeline pipeline_;
};

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_SESSION_STORE_H_
