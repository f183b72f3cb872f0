// journal check, salvage, restore: on a directory that no server has open.
#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"
#include "server/log/local/file_system.h"
#include "server/log/local/journal_copy.h"
#include "server/log/local/journal_directory.h"
#include "server/log/local/journal_tools.h"

namespace timecache::cli {
namespace {

using server::DirectoryLock;
using server::FileSystem;
using server::JournalReport;

struct JournalArguments {
  std::string directory;
  std::string to;
  bool if_missing = false;
};

std::string RecordsText(uint64_t records) {
  return absl::StrCat(CountText(records),
                      records == 1 ? " record" : " records");
}

// Of a damaged journal. What stood at its end may be missing without a trace.
std::string LostText(const JournalReport& report) {
  return report.Lost() == 0
             ? "some may be lost"
             : absl::StrCat("at least ", CountText(report.Lost()), " lost");
}

void AppendLostPartitions(const JournalReport& report, std::string* text) {
  for (size_t p = 0; p < report.partitions.size(); ++p) {
    const JournalReport::Partition& partition = report.partitions[p];
    if (report.Lost(partition) == 0) continue;
    absl::StrAppend(text, "partition ", p, ": ",
                    CountText(report.Lost(partition)), " of positions ",
                    CountText(partition.first), " to ",
                    CountText(partition.end), " lost\n");
  }
}

Json ReportToJson(const std::string& directory, const JournalReport& report) {
  Json object = {{"journal", directory},
                 {"intact", report.intact},
                 {"torn_tail", report.HasTornTail()},
                 {"records", report.Records()},
                 {"lost", report.Lost()}};
  if (!report.damage.empty()) object["damage"] = report.damage;
  object["partitions"] = Json::array();
  for (const JournalReport::Partition& partition : report.partitions) {
    object["partitions"].push_back({{"first", partition.first},
                                    {"end", partition.end},
                                    {"records", partition.records},
                                    {"lost", report.Lost(partition)}});
  }
  object["files"] = Json::array();
  for (const JournalReport::File& file : report.files) {
    Json each = {{"path", file.path},
                 {"bytes", file.bytes},
                 {"readable_bytes", file.readable_bytes}};
    if (!file.damage.empty()) each["damage"] = file.damage;
    object["files"].push_back(std::move(each));
  }
  return object;
}

std::string DescribeReport(const std::string& directory,
                           const JournalReport& report) {
  uint64_t bytes = 0;
  for (const JournalReport::File& file : report.files) bytes += file.bytes;
  std::string text =
      report.intact
          ? absl::StrCat(directory, ": intact: ", RecordsText(report.Records()),
                         " in ", report.partitions.size(), " partitions and ",
                         report.files.size(), " files of ", SizeText(bytes))
          : absl::StrCat(directory,
                         ": damaged: ", RecordsText(report.Records()),
                         " readable, ", LostText(report));
  absl::StrAppend(&text, "\n");
  for (const JournalReport::File& file : report.files) {
    if (file.damage.empty()) continue;
    absl::StrAppend(&text, file.path, ": ", file.damage, "; ",
                    CountText(file.readable_bytes), " of ",
                    CountText(file.bytes), " bytes readable\n");
  }
  if (!report.damage.empty()) absl::StrAppend(&text, report.damage, "\n");
  AppendLostPartitions(report, &text);
  if (!report.intact) {
    absl::StrAppend(&text,
                    "A server does not start with it. Restore a backup, or "
                    "copy what is readable:\n  timecachectl journal salvage ",
                    directory, " ", directory, ".salvaged\n");
  } else if (report.HasTornTail()) {
    absl::StrAppend(&text,
                    "A crash cut the last write short: the server that opens "
                    "the journal cuts it off.\n");
  }
  text.pop_back();
  return text;
}

std::string DescribeSalvage(const std::string& directory, const std::string& to,
                            const JournalReport& report) {
  std::string text = absl::StrCat(
      "copied ", RecordsText(report.Records()), " of ", directory, " to ", to,
      ": ", report.intact ? "none is lost" : LostText(report), "\n");
  AppendLostPartitions(report, &text);
  absl::StrAppend(&text, "Keep ", directory,
                  " until a server has started with the copy.");
  return text;
}

// What a server writes while it is read would look like damage.
absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(
    const std::string& directory) {
  auto lock = server::LockClosedJournal(FileSystem::Posix(), directory);
  if (lock.ok()) return lock;
  return absl::Status(lock.status().code(),
                      absl::StrCat(lock.status().message(),
                                   ": stop it first, or take a backup of it"));
}

int RunCheck(const Context& context, const JournalArguments& arguments) {
  const std::string& directory = arguments.directory;
  const auto lock = Lock(directory).value();
  const auto report = server::CheckJournal(FileSystem::Posix(), directory);
  if (absl::IsDataLoss(report.status())) {
    // Not even how many partitions there were is readable.
    const std::string damage(report.status().message());
    return Print(
        context,
        {{"journal", directory}, {"intact", false}, {"damage", damage}},
        absl::StrCat(directory, ": damaged: nothing is readable\n", damage,
                     "\nRestore a backup."),
        kExitNotFound);
  }
  if (!report.ok()) return context.Fail(report.status());
  return Print(context, ReportToJson(directory, *report),
               DescribeReport(directory, *report),
               report->intact ? kExitDone : kExitNotFound);
}

int RunSalvage(const Context& context, const JournalArguments& arguments) {
  const auto lock = Lock(arguments.directory).value();
  const auto report = server::SalvageJournal(FileSystem::Posix(),
                                             arguments.directory, arguments.to)
                          .value();
  Json object = ReportToJson(arguments.directory, report);
  object["salvaged_to"] = arguments.to;
  return Print(context, object,
               DescribeSalvage(arguments.directory, arguments.to, report));
}

int RunRestore(const Context& context, const JournalArguments& arguments) {
  const std::string& from = arguments.directory;
  const std::string& to = arguments.to;
  if (arguments.if_missing &&
      server::ReadFormat(FileSystem::Posix(), to).ok()) {
    return Print(context, {{"journal", to}, {"restored", false}},
                 absl::StrCat(to, ": holds a journal: nothing to do"));
  }
  struct stat status;
  if (from != "-" && stat(from.c_str(), &status) == 0 &&
      S_ISREG(status.st_mode)) {
    return context.Fail(absl::InvalidArgumentError(absl::StrCat(
        from,
        ": is a file, and a backup is a directory: restore an archive, "
        "decompressed, with: timecachectl journal restore - ",
        to, " < ", from)));
  }
  const auto report =
      (from == "-" ? server::RestoreInput(to)
                   : server::RestoreJournal(FileSystem::Posix(), from, to))
          .value();
  Json object = ReportToJson(to, report);
  object["restored"] = true;
  return Print(context, object,
               absl::StrCat("restored ", RecordsText(report.Records()), " to ",
                            to, ": start timecached --journal ", to));
}

CLI::Option* AddDirectory(CLI::App& app, const std::string& name,
                          std::string& directory, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&directory](const std::string& path) {
            directory = TrimmedPath(path);
          },
          help)
      ->required()
      ->type_name("DIR");
}

