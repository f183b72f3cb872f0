// shell: commands line by line, on one connection.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/completion.h"
#include "client/cli/contexts.h"
#include "client/cli/flags.h"
#include "client/cli/ui/history_file.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/line_editor.h"
#include "client/cli/ui/split_words.h"

namespace timecache::cli {
namespace {

// The longest wait of a user who presses Tab.
constexpr absl::Duration kTabPatience = absl::Milliseconds(500);
// The shell's own words, beside the commands.
constexpr const char* kOwnWords[] = {"use", "exit", "quit"};

std::string HistoryPath() {
  const auto path = UserFile("XDG_STATE_HOME", ".local/state", "history");
  return path.ok() && MakeDirectoryOf(*path).ok() ? *path : "";
}

class Shell {
 public:
  explicit Shell(const Context& context)
      : base_(context),
        terminal_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1),
        history_(terminal_ ? HistoryPath() : "") {
    base_.in_shell = true;
    base_.shared_client = std::make_shared<SharedClient>();
    if (!terminal_) return;
    editor_.emplace(&history_.lines(),
                    [this](const std::string& before, size_t* typed) {
                      return Complete(before, typed);
                    });
  }

  int Run() {
    InterruptHandler::PassOn();
    int worst = kExitDone;
    while (const std::optional<std::string> line = NextLine()) {
      history_.Add(*line);
      const auto words = SplitWords(*line);
      if (!words.ok()) {
        worst = base_.Fail(words.status());
        continue;
      }
      if (words->empty()) continue;
      if (words->front() == "exit" || words->front() == "quit") break;
      const int code = RunLine(*words);
      if (code > worst) worst = code;
      if (std::cout.fail() || std::ferror(stdout) != 0) break;
    }
    // At a terminal each line has said how it ended.
    return terminal_ ? kExitDone : worst;
  }

 private:
  std::optional<std::string> NextLine() {
    if (editor_) {
      return editor_->Read(
          absl::StrCat(base_.name.empty() ? base_.address : base_.name, "/",
                       base_.ns(), "> "));
    }
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }

  int RunLine(const std::vector<std::string>& words) {
    if (words.front() == "shell") {
      Warn("this is the shell");
      return kExitError;
    }
    if (words.front() == "use") return Use(words);
    // A command may hold signals back.
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, nullptr, &before);
    const int code = base_.program->run(words, base_);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    // A value that was typed has ended; the next line has not.
    std::clearerr(stdin);
    return code;
  }

  int Use(const std::vector<std::string>& words) {
    if (words.size() != 2) {
      Warn("use takes the name of a namespace");
      return kExitError;
    }
    base_.namespaces = {words[1]};
    return kExitDone;
  }

  // All that the word before the cursor could be.
  std::vector<std::string> Complete(const std::string& before, size_t* typed) {
    auto words = SplitWords(before).value_or(std::vector<std::string>());
    if (words.empty() || absl::EndsWith(before, " ")) words.emplace_back();
    *typed = words.back().size();
    Context context = base_;
    CLI::App app;
    context.program->build(app, context);
    context.timeout = kTabPatience;
    const ServerNames names =
        NamesOf([&context](const std::vector<std::string>& /*flags*/)
                    -> std::optional<Client> {
          try {
            return context.MakeClient();
          } catch (const absl::BadStatusOrAccess&) {
            return std::nullopt;
          }
        });
    std::vector<std::string> offered;
    if (words.size() == 2 && words.front() == "use") {
      for (const std::string& name : names.namespaces({})) {
        if (absl::StartsWith(name, words.back())) offered.push_back(name);
      }
      return offered;
    }
    if (words.size() == 1) {
      for (const char* word : kOwnWords) {
        if (absl::StartsWith(word, words.back())) offered.emplace_back(word);
      }
    }
    for (const auto& each : cli::Complete(app, words, names).candidates) {
      offered.push_back(each.word);
    }
    return offered;
  }

  Context base_;
  const bool terminal_;
  HistoryFile history_;
  std::optional<LineEditor> editor_;  // At a terminal.
};

}  // namespace

void AddInteractiveCommand(CLI::App& app, Context& context) {
  CLI::App* shell = app.add_subcommand(
      "shell", "Take commands line by line, on one connection");
  shell->footer(
      R"(The lines are what follows timecachectl otherwise, with quotes and backslashes
as in a shell, and no variables. The flags of this command hold for all of them.
`use NAMESPACE` changes the namespace; exit, quit or Ctrl-D ends it. Tab offers
commands, flags and names; the last 1000 lines, but for those that begin with a
space, are kept in ~/.local/state/timecached/history, which only you can read.
Ctrl-C ends a command that goes on until then, as watch does.

From a file or a pipe it runs all lines, and exits with the largest of their
codes.

Examples:
  timecachectl shell
  timecachectl --context prod shell
  printf 'put a 1\nget a\n' | timecachectl shell)");
  OnRun(shell, context, [](const Context& on) { return Shell(on).Run(); });
}

}  // namespace timecache::cli
