#include "client/cli/ui/line_editor.h"

#include <algorithm>
#include <climits>
#include <clocale>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {
namespace {

// Beside those that libedit has for Emacs.
constexpr const char* kEditorKeys[][2] = {
    {"^I", "complete"},
    {"^C", "interrupt"},
    {"^U", "vi-kill-line-prev"},
    {"^W", "ed-delete-prev-word"},
    {"\\e[3~", "ed-delete-next-char"},
    {"\\e[1~", "ed-move-to-beg"},
    {"\\e[7~", "ed-move-to-beg"},
    {"\\e[4~", "ed-move-to-end"},
    {"\\e[8~", "ed-move-to-end"},
};

EditLine* OpenEditLine() {
  // libedit reads characters of the locale.
  std::setlocale(LC_CTYPE, "C.UTF-8");
  return el_init("timecachectl", stdin, stdout, stderr);
}

std::string CommonBeginning(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto end =
        std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(end.first, common.end());
  }
  return common;
}

}  // namespace

LineEditor::LineEditor(const std::vector<std::string>* history,
                       Completer completer)
    : history_(*history),
      completer_(std::move(completer)),
      recalled_(history_init(), &history_end),
      edit_(OpenEditLine(), &el_end) {
  EditLine* const edit = edit_.get();
  HistEvent event;
  ::history(recalled_.get(), &event, H_SETSIZE, INT_MAX);
  el_set(edit, EL_CLIENTDATA, this);
  el_set(edit, EL_PROMPT, &Prompt);
  el_set(edit, EL_HIST, &::history, recalled_.get());
  el_set(edit, EL_SIGNAL, 1);
  el_set(edit, EL_SAFEREAD, 1);
  el_set(edit, EL_EDITOR, "emacs");
  // Ctrl-C is a key, and Ctrl-Z and Ctrl-\ are none.
  el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
  el_set(edit, EL_ADDFN, "complete", "Complete the word", &Complete);
  el_set(edit, EL_ADDFN, "interrupt", "Begin a new line", &Interrupt);
  for (const auto& [key, function] : kEditorKeys) {
    el_set(edit, EL_BIND, key, function, nullptr);
  }
}

std::optional<std::string> LineEditor::Read(const std::string& prompt) {
  prompt_ = prompt;
  interrupted_ = false;
  // A thousand at most: a tenth of a millisecond.
  HistEvent event;
  ::history(recalled_.get(), &event, H_CLEAR);
  for (const std::string& line : history_) {
    ::history(recalled_.get(), &event, H_ENTER, line.c_str());
  }
  el_resize(edit_.get());
  // Else the prompt is there before Ctrl-C is a key.
  el_set(edit_.get(), EL_PREP_TERM, 1);
  int length = 0;
  const char* const line = el_gets(edit_.get(), &length);
  if (line == nullptr) {
    WriteLine("");
    Flush();
    return std::nullopt;
  }
  if (interrupted_) return "";
  return std::string(absl::StripSuffix(
      absl::string_view(line, static_cast<size_t>(length)), "\n"));
}

LineEditor& LineEditor::Of(EditLine* edit) {
  void* editor = nullptr;
  el_get(edit, EL_CLIENTDATA, &editor);
  return *static_cast<LineEditor*>(editor);
}

char* LineEditor::Prompt(EditLine* edit) { return Of(edit).prompt_.data(); }

unsigned char LineEditor::Complete(EditLine* edit, int /*key*/) {
  const LineInfo* const line = el_line(edit);
  size_t typed = 0;
  const std::vector<std::string> words =
      Of(edit).completer_(std::string(line->buffer, line->cursor), &typed);
  if (words.empty()) return CC_NORM;
  std::string added = CommonBeginning(words).substr(typed);
  if (words.size() == 1) added += ' ';
  if (!added.empty()) {
    el_insertstr(edit, added.c_str());
    return CC_REFRESH;
  }
  std::string offered = "\n";
  for (const std::string& word : words) absl::StrAppend(&offered, word, "  ");
  WriteLine(offered);
  Flush();
  return CC_REDISPLAY;
}

// Shows ^C at the end of the line, and ends it.
unsigned char LineEditor::Interrupt(EditLine* edit, int /*key*/) {
  Of(edit).interrupted_ = true;
  const LineInfo* const line = el_line(edit);
  el_cursor(edit, static_cast<int>(line->lastchar - line->cursor));
  el_insertstr(edit, "^C");
  el_push(edit, "\n");
  return CC_REFRESH;
}

}  // namespace timecache::cli
