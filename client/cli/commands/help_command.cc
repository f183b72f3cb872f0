// help and version, for users who expect them beside --help and --version.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/suggest.h"

namespace timecache::cli {
namespace {

// Of an application that has parsed `help` itself, --help would be that of
// `help`.
int RunHelp(const CLI::App& app, const Context& context,
            const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    command = FindCommand(*command, word);
    if (command == nullptr) {
      Warn(ExplainUnknownWord(app, words)
               .value_or(absl::StrCat("no such command: ", word)));
      return kExitError;
    }
    absl::StrAppend(&name, " ", word);
  }
  const bool written = Write(app.get_formatter()->make_help(
      command, name, CLI::AppFormatMode::Normal));
  return written && Flush() ? kExitDone : context.FailToWrite();
}

}  // namespace

void AddHelpCommands(CLI::App& app, Context& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help =
      app.add_subcommand("help", "Show the help of a command, as --help does");
  help->add_option("command", *words, "The command; nothing: all of them");
  help->footer(
      "Examples:\n"
      "  timecachectl help put\n"
      "  timecachectl help ns create");
  OnRun(help, context, words,
        [&app](const Context& on, const std::vector<std::string>& given) {
          return RunHelp(app, on, given);
        });
  CLI::App* version =
      app.add_subcommand("version", "Show the version, as --version does");
  version->footer(
      "Does not call the server: `timecachectl status` shows its version.\n\n"
      "Examples:\n"
      "  timecachectl version\n"
      "  timecachectl version --json | jq -r .version");
  OnRun(version, context, [](const Context& on) {
    return Print(on, {{"version", TIMECACHED_VERSION}},
                 "timecachectl " TIMECACHED_VERSION);
  });
}

}  // namespace timecache::cli
