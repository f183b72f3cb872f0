// A terminal that is drawn on as a whole, and its keys.

#ifndef TIMECACHED_CLIENT_CLI_UI_TERMINAL_H_
#define TIMECACHED_CLIENT_CLI_UI_TERMINAL_H_

#include <termios.h>

#include <optional>
#include <string_view>

#include "absl/time/time.h"

namespace timecache::cli {

// While it lives, standard output shows another screen, and keys come one by
// one, Ctrl-C among them. Does nothing where there is no terminal. Not
// thread-safe.
class Terminal {
 public:
  struct Size {
    int rows = 24;
    int columns = 80;
  };

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Whether standard input and output are one.
  bool present() const { return present_; }
  // Now: it may change.
  Size size() const;
  // Puts this in place of what is there, cut at the right and at the bottom.
  // False if it cannot be written.
  bool Draw(std::string_view text) const;
  // Waits for a key; none in that time is 0, and Ctrl-C, like the terminal's
  // end, 'q'.
  char WaitForKey(absl::Duration patience) const;

 private:
  const bool present_;
  std::optional<termios> before_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_TERMINAL_H_
