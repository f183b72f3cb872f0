// session_check: checks that sessionize reported every session of a log exactly
// once, by computing them from the log without a server; and describes them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/examples/expected_sessions.h"
#include "client/examples/log_line.h"
#include "client/examples/log_reader.h"
#include "client/examples/session.h"
#include "client/examples/session_store.h"
#include "client/examples/terminal.h"
#include "client/examples/ttl_flag.h"

namespace timecache::sessionize {
namespace {

constexpr int kExitEqual = 0;
constexpr int kExitDifferent = 1;
constexpr int kExitError = 2;
// Differences that are shown.
constexpr size_t kMaxShownSessions = 5;
constexpr int64_t kMaxBuckets = 100'000;

struct Flags {
  std::string log;
  std::string sessions;
  absl::Duration ttl = kDefaultTtl;
  int64_t buckets = kDefaultBuckets;
};

struct Log {
  uint64_t lines = 0;
  uint64_t skipped = 0;
  absl::flat_hash_set<std::string> visitors;
  std::vector<EndedSession> sessions;  // By time of end, then visitor.
};

absl::Status ReadLines(
    const std::string& path,
    absl::FunctionRef<absl::Status(const std::string& line, bool cut)> take) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::NotFoundError(
        absl::StrCat(path, ": ", std::strerror(errno), ": name a file"));
  }
  LogReader reader(fd);
  std::string line;
  absl::StatusOr<bool> any;
  absl::Status status;
  while (status.ok() && (any = reader.Next(line)).ok() && *any) {
    status = take(line, reader.cut());
  }
  close(fd);
  return status.ok() ? any.status() : status;
}

absl::StatusOr<Log> ReadLog(const Flags& flags) {
  Log log;
  ExpectedSessions expected(flags.ttl, flags.buckets);
  const absl::Status status =
      ReadLines(flags.log, [&](const std::string& text, bool cut) {
        ++log.lines;
        const absl::StatusOr<LogLine> line = ParseLogLine(text);
        if (cut || !line.ok()) {
          ++log.skipped;
        } else {
          log.visitors.insert(line->visitor);
          expected.Add(*line);
        }
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  log.sessions = expected.Finish();
  return log;
}

absl::StatusOr<std::vector<EndedSession>> ReadSessions(const Flags& flags) {
  std::vector<EndedSession> sessions;
  const absl::Status status =
      ReadLines(flags.sessions, [&](const std::string& text, bool) {
        absl::StatusOr<EndedSession> session = FromJson(text);
        if (!session.ok()) {
          return absl::InvalidArgumentError(
              absl::StrCat(flags.sessions, ":", sessions.size() + 1, ": ",
                           session.status().message(),
                           ": make the file with sessionize --json"));
        }
        sessions.push_back(*std::move(session));
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return sessions;
}

bool IsBefore(const EndedSession& a, const EndedSession& b) {
  const auto key = [](const EndedSession& e) {
    return std::tie(e.ended_at, e.visitor, e.session.first, e.session.last,
                    e.session.requests, e.session.bytes);
  };
  return key(a) < key(b);
}

// Prints what is in `some` and not in `others`, and returns how many.
size_t ShowMissing(const char* what, const std::vector<EndedSession>& some,
                   const std::vector<EndedSession>& others) {
  std::vector<EndedSession> missing;
  std::set_difference(some.begin(), some.end(), others.begin(), others.end(),
                      std::back_inserter(missing), IsBefore);
  for (size_t i = 0; i < std::min(missing.size(), kMaxShownSessions); ++i) {
    absl::FPrintF(stderr, "session_check: %s: %s\n", what, ToJson(missing[i]));
  }
  return missing.size();
}

std::string LengthText(const EndedSession& ended) {
  const absl::Duration length = ended.session.last - ended.session.first;
  return absl::StrCat(
      length == absl::ZeroDuration() ? "0s" : absl::FormatDuration(length),
      ", ", CountText(ended.session.requests),
      ended.session.requests == 1 ? " request" : " requests");
}

void Describe(const Log& log) {
  absl::PrintF("lines read         %s, of which %s skipped as malformed\n",
               CountText(log.lines), CountText(log.skipped));
  absl::PrintF("visitors           %s\n", CountText(log.visitors.size()));
  absl::PrintF("sessions           %s\n", CountText(log.sessions.size()));
  if (log.sessions.empty()) return;
  std::vector<EndedSession> by_length = log.sessions;
  std::sort(by_length.begin(), by_length.end(),
            [](const EndedSession& a, const EndedSession& b) {
              const auto key = [](const EndedSession& e) {
                return std::make_tuple(e.session.last - e.session.first,
                                       e.session.requests);
              };
              return key(a) < key(b);
            });
  const EndedSession& longest = by_length.back();
  absl::PrintF("median session     %s\n",
               LengthText(by_length[(by_length.size() - 1) / 2]));
  absl::PrintF("longest session    %s: %s from %s\n", LengthText(longest),
               longest.visitor, TimeText(longest.session.first));
}

int Compare(const Log& log, std::vector<EndedSession> told) {
  const bool in_order = std::is_sorted(
      told.begin(), told.end(),
      [](const auto& a, const auto& b) { return a.ended_at < b.ended_at; });
  std::sort(told.begin(), told.end(), IsBefore);
  const size_t missing = ShowMissing("not reported", log.sessions, told);
  const size_t surplus =
      ShowMissing("reported, but not in the log", told, log.sessions);
  if (missing + surplus == 0 && in_order) {
    absl::PrintF(
        "reported once      all %s, in order, each equal to the session "
        "computed from the log\n",
        CountText(told.size()));
    return kExitEqual;
  }
  absl::PrintF(
      "reported once      NO: %s not reported, %s not in the log, %s\n",
      CountText(missing), CountText(surplus),
      in_order ? "in order" : "not in order of their ends");
  return kExitDifferent;
}

int Run(const Flags& flags) {
  const absl::StatusOr<Log> log = ReadLog(flags);
  absl::StatusOr<std::vector<EndedSession>> told = ReadSessions(flags);
  for (const absl::Status& status : {log.status(), told.status()}) {
    if (status.ok()) continue;
    absl::FPrintF(stderr, "session_check: %s\n", status.message());
    return kExitError;
  }
  Describe(*log);
  return Compare(*log, *std::move(told));
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Compares the sessions that sessionize reported with those computed from "
      "the log.",
      "session_check");
  app.add_option("log", flags.log, "The log that sessionize read")->required();
  app.add_option("sessions", flags.sessions,
                 "What it printed, with --json, on a new server with "
                 "--virtual-clock")
      ->required();
  AddTtl(
      app, [&flags](absl::Duration ttl) { flags.ttl = ttl; },
      "The ttl that it ran with (30m)");
  app.add_option("--buckets", flags.buckets,
                 "The buckets that it ran with (101)")
      ->check(CLI::Range(int64_t{2}, kMaxBuckets));
  app.footer(
      "Exit codes: 0 every session was reported exactly once; 1 otherwise; 2 "
      "error.\n\n"
      "Example:\n"
      "  sessionize --json access.log > sessions.jsonl\n"
      "  session_check access.log sessions.jsonl");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitEqual : kExitError;
  }
  return Run(flags);
}

}  // namespace
}  // namespace timecache::sessionize

int main(int argc, char** argv) {
  return timecache::sessionize::Main(argc, argv);
}
