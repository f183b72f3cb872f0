// sessionize: visitors' sessions from a web server's access log, as the main
// use of an expiring map that delivers expired entries.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/examples/log_line.h"
#include "client/examples/session.h"
#include "timecache/client.h"
#include "timecache/status.h"
#include "timecache/virtual_clock.h"
#include "timecache/watcher.h"

namespace timecache::sessionize {
namespace {

constexpr int kExitDone = 0;
constexpr int kExitError = 2;
constexpr absl::Duration kDefaultTtl = absl::Minutes(30);
constexpr uint32_t kDefaultBuckets = 101;
// Malformed lines that are shown one by one; the others are only counted.
constexpr uint64_t kMaxShownLines = 5;
// Most attempts for one request: each that fails is another process's success.
constexpr int kMaxAttempts = 1000;
// How long the watch tries to connect again.
constexpr absl::Duration kPatience = absl::Seconds(30);
// How far this machine's clock may be from the server's, where only the former
// can be asked.
constexpr absl::Duration kMaxClockSkew = absl::Seconds(1);

struct Flags {
  std::string log;
  std::string address = "127.0.0.1:7171";
  std::string ns = "sessions";
  // Unset: the default of a new namespace, any value of an existing one.
  std::optional<absl::Duration> ttl;
  std::optional<uint32_t> buckets;
  bool json = false;
  bool from_earliest = false;
  bool leave = false;
};

void Warn(const std::string& what) {
  absl::FPrintF(stderr, "sessionize: %s\n", absl::Utf8SafeCHexEscape(what));
}

std::string Explain(const Flags& flags, const absl::Status& status) {
  std::string message(status.message());
  // A call that comes while the server ends is cancelled, for lack of anyone
  // who could answer it.
  if ((absl::IsUnavailable(status) || absl::IsCancelled(status)) &&
      !ReasonName(status)) {
    return absl::StrCat("no server at ", flags.address,
                        ": start one with ./dev run --virtual-clock (or "
                        "without, for a log that is being written), or name "
                        "another with --address (",
                        message, ")");
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::StrCat(
        "no answer from ", flags.address,
        " in time: is it timecached, and not overloaded? Run it again");
  }
  if (absl::IsUnimplemented(status)) {
    return absl::StrCat("the server at ", flags.address,
                        " does not know this call: is it timecached, and of "
                        "this version? (",
                        message, ")");
  }
  return message;
}

// The server's clock where it is virtual: moved by the log's times.
class LogClock {
 public:
  explicit LogClock(const Client& client) : clock_(client) {}

  // Finds out whether the server's clock is virtual.
  absl::Status Connect() {
    const absl::StatusOr<absl::Time> now = clock_.Now();
    if (absl::IsUnimplemented(now.status())) return absl::OkStatus();
    if (!now.ok()) return now.status();
    is_virtual_ = true;
    now_ = *now;
    return absl::OkStatus();
  }

  bool is_virtual() const { return is_virtual_; }
  // Of a virtual clock, as far as this program knows.
  absl::Time now() const { return now_; }

  // Moves it on; leaves it where it is if that is later.
  absl::Status AdvanceTo(absl::Time time) {
    if (!is_virtual_ || time <= now_) return absl::OkStatus();
    absl::StatusOr<absl::Time> now = clock_.AdvanceTo(time);
    // Another program was there first, and further.
    if (absl::IsInvalidArgument(now.status())) now = clock_.Now();
    if (!now.ok()) return now.status();
    now_ = *now;
    return absl::OkStatus();
  }

