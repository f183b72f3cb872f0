// sessionize: visitors' sessions from a web server's access log, as the main
// use of an expiring map that delivers expired entries.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/examples/log_line.h"
#include "client/examples/log_reader.h"
#include "client/examples/session.h"
#include "client/examples/session_store.h"
#include "client/examples/session_watch.h"
#include "client/examples/terminal.h"
#include "client/examples/ttl_flag.h"
#include "timecache/client.h"
#include "timecache/status.h"
#include "timecache/virtual_clock.h"

namespace timecache::sessionize {
namespace {

constexpr int kExitDone = 0;
constexpr int kExitError = 2;
// Malformed lines that are shown one by one; the others are only counted.
constexpr uint64_t kMaxShownLines = 5;
// Most requests that are sent together, if they are there and of one time.
constexpr size_t kMaxGroupLines = 1024;
// How far this machine's clock may be from the server's, where only the former
// can be asked.
constexpr absl::Duration kMaxClockSkew = absl::Seconds(1);

struct Flags {
  std::string log;
  std::string address = "127.0.0.1:7171";
  std::string ns = "sessions";
  NamespaceWish wish;
  bool json = false;
  bool from_earliest = false;
  bool leave = false;
};

void Warn(const std::string& what) {
  absl::FPrintF(stderr, "sessionize: %s\n", Escape(what));
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

// One run of the program. Run by one thread; sessions end on another.
class Sessionizer {
 public:
  Sessionizer(const Flags& flags, int fd)
      : flags_(flags),
        client_(flags.address, {.default_namespace = flags.ns}),
        clock_(client_),
        store_(client_),
        reader_(fd) {
    struct stat file;
    const bool is_file = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
    // Where the sessions are on the terminal, too, it would be among them.
    if (isatty(STDOUT_FILENO) == 0) {
      progress_.emplace(is_file ? file.st_size : 0);
    }
  }

  absl::Status Run() {
    if (absl::Status status = clock_.Connect(); !status.ok()) return status;
    const auto ns = PrepareNamespace(client_, flags_.wish);
    if (!ns.ok()) return ns.status();
    // The longest that a session can go on without a request.
    longest_rest_ =
        ns->options.ttl.value_or(absl::ZeroDuration()) + ns->bucket_width;
    SessionWatch watch(
        client_,
        flags_.from_earliest ? WatchStart::kEarliest : WatchStart::kNow,
        {.on_end = [this](const EndedSession& ended) { return Print(ended); },
         .on_pause = [] { return Flush() ? absl::OkStatus() : NoOutput(); },
         .on_warning = Warn});
    absl::Status status = watch.Await(absl::InfinitePast());
    started_at_ = absl::Now();
    if (status.ok()) status = ReadLog(watch);
    if (status.ok()) status = Finish(watch);
    progress_.reset();
    Summarize(watch);
    return status;
  }

 private:
  static absl::Status NoOutput() {
    return absl::UnknownError(
        absl::StrCat("standard output: ", std::strerror(errno)));
  }

  absl::Status ReadLog(const SessionWatch& watch) {
    std::string text;
    while (true) {
      const absl::StatusOr<bool> any = reader_.Next(text);
      if (!any.ok() || !*any) return any.status();
      ++lines_;
      absl::StatusOr<LogLine> line = ParseLogLine(text);
      if (reader_.cut()) {
        line = absl::InvalidArgumentError(absl::StrCat(
            "it is longer than ", LogReader::kMaxLineBytes, " bytes"));
      }
      absl::Status status = watch.status();
      if (status.ok()) status = line.ok() ? Take(*line) : Skip(line.status());
      // Sends all earlier lines before waiting for the next one.
      if (status.ok() &&
          (group_.size() >= kMaxGroupLines || !reader_.HasLine())) {
        status = SendGroup();
      }
      if (!status.ok()) return status;
      if (progress_) {
        progress_->Update(lines_, reader_.bytes_read(), Elapsed());
      }
    }
  }

  // A line goes into the group; the clock stands still for all of a group.
  absl::Status Take(const LogLine& line) {
    if (lines_ == skipped_ + 1) {
      absl::Status status = CheckBeginning(line);
      if (!status.ok()) return status;
    }
    if (clock_.is_virtual() && line.time > clock_.now()) {
      absl::Status status = SendGroup();
      if (status.ok()) status = clock_.AdvanceTo(line.time);
      if (!status.ok()) return status;
    }
    group_.push_back(line);
    return absl::OkStatus();
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

  absl::Status SendGroup() {
    absl::Status status = store_.Add(group_);
    group_.clear();
    return status;
  }

  absl::Status Skip(const absl::Status& why) {
    if (++skipped_ > kMaxShownLines) return absl::OkStatus();
    if (progress_) progress_->Wipe();
    Warn(absl::StrCat("line ", lines_, " is skipped: ", why.message()));
    if (skipped_ == kMaxShownLines) Warn("more such lines are only counted");
    return absl::OkStatus();
  }

  // Waits for the sessions to end, unless it shall not.
  absl::Status Finish(SessionWatch& watch) {
    if (clock_.is_virtual()) {
      if (!flags_.leave) {
        absl::Status status = clock_.AdvanceTo(clock_.now() + longest_rest_);
        if (!status.ok()) return status;
      }
      return watch.Await(clock_.now());
    }
    if (flags_.leave || store_.last_visitor().empty()) return watch.status();
    const auto entry = client_.Get(store_.last_visitor());
    if (!entry.ok()) return entry.status();
    // The last request's session ends last. If it has ended, all have.
    const absl::Time end = *entry ? (*entry)->put_time + longest_rest_
                                  : absl::Now() + kMaxClockSkew;
    if (progress_) progress_->Wipe();
    Warn(absl::StrCat(
        "the log has ended: waiting for its sessions to end, until ",
        TimeText(end), "; Ctrl-C leaves them to the server"));
    return watch.Await(end);
  }

  absl::Status Print(const EndedSession& ended) {
    if (!flags_.json && !heading_printed_) {
      heading_printed_ = true;
      if (!WriteLine(TextHeading())) return NoOutput();
    }
    const std::string line = flags_.json ? ToJson(ended) : ToText(ended);
    return WriteLine(line) ? absl::OkStatus() : NoOutput();
  }

  absl::Duration Elapsed() const { return absl::Now() - started_at_; }

  void Summarize(const SessionWatch& watch) const {
    const uint64_t requests = lines_ - skipped_;
    absl::FPrintF(
        stderr,
        "sessionize: %s lines, %s of them skipped; %s sessions ended; %.1f s, "
        "%s requests per second\n",
        CountText(lines_), CountText(skipped_), CountText(watch.told()),
        absl::ToDoubleSeconds(Elapsed()),
        CountText(RatePerSecond(requests, Elapsed())));
  }

  const Flags& flags_;
  const Client client_;
  LogClock clock_;
  SessionStore store_;
  LogReader reader_;
  absl::Time started_at_ = absl::Now();
  absl::Duration longest_rest_;
  uint64_t lines_ = 0;
  uint64_t skipped_ = 0;
  std::vector<LogLine> group_;  // Not sent yet: at most kMaxGroupLines.
  std::optional<ProgressLine> progress_;
  bool heading_printed_ = false;  // Touched by the watch's thread alone.
};

int Run(const Flags& flags) {
  const int fd = flags.log == "-"
                     ? STDIN_FILENO
                     : open(flags.log.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    Warn(
        absl::StrCat(flags.log, ": ", std::strerror(errno),
                     ": name a log that can be read, or - for standard input"));
    return kExitError;
  }
  const absl::Status status = Sessionizer(flags, fd).Run();
  if (status.ok()) return kExitDone;
  Warn(Explain(flags, status));
  return kExitError;
}

constexpr char kFooter[] =
    "Keeps an entry for each visitor, whose value is the session so far: for "
    "each\n"
    "request it reads the entry, adds the request and puts it back. A session "
    "ends\n"
    "when no request arrives for the ttl, or up to one bucket width (ttl /\n"
    "(buckets - 1)) longer, and the server delivers it. All state is in the "
    "server:\n"
    "when sessionize is stopped and run again, sessions continue, and several\n"
    "processes may work on one namespace.\n\n"
    "The clock of a server with --virtual-clock follows the times of the "
    "log's\n"
    "lines; the end of the log ends every session, and an older log then needs "
    "a\n"
    "new server. A late line counts at the clock's time. On any other server, "
    "a\n"
    "request counts when it is read, and at the end of the log sessionize "
    "waits for\n"
    "the sessions to end: Ctrl-C or --leave leaves them to the server, and\n"
    "--from-earliest later reports those that ended meanwhile (5 minutes are\n"
    "retained).\n\n"
    "With --json, a session is "
    "{\"visitor\",\"first\",\"last\",\"requests\",\"bytes\",\"ended_at\"}.\n"
    "Malformed lines are counted and skipped. Exit codes: 0 done; 2 error, or "
    "a session\n"
    "was not reported.\n\n"
    "Examples:\n"
    "  ./dev run --virtual-clock &\n"
    "  sessionize /var/log/apache2/access.log\n"
    "  zcat access.log.*.gz | sessionize --json - | jq -r .visitor\n"
    "  tail -F access.log | sessionize --ttl 10m --namespace visits -";

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
  AddTtl(
      app, [&flags](absl::Duration ttl) { flags.wish.ttl = ttl; },
      "The pause that ends a session (30m)");
  app.add_option("--buckets", flags.wish.buckets,
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
