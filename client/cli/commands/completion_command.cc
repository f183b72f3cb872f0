// completion, and what its scripts and the manual's build call: __complete,
// __man.
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/completion.h"
#include "client/cli/ui/output.h"
#include "server/common/man_page.h"

namespace timecache::cli {
namespace {

// The longest wait of a user who presses Tab.
constexpr absl::Duration kPatience = absl::Milliseconds(500);

// None if the server does not answer: it is no error not to know a name.
std::vector<std::string> NamesOf(CLI::App& app, Context& context,
                                 std::vector<std::string> flags) {
  std::vector<std::string> names;
  try {
    // A command is required; this one does nothing until it is run.
    flags.insert(flags.end(), {"completion", "bash"});
    std::vector<std::string> reversed(flags.rbegin(), flags.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Error&) {
    return names;
  }
  context.timeout = kPatience;
  const auto namespaces = context.MakeClient().ListNamespaces();
  if (!namespaces.ok()) return names;
  for (const Namespace& ns : *namespaces) names.push_back(ns.name);
  return names;
}

int RunComplete(CLI::App& app, Context& context,
                std::vector<std::string> words) {
  // It takes commands.
  if (words.size() > 1 && words[0] == "help") words.erase(words.begin());
  const Completion completion =
      Complete(app, words, [&](const std::vector<std::string>& flags) {
        return NamesOf(app, context, flags);
      });
  for (const auto& [word, help] : completion.candidates) {
    WriteLine(help.empty() ? word : absl::StrCat(word, "\t", help));
  }
  if (completion.files) WriteLine(":files");
  return Flush() ? kExitDone : context.FailToWrite();
}

int RunMan(const CLI::App& app, const Context& context) {
  const bool written = Write(WriteManPage(
      {"timecachectl", "1", TIMECACHED_VERSION,
       "the command line of timecached, whose entries expire on schedule",
       "timecached(8)"},
      app));
  return written && Flush() ? kExitDone : context.FailToWrite();
}

}  // namespace

std::optional<int> RunHiddenCommand(CLI::App& app, Context& context, int argc,
                                    const char* const* argv) {
  if (argc < 2) return std::nullopt;
  const std::string name = argv[1];
  if (name == "__man") return RunMan(app, context);
  if (name != "__complete") return std::nullopt;
  return RunComplete(app, context,
                     std::vector<std::string>(argv + 2, argv + argc));
}

void AddCompletionCommand(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand(
      "completion", "Print a script that completes commands for a shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "Names of namespaces come from the server, within half a second.\n\n"
      "Examples:\n"
      "  source <(timecachectl completion bash)\n"
      "  timecachectl completion zsh > ~/.zfunc/_timecachectl\n"
      "  timecachectl completion fish > "
      "~/.config/fish/completions/timecachectl.fish");
  completion->callback([&context, shell] {
    context.command = [&context, shell] {
      return Write(CompletionScript(*shell)) && Flush() ? kExitDone
                                                        : context.FailToWrite();
    };
  });
}

}  // namespace timecache::cli