void AddRestore(CLI::App& journal, Context& context,
                const std::shared_ptr<JournalArguments>& arguments) {
  CLI::App* restore = journal.add_subcommand(
      "restore",
      "Restore a journal from a backup, as timecached --restore does");
  AddDirectory(*restore, "from", arguments->directory,
               "The backup: a directory, or - for an archive on standard "
               "input");
  AddDirectory(*restore, "to", arguments->to,
               "The journal: an empty directory, or a new one");
  restore->add_flag("--if-missing", arguments->if_missing,
                    "Do nothing, with exit code 0, if there is a journal");
  restore->footer(
      R"(Checks the whole backup, and writes no journal if it is damaged. A server that
starts with it continues from the backup: entries whose time is over expire at
once, with their events. Watchers resume if the backup contains their
position; those beyond it get LOG_CHANGED.

Examples:
  timecachectl journal restore /backups/monday /var/lib/timecached/journal
  zstd -dc backup.tar.zst | timecachectl journal restore - journal)");
  OnRun(restore, context, arguments, RunRestore);
}

}  // namespace

void AddJournalCommand(CLI::App& app, Context& context) {
  CLI::App* journal = app.add_subcommand(
      "journal",
      "Check the journal of a stopped server, salvage it, restore a backup");
  journal->require_subcommand(1);
  journal->footer(
      R"(Examples:
  timecachectl journal check /var/lib/timecached/journal
  timecachectl journal salvage /var/lib/timecached/journal new
  timecachectl journal restore /backups/monday /var/lib/timecached/journal)");
  auto arguments = std::make_shared<JournalArguments>();
  CLI::App* check = journal->add_subcommand(
      "check", "Read all of a journal, and report its readable part");
  AddDirectory(*check, "directory", arguments->directory,
               "The journal, or a backup of one");
  check->footer(
      R"(Changes nothing and calls no server. Exit codes: 0 intact; 1 damaged; 2 not a
journal, or in use. For a damaged file it shows the first wrong byte and the
size of the readable part. An incomplete last write of a crash is no damage.

Examples:
  timecachectl journal check /var/lib/timecached/journal
  timecachectl journal check backup --json | jq .lost)");
  OnRun(check, context, arguments, RunCheck);
  CLI::App* salvage = journal->add_subcommand(
      "salvage", "Copy the readable part of a damaged journal into a new one");
  AddDirectory(*salvage, "directory", arguments->directory,
               "The journal; it is not changed");
  AddDirectory(*salvage, "to", arguments->to,
               "The copy: an empty directory, or a new one");
  salvage->footer(
      R"(A server starts with the copy. The changes of lost records are missing: an
entry may be missing, or be as it was before a lost overwrite or removal. A
backup has no such gaps: prefer it if it is recent enough.

Example:
  timecachectl journal salvage /var/lib/timecached/journal /var/lib/timecached/new)");
  OnRun(salvage, context, arguments, RunSalvage);
  AddRestore(*journal, context, arguments);
}

}  // namespace timecache::cli