 private:
  const VirtualClock clock_;
  bool is_virtual_ = false;
  absl::Time now_;
};

// The namespace of the sessions, made if there is none. FAILED_PRECONDITION if
// it exists with other options.
absl::StatusOr<Namespace> PrepareNamespace(const Client& client,
                                           const Flags& flags) {
  NamespaceOptions options;
  options.ttl = flags.ttl.value_or(kDefaultTtl);
  options.num_buckets = flags.buckets.value_or(kDefaultBuckets);
  absl::StatusOr<Namespace> ns = client.CreateNamespace(flags.ns, options);
  if (!absl::IsAlreadyExists(ns.status())) return ns;
  ns = client.GetNamespace(flags.ns);
  if (!ns.ok()) return ns;
  const absl::Duration ttl = ns->options.ttl.value_or(absl::ZeroDuration());
  const uint32_t buckets = ns->options.num_buckets.value_or(0);
  if (flags.ttl.value_or(ttl) == ttl &&
      flags.buckets.value_or(buckets) == buckets) {
    return ns;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "namespace \"", flags.ns, "\" already exists, with a ttl of ",
      absl::FormatDuration(ttl), " and ", buckets,
      " buckets: leave out --ttl and --buckets, name another with --namespace, "
      "or delete it with: timecachectl ns delete ",
      flags.ns));
}

// Prints the sessions that end, in the order of the events, on a thread of its
// own. Thread-safe.
class SessionPrinter {
 public:
  SessionPrinter(const Client& client, const Flags& flags)
      : flags_(flags),
        thread_(
            client,
            {.start =
                 flags.from_earliest ? WatchStart::kEarliest : WatchStart::kNow,
             .on_break = [this](const absl::Status& why) { TakeBreak(why); }},
            [this](const WatchBatch& batch) { Take(batch); },
            [this](const absl::Status& why) { Fail(why); }) {}

  // Waits until every session that ended at or before this moment was printed,
  // or one cannot be; absl::InfinitePast() waits for the first batch.
  absl::Status Await(absl::Time watermark) {
    const auto is_done = [this, watermark]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return !status_.ok() || (established_ && watermark_ >= watermark);
    };
    absl::MutexLock lock(&mu_, absl::Condition(&is_done));
    return status_;
  }

  absl::Status status() const {
    absl::MutexLock lock(&mu_);
    return status_;
  }
  uint64_t printed() const {
    absl::MutexLock lock(&mu_);
    return printed_;
  }

 private:
  void Take(const WatchBatch& batch) {
    broken_since_ = absl::InfiniteFuture();
    if (batch.log_changed || batch.lost > 0) {
      return Fail(absl::DataLossError(
          "sessions that ended were not delivered: the server was restarted, "
          "or the output was read too slowly"));
    }
    for (const ExpiredEvent& event : batch.events) Print(event);
    if (std::fflush(stdout) != 0) {
      return Fail(absl::ErrnoToStatus(errno, "standard output"));
    }
    absl::MutexLock lock(&mu_);
    established_ = true;
    watermark_ = batch.watermark;
  }

  void Print(const ExpiredEvent& event) {
    const absl::StatusOr<Session> session = DecodeSession(event.value);
    if (event.cause != ExpiryCause::kExpired || !session.ok()) {
      return Warn(absl::StrCat(
          event.key, session.ok() ? ": its session was killed before its time"
                                  : ": the entry that died is not a session"));
    }
    const EndedSession ended = {event.key, *session, event.death_time};
    absl::MutexLock lock(&mu_);
    if (printed_++ == 0 && !flags_.json) absl::PrintF("%s\n", TextHeading());
    absl::PrintF("%s\n", flags_.json ? ToJson(ended) : ToText(ended));
  }

  void TakeBreak(const absl::Status& why) {
    broken_since_ = std::min(broken_since_, absl::Now());
    if (absl::Now() - broken_since_ < kPatience) return;
    Fail(absl::UnavailableError(absl::StrCat(
        "the connection broke while sessions were being delivered (",
        why.ok() ? "the server stopped" : why.message(), ")")));
  }

  void Fail(const absl::Status& why) {
    absl::MutexLock lock(&mu_);
    if (status_.ok()) status_ = why;
  }

  const Flags& flags_;
  // Touched by the watch's thread alone.
  absl::Time broken_since_ = absl::InfiniteFuture();

  mutable absl::Mutex mu_;
  bool established_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time watermark_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  uint64_t printed_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);

  WatchThread thread_;  // Last: its callbacks use the other fields.
};

