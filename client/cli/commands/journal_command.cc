// journal check, salvage: on a directory that no server has open.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/journal_text.h"
#include "server/journal/file_system.h"
#include "server/journal/journal_tools.h"

namespace timecache::cli {
namespace {

using server::FileLock;
using server::FileSystem;
using server::JournalReport;

struct Arguments {
  std::string directory;
  std::string to;
};

// Without the slashes that a shell's completion leaves at its end.
std::string Trimmed(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

// What a server writes while it is read would look like damage.
absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& directory) {
  auto lock = server::LockClosedJournal(FileSystem::Posix(), directory);
  if (lock.ok()) return lock;
  return absl::Status(lock.status().code(),
                      absl::StrCat(lock.status().message(),
                                   ": stop it first, or take a backup of it"));
}

int RunCheck(const Context& context, const std::string& directory) {
  const auto lock = Lock(directory);
  if (!lock.ok()) return context.Fail(lock.status());
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
  return Print(context, ToJson(directory, *report),
               Describe(directory, *report),
               report->intact ? kExitDone : kExitNotFound);
}

int RunSalvage(const Context& context, const Arguments& arguments) {
  const auto lock = Lock(arguments.directory);
  if (!lock.ok()) return context.Fail(lock.status());
  const auto report = server::SalvageJournal(FileSystem::Posix(),
                                             arguments.directory, arguments.to);
  if (!report.ok()) return context.Fail(report.status());
  Json object = ToJson(arguments.directory, *report);
  object["salvaged_to"] = arguments.to;
  return Print(context, object,
               DescribeSalvage(arguments.directory, arguments.to, *report));
}

CLI::Option* AddDirectory(CLI::App& app, const std::string& name,
                          std::string& directory, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&directory](const std::string& path) { directory = Trimmed(path); },
          help)
      ->required()
      ->type_name("DIR");
}

}  // namespace

void AddJournalCommand(CLI::App& app, Context& context) {
  CLI::App* journal = app.add_subcommand(
      "journal", "Check the journal of a stopped server, or salvage it");
  journal->require_subcommand(1);
  journal->footer(
      "Examples:\n"
      "  timecachectl journal check /var/lib/timecached/journal\n"
      "  timecachectl journal salvage /var/lib/timecached/journal new");
  auto arguments = std::make_shared<Arguments>();
  CLI::App* check = journal->add_subcommand(
      "check", "Read all of a journal, and say what of it is readable");
  AddDirectory(*check, "directory", arguments->directory,
               "The journal, or a backup of one");
  check->footer(
      "Changes nothing and asks no server. Exit codes: 0 intact; 1 damaged; 2 "
      "not a\njournal, or in use. Of a damaged file it shows the first wrong "
      "byte and how much\nis readable. What a crash cut short at the end is no "
      "damage.\n\n"
      "Examples:\n"
      "  timecachectl journal check /var/lib/timecached/journal\n"
      "  timecachectl journal check backup --json | jq .lost");
  check->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunCheck(context, arguments->directory);
    };
  });
  CLI::App* salvage = journal->add_subcommand(
      "salvage", "Copy what is readable of a damaged journal into a new one");
  AddDirectory(*salvage, "directory", arguments->directory,
               "The journal; it stays as it is");
  AddDirectory(*salvage, "to", arguments->to,
               "The copy: an empty directory, or a new one");
  salvage->footer(
      "A server starts with the copy. What only lost records said is gone: an "
      "entry may\nbe missing, or be as it was before a lost overwrite or "
      "removal. A backup has no\nsuch gaps: prefer it where it is recent "
      "enough.\n\n"
      "Example:\n"
      "  timecachectl journal salvage /var/lib/timecached/journal "
      "/var/lib/timecached/new");
  salvage->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunSalvage(context, *arguments);
    };
  });
}

}  // namespace timecache::cli
