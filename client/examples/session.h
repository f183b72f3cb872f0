// A visitor's session: its value in the server, and how it is shown.

#ifndef TIMECACHED_CLIENT_EXAMPLES_SESSION_H_
#define TIMECACHED_CLIENT_EXAMPLES_SESSION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/examples/log_line.h"

namespace timecache::sessionize {

// A session so far.
struct Session {
  absl::Time first;  // The least and the greatest of its requests' times.
  absl::Time last;
  uint64_t requests = 0;
  uint64_t bytes = 0;  // Stays at the largest number once it is reached.

  bool operator==(const Session&) const = default;
};

// A session that has ended.
struct EndedSession {
  std::string visitor;
  Session session;
  absl::Time ended_at;  // When its entry died; resolution 1 us.

  bool operator==(const EndedSession&) const = default;
};

// Takes a request into the session; the first one into Session().
void AddRequest(const LogLine& line, Session& session);

// The session as an entry's value, which people can read as well:
// {"first":"2015-05-17T10:05:03Z","last":"...","requests":3,"bytes":4711}
std::string EncodeSession(const Session& session);
// INVALID_ARGUMENT for anything that EncodeSession does not make.
absl::StatusOr<Session> DecodeSession(std::string_view value);

// {"visitor":"...","first":...,"last":...,"requests":...,"bytes":...,
//  "ended_at":"2015-05-17T10:35:42Z"}
std::string ToJson(const EndedSession& ended);

// A row for the eye, and the heading of its columns.
std::string ToText(const EndedSession& ended);
std::string TextHeading();

// RFC 3339 in UTC; with microseconds only if they are not zero.
std::string TimeText(absl::Time time);

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_SESSION_H_
