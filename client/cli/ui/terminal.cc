#include "client/cli/ui/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {
namespace {

// The alternate screen without a cursor, and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kHome[] = "\x1b[H";
constexpr char kClearLine[] = "\x1b[K";
constexpr char kClearRest[] = "\x1b[J";
constexpr char kCtrlC = 3;
constexpr char kCtrlD = 4;

}  // namespace

Terminal::Terminal()
    : present_(isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {
  termios now = {};
  if (!present_ || tcgetattr(STDIN_FILENO, &now) != 0) return;
  before_ = now;
  now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  now.c_cc[VMIN] = 1;
  now.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &now);
  Write(kEnter);
  Flush();
}

Terminal::~Terminal() {
  if (!before_) return;
  Write(kLeave);
  Flush();
  tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

Terminal::Size Terminal::size() const {
  Size size;
  winsize window = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0 &&
      window.ws_col > 0) {
    size = {window.ws_row, window.ws_col};
  }
  return size;
}

bool Terminal::Draw(std::string_view text) const {
  const Size now = size();
  std::string screen = kHome;
  int row = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    if (row == now.rows) break;
    if (row > 0) screen += "\r\n";
    absl::StrAppend(&screen, line.substr(0, static_cast<size_t>(now.columns)),
                    kClearLine);
    ++row;
  }
  return Write(screen) && Write(kClearRest) && Flush();
}

char Terminal::WaitForKey(absl::Duration patience) const {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  const int timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(patience));
  if (poll(&input, 1, timeout_ms) <= 0) return 0;
  char key = 0;
  if (read(STDIN_FILENO, &key, 1) <= 0) return 'q';
  return key == kCtrlC || key == kCtrlD ? 'q' : key;
}

}  // namespace timecache::cli
