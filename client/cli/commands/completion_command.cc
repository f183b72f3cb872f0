// completion, and what its scripts and the manual's build call: __complete,
// __man.
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/completion.h"
#include "client/cli/contexts.h"
#include "client/cli/flags.h"
#include "client/cli/ui/output.h"
#include "server/base/man_page.h"

namespace timecache::cli {
namespace {

// The longest wait of a user who presses Tab.
constexpr absl::Duration kPatience = absl::Milliseconds(500);

// A client of the server that the flags name; null if they cannot be read: it
// is no error not to know a name.
std::optional<Client> ClientOf(CLI::App& app, Context& context,
                               std::vector<std::string> flags) {
  try {
    // A command is required; this one does nothing until it is run.
    flags.insert(flags.end(), {"completion", "bash"});
    std::vector<std::string> reversed(flags.rbegin(), flags.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Error&) {
    return std::nullopt;
  }
  if (!ApplyContext(app, context).ok()) return std::nullopt;
  context.timeout = kPatience;
  return context.MakeClient();
}

std::vector<std::string> NamespacesOf(const std::optional<Client>& client) {
  std::vector<std::string> names;
  if (!client) return names;
  const auto namespaces = client->ListNamespaces();
  if (!namespaces.ok()) return names;
  for (const Namespace& ns : *namespaces) names.push_back(ns.name);
  return names;
}

// Each name once.
std::vector<std::string> GroupsOf(const std::optional<Client>& client,
                                  std::vector<std::string> namespaces) {
  std::set<std::string> names;
  if (!client) return {};
  if (namespaces.empty()) {
    namespaces.push_back(client->options().default_namespace);
  }
  for (const std::string& ns : namespaces) {
    const auto groups = client->In(ns).ListGroups();
    if (!groups.ok()) continue;
    for (const Group& group : *groups) names.insert(group.name);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> ContextNames() {
  std::vector<std::string> names;
  const absl::StatusOr<Contexts> contexts = Contexts::Read();
  if (!contexts.ok()) return names;
  for (const auto& [name, server] : contexts->servers) names.push_back(name);
  return names;
}

int RunComplete(CLI::App& app, Context& context,
                std::vector<std::string> words) {
  // It takes commands.
  if (words.size() > 1 && words[0] == "help") words.erase(words.begin());
  const Completion completion =
      Complete(app, words, NamesOf([&](const std::vector<std::string>& flags) {
                 return ClientOf(app, context, flags);
               }));
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

ServerNames NamesOf(const std::function<std::optional<Client>(
                        const std::vector<std::string>& flags)>& client_of) {
  using Words = std::vector<std::string>;
  return {.namespaces =
              [client_of](const Words& flags) {
                return NamespacesOf(client_of(flags));
              },
          .groups =
              [client_of](const Words& flags, const Words& namespaces) {
                return GroupsOf(client_of(flags), namespaces);
              },
          .contexts = ContextNames};
}

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
      R"(Names of namespaces and groups come from the server, within half a second.

Examples:
  source <(timecachectl completion bash)
  timecachectl completion zsh > ~/.zfunc/_timecachectl
  timecachectl completion fish > ~/.config/fish/completions/timecachectl.fish)");
  OnRun(completion, context, shell,
        [](const Context& on, const std::string& name) {
          return Write(CompletionScript(name)) && Flush() ? kExitDone
                                                          : on.FailToWrite();
        });
}

}  // namespace timecache::cli
