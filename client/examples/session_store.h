// The sessions that are under way: they are kept in the server and nowhere
// else.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/examples/log_line.h"
#include "timecache/v1/namespace.pb.h"

namespace timecache::sessionize {

inline constexpr absl::Duration kDefaultTtl = absl::Minutes(30);
inline constexpr uint32_t kDefaultBuckets = 101;

// What the namespace of the sessions must be like. What is not given is
// the default where the namespace is made, and anything where it is there.
struct NamespaceWish {
  std::optional<absl::Duration> ttl;
  std::optional<uint32_t> buckets;
};

// Makes the client's namespace, or finds it as it was made before.
// FAILED_PRECONDITION if it is there and not as wished.
absl::StatusOr<v1::Namespace> PrepareNamespace(const Client& client,
                                               const NamespaceWish& wish);

// Adds requests to sessions. An entry for each visitor has the session so far
// as its value; a request is read, add, and put under the condition that
// nobody else has put meanwhile. So any number of them may work on one
// namespace, and one that dies loses nothing.
//
// Thread-safe. A request costs two round trips, and two more for each time that
// another was faster.
class SessionStore {
 public:
  // Most attempts for one request: each that fails is another's success.
  static constexpr int kMaxAttempts = 1000;

  // Into the client's namespace.
  explicit SessionStore(const Client& client) : client_(client) {}

  // Adds the request to its visitor's session, which begins with it if there is
  // none, and gives the session a fresh time to live.
  absl::Status Add(const LogLine& line) const;

 private:
  const Client client_;
};

}  // namespace timecache::sessionize
