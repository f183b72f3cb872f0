#include "tests/client/cli/terminal_process.h"

#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace timecache {

TerminalProcess::TerminalProcess(std::vector<std::string> argv, int rows,
                                 int columns) {
  std::vector<char*> pointers;
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  winsize size = {};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  pid_ = forkpty(&fd_, nullptr, nullptr, &size);
  if (pid_ < 0) {
    std::perror("forkpty");
    std::abort();
  }
  if (pid_ == 0) {
    execv(pointers[0], pointers.data());
    _exit(127);
  }
}

TerminalProcess::~TerminalProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(fd_);
}

bool TerminalProcess::Read() {
  char block[4096];
  ssize_t length;
  do {
    length = read(fd_, block, sizeof(block));
  } while (length < 0 && errno == EINTR);
  // EIO: no process has the terminal open any more.
  if (length <= 0) return false;
  screen_.append(block, static_cast<size_t>(length));
  return true;
}

bool TerminalProcess::WaitFor(const std::string& text) {
  size_t at;
  while ((at = screen_.find(text, seen_)) == screen_.npos) {
    if (!Read()) return false;
  }
  seen_ = at + text.size();
  return true;
}

void TerminalProcess::Type(const std::string& text) {
  if (write(fd_, text.data(), text.size()) !=
      static_cast<ssize_t>(text.size())) {
    std::perror("write");
    std::abort();
  }
}

void TerminalProcess::Kill(int signal) const { kill(pid_, signal); }

bool TerminalProcess::Echoes() const {
  termios mode = {};
  return tcgetattr(fd_, &mode) == 0 && (mode.c_lflag & ECHO) != 0 &&
         (mode.c_lflag & ICANON) != 0 && (mode.c_lflag & ISIG) != 0;
}

int TerminalProcess::Wait() {
  while (Read()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace timecache