// One run of the program. Run by one thread.
class Sessionizer {
 public:
  explicit Sessionizer(const Flags& flags)
      : flags_(flags),
        client_(flags.address, {.default_namespace = flags.ns}),
        clock_(client_) {}

  absl::Status Run(std::istream& log) {
    if (absl::Status status = clock_.Connect(); !status.ok()) return status;
    const auto ns = PrepareNamespace(client_, flags_);
    if (!ns.ok()) return ns.status();
    // The longest that a session can go on without a request.
    longest_rest_ =
        ns->options.ttl.value_or(absl::ZeroDuration()) + ns->bucket_width;
    SessionPrinter printer(client_, flags_);
    absl::Status status = printer.Await(absl::InfinitePast());
    for (std::string text; status.ok() && std::getline(log, text);) {
      ++lines_;
      const absl::StatusOr<LogLine> line = ParseLogLine(text);
      if (!line.ok()) {
        Skip(line.status());
      } else {
        status = Take(*line);
      }
      if (status.ok()) status = printer.status();
    }
    if (status.ok()) status = Finish(printer);
    absl::FPrintF(
        stderr, "sessionize: %d lines, %d of them skipped; %d sessions ended\n",
        lines_, skipped_, printer.printed());
    return status;
  }

 private:
  absl::Status Take(const LogLine& line) {
    absl::Status status;
    if (lines_ == skipped_ + 1) status = CheckBeginning(line);
    if (status.ok()) status = clock_.AdvanceTo(line.time);
    if (status.ok()) status = Add(line);
    return status;
  }

  // A virtual clock does not go back. A log of which another run has read the
  // first part may begin a little behind it, with a late line.
  absl::Status CheckBeginning(const LogLine& line) const {
    if (!clock_.is_virtual() || line.time >= clock_.now()) {
      return absl::OkStatus();
    }
    const std::string clock = TimeText(clock_.now());
    const std::string begin = TimeText(line.time);
    if (line.time + longest_rest_ <= clock_.now()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the log begins at ", begin, ", and the server's clock is at ", clock,
          " already, as after another run: sessions of those times cannot be "
          "found any more; start a new server with --virtual-clock"));
    }
    Warn(absl::StrCat("the log begins at ", begin,
                      ", and the server's clock is at ", clock,
                      " already: requests before that count as late; if they "
                      "have been read before, they count twice"));
    return absl::OkStatus();
  }

  // Adds the request to its visitor's session, unless another process has put
  // that meanwhile: then to what it has put.
  absl::Status Add(const LogLine& line) {
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      const auto entry = client_.Get(line.visitor);
      if (!entry.ok()) return entry.status();
      Session session;
      PutOptions options = {.condition = PutCondition::kIfAbsent};
      if (*entry) {
        const auto so_far = DecodeSession((*entry)->value);
        if (!so_far.ok()) {
          return absl::FailedPreconditionError(absl::StrCat(
              "the entry of ", line.visitor,
              " is not a session: name a namespace of its own with "
              "--namespace"));
        }
        session = *so_far;
        options = {.if_version = (*entry)->version};
      }
      AddRequest(line, session);
      const absl::Status status =
          client_.Put(line.visitor, EncodeSession(session), options).status();
      if (absl::IsFailedPrecondition(status)) continue;
      last_visitor_ = line.visitor;
      return status;
    }
    return absl::AbortedError(
        absl::StrCat("the session of ", line.visitor, " was changed by others ",
                     kMaxAttempts, " times in a row: run fewer at a time"));
  }

  void Skip(const absl::Status& why) {
    if (++skipped_ > kMaxShownLines) return;
    Warn(absl::StrCat("line ", lines_, " is skipped: ", why.message()));
    if (skipped_ == kMaxShownLines) Warn("more such lines are only counted");
  }

  // Waits for the sessions to end, unless it shall not.
  absl::Status Finish(SessionPrinter& printer) {
    if (clock_.is_virtual()) {
      if (!flags_.leave) {
        absl::Status status = clock_.AdvanceTo(clock_.now() + longest_rest_);
        if (!status.ok()) return status;
      }
      return printer.Await(clock_.now());
    }
    if (flags_.leave || last_visitor_.empty()) return printer.status();
    const auto entry = client_.Get(last_visitor_);
    if (!entry.ok()) return entry.status();
    // The last request's session ends last. If it has ended, all have.
    const absl::Time end = *entry ? (*entry)->put_time + longest_rest_
                                  : absl::Now() + kMaxClockSkew;
    Warn(absl::StrCat(
        "the log has ended: waiting for its sessions to end, until ",
        TimeText(end), "; Ctrl-C leaves them to the server"));
    return printer.Await(end);
  }

  const Flags& flags_;
  const Client client_;
  LogClock clock_;
  absl::Duration longest_rest_;
  uint64_t lines_ = 0;
  uint64_t skipped_ = 0;
  std::string last_visitor_;  // Whose session was put last.
};

