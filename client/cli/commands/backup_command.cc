// backup: a copy of the server's journal, while it serves.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"
#include "server/log/local/backup_archive.h"
#include "server/log/local/file_system.h"
#include "server/log/local/journal_copy.h"

namespace timecache::cli {
namespace {

using server::ArchiveReader;
using server::FileSystem;
using server::JournalCopy;
using server::JournalReport;

// Until it is whole.
constexpr char kPartial[] = ".partial";

// Where its name is.
std::string ParentOf(const std::string& directory) {
  const size_t slash = directory.rfind('/');
  if (slash == directory.npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

// One run of the command.
class BackupRun {
 public:
  explicit BackupRun(const Context& context) : context_(context) {}

  // On another thread.
  void Interrupt() { stop_.request_stop(); }

  // Into a directory: OK once all of it is there, and checked.
  absl::StatusOr<JournalReport> IntoDirectory(const std::string& directory) {
    FileSystem* const files = FileSystem::Posix();
    const auto there = files->List(directory);
    if (!there.ok() && !absl::IsNotFound(there.status())) {
      return there.status();
    }
    if (there.ok() && !there->empty()) {
      return absl::AlreadyExistsError(absl::StrCat(
          directory, ": is not empty: name a new directory for the backup"));
    }
    const std::string partial = directory + kPartial;
    auto report = IntoPartial(partial);
    if (report.ok()) {
      absl::Status status = files->Rename(partial, directory);
      if (status.ok()) status = files->SyncDirectory(ParentOf(directory));
      if (!status.ok()) report = status;
    }
    // Empty, if it is still there.
    if (!report.ok()) rmdir(partial.c_str());
    return report;
  }

  // As an archive to standard output.
  absl::Status ToOutput() {
    if (isatty(STDOUT_FILENO) == 1) {
      return absl::InvalidArgumentError(
          "standard output is a terminal: send the backup to a file or a "
          "program, or name a directory");
    }
    absl::Status status = Read(!IsPipe(STDOUT_FILENO), [](const auto& data) {
      return Write(data) ? absl::OkStatus()
                         : absl::ErrnoToStatus(WriteError(), "standard output");
    });
    if (status.ok() && !Flush()) {
      status = absl::ErrnoToStatus(WriteError(), "standard output");
    }
    return status;
  }

  uint64_t bytes() const { return bytes_; }
  absl::Duration elapsed() const { return absl::Now() - started_at_; }

 private:
  absl::StatusOr<JournalReport> IntoPartial(const std::string& partial) {
    auto copy = JournalCopy::Begin(FileSystem::Posix(), partial);
    if (absl::IsAlreadyExists(copy.status())) {
      return absl::AlreadyExistsError(
          absl::StrCat(copy.status().message(),
                       "; an interrupted backup may have left it: remove it"));
    }
    if (absl::IsFailedPrecondition(copy.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat(partial, ": another backup writes there"));
    }
    if (!copy.ok()) return copy.status();
    ArchiveReader reader(copy->get());
    absl::Status status = Read(
        true, [&reader](const std::string& data) { return reader.Add(data); });
    if (status.ok()) status = reader.Finish();
    if (!status.ok()) return status;
    return (*copy)->Finish();
  }

  static bool IsPipe(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
  }

  // A pipe's reader may draw a progress of its own.
  template <typename Take>
  absl::Status Read(bool draw, const Take& take) {
    const Client client = context_.MakeClient();
    CallOptions call = {.cancellation = stop_.get_token()};
    if (context_.timeout_given) call.timeout = context_.timeout;
    ProgressBar bar;
    absl::Status taken;
    const absl::Status status = client.BackupJournal(
        [&](const BackupPiece& piece) {
          taken = take(piece.data);
          bytes_ += piece.data.size();
          if (draw) {
            bar.Update({.done = bytes_,
                        .bytes_read = bytes_,
                        .bytes_all = piece.total_bytes,
                        .elapsed = elapsed(),
                        .is_size = true});
          }
          return taken.ok();
        },
        call);
    return taken.ok() ? status : taken;
  }

  const Context& context_;
  const absl::Time started_at_ = absl::Now();
  std::stop_source stop_;
  uint64_t bytes_ = 0;
};

Json BackupToJson(const std::string& to, const BackupRun& run) {
  return {{"backup", to},
          {"bytes", run.bytes()},
          {"elapsed_ms", absl::ToInt64Milliseconds(run.elapsed())},
          {"bytes_per_second", RatePerSecond(run.bytes(), run.elapsed())}};
}

std::string DescribeBackup(const std::string& to, const BackupRun& run) {
  return absl::StrFormat(
      "backed up %s in %.1f s (%s/s) to %s", SizeText(run.bytes()),
      absl::ToDoubleSeconds(run.elapsed()),
      SizeText(RatePerSecond(run.bytes(), run.elapsed())), to);
}

int RunToDirectory(const Context& context, const std::string& directory,
                   BackupRun* run) {
  const auto report = run->IntoDirectory(directory);
  if (!report.ok()) return context.Fail(report.status());
  Json object = BackupToJson(directory, *run);
  object["records"] = report->Records();
  object["files"] = report->files.size();
  return Print(context, object,
               absl::StrCat(DescribeBackup(directory, *run), ": intact, ",
                            CountText(report->Records()), " records"));
}

// What is said goes to standard error: the backup itself is the output.
int RunToOutput(const Context& context, BackupRun* run) {
  const absl::Status status = run->ToOutput();
  if (!status.ok()) return context.Fail(status);
  const std::string text =
      context.json ? BackupToJson("-", *run).dump()
                   : absl::StrCat("timecachectl: ",
                                  DescribeBackup("standard output", *run));
  std::fprintf(stderr, "%s\n", text.c_str());
  return kExitDone;
}

int RunBackup(const Context& context, const std::string& to) {
  // Before gRPC has threads that could take the signals.
  InterruptHandler::Hold();
  BackupRun run(context);
  const InterruptHandler interrupt([&run] { run.Interrupt(); });
  const int code = to == "-" ? RunToOutput(context, &run)
                             : RunToDirectory(context, to, &run);
  const int signal = interrupt.signal();
  return code != kExitDone && signal != 0 ? kExitInterrupted + signal : code;
}

}  // namespace

void AddBackupCommand(CLI::App& app, Context& context) {
  auto to = std::make_shared<std::string>();
  CLI::App* backup = app.add_subcommand(
      "backup", "Back up the server's journal, while it serves");
  backup
      ->add_option_function<std::string>(
          "to", [to](const std::string& path) { *to = TrimmedPath(path); },
          "A new or empty directory; -: a tar archive on standard output")
      ->required()
      ->type_name("DIR");
  backup->footer(
      R"(Has all namespaces of durability async, sync and replicated as they were at
one moment, with every change acknowledged before the call. It is written as
DIR.partial, checked, and then renamed to DIR. An incomplete archive is refused
when it is restored. Needs the verb admin on "*". The entries of a backup keep
their deadlines: the time until it is restored counts. That of a server can be
restored into a cluster, and that of a cluster into a server.

Examples:
  timecachectl backup /backups/$(date +%F)
  timecachectl backup - | zstd > backup.tar.zst
  timecached --journal journal --restore /backups/2026-01-31
  zstd -dc backup.tar.zst | timecached --journal journal --restore -
  timecached cluster restore --config timecached.yaml /backups/2026-01-31)");
  OnRun(backup, context, to, RunBackup);
}

}  // namespace timecache::cli
