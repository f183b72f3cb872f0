// A line that a user types at a terminal, with history and completion.

#ifndef TIMECACHED_CLIENT_CLI_UI_LINE_EDITOR_H_
#define TIMECACHED_CLIENT_CLI_UI_LINE_EDITOR_H_

#include <histedit.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace timecache::cli {

// Reads lines from standard input, a terminal, by libedit, with the keys that
// Emacs has. Text is UTF-8. A signal that ends the process while a line is read
// leaves the terminal as it was. One in a process, as the locale and signals are
// the process's; not thread-safe.
class LineEditor {
 public:
  // What the word before the cursor could be, all of it; sets how many bytes of
  // it there are.
  using Completer = std::function<std::vector<std::string>(
      const std::string& before, size_t* typed)>;

  // `history`, the oldest line first, is not owned.
  LineEditor(const std::vector<std::string>* history, Completer completer);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next line; none at the end of input, which Ctrl-D on an empty line is.
  // Ctrl-C makes it an empty one.
  std::optional<std::string> Read(const std::string& prompt);

 private:
  // What libedit calls.
  static LineEditor& Of(EditLine* edit);
  static char* Prompt(EditLine* edit);
  static unsigned char Complete(EditLine* edit, int key);
  static unsigned char Interrupt(EditLine* edit, int key);

  const std::vector<std::string>& history_;
  const Completer completer_;
  std::string prompt_;
  bool interrupted_ = false;
  std::unique_ptr<History, decltype(&history_end)> recalled_;
  std::unique_ptr<EditLine, decltype(&el_end)> edit_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_LINE_EDITOR_H_