int Run(const Flags& flags) {
  std::ifstream file;
  if (flags.log != "-") {
    file.open(flags.log);
    if (!file) {
      Warn(absl::StrCat(
          flags.log, ": ", std::strerror(errno),
          ": name a log that can be read, or - for standard input"));
      return kExitError;
    }
  }
  const absl::Status status =
      Sessionizer(flags).Run(file.is_open() ? file : std::cin);
  if (status.ok()) return kExitDone;
  Warn(Explain(flags, status));
  return kExitError;
}

constexpr char kFooter[] =
    R"(Keeps an entry for each visitor, whose value is the session so far: for each
request it reads the entry, adds the request and puts it back. A session ends
when no request arrives for the ttl, or up to one bucket width (ttl /
(buckets - 1)) longer, and the server delivers it. All state is in the server:
when sessionize is stopped and run again, sessions continue, and several
processes may work on one namespace.

The clock of a server with --virtual-clock follows the times of the log's
lines; the end of the log ends every session, and an older log then needs a
new server. A late line counts at the clock's time. On any other server, a
request counts when it is read, and at the end of the log sessionize waits for
the sessions to end: Ctrl-C or --leave leaves them to the server, and
--from-earliest later reports those that ended meanwhile (5 minutes are
retained).

With --json, a session is {"visitor","first","last","requests","bytes","ended_at"}.
Malformed lines are counted and skipped. Exit codes: 0 done; 2 error, or a session
was not reported.

Examples:
  ./dev run --virtual-clock &
  sessionize /var/log/apache2/access.log
  zcat access.log.*.gz | sessionize --json - | jq -r .visitor
  tail -F access.log | sessionize --ttl 10m --namespace visits -)";

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("log", flags.log,
                 "The log, in Common or Combined format; -: standard input")
      ->required();
  app.add_option("--address", flags.address, "The server, HOST:PORT")
      ->envname("TIMECACHED_ADDRESS")
      ->capture_default_str();
  app.add_option("-n,--namespace", flags.ns,
                 "The namespace of the sessions; created if it does not exist")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--ttl",
         [&flags](const std::string& text) {
           absl::Duration ttl;
           if (!absl::ParseDuration(text, &ttl)) {
             throw CLI::ValidationError(
                 "--ttl",
                 "\"" + text + "\" is no duration: write 90s or 1h30m");
           }
           flags.ttl = ttl;
         },
         "The pause that ends a session (30m)")
      ->type_name("DURATION");
  app.add_option("--buckets", flags.buckets,
                 "Buckets that the ttl is divided into (101)")
      ->type_name("N");
  app.add_flag("--json", flags.json, "Print JSON, a session a line");
  app.add_flag("--from-earliest", flags.from_earliest,
               "Start with earlier sessions that are retained");
  app.add_flag("--leave", flags.leave,
               "Do not wait for sessions to end at the end of the log");
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("The sessions of the visitors in a web server's access log.",
               "sessionize");
  AddFlags(app, flags);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitError;
  }
  return Run(flags);
}

}  // namespace
}  // namespace timecache::sessionize

int main(int argc, char** argv) {
  return timecache::sessionize::Main(argc, argv);
}
