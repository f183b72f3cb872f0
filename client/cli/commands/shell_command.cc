#include "client/cli/commands/shell_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace timecache::cli {
namespace {

absl::Status SystemError(const char* what, int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot run the command: ", what, ": ", std::strerror(error)));
}

// A file of these bytes, read from its beginning. A pipe would have to be
// filled while the command runs, and would break when it ends without having
// read it.
absl::StatusOr<int> FileOf(std::string_view bytes) {
  const int fd = memfd_create("timecachectl-input", MFD_CLOEXEC);
  if (fd < 0) return SystemError("memfd_create", errno);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = pwrite(fd, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      close(fd);
      return SystemError("write", error);
    }
    done += static_cast<size_t>(written);
  }
  return fd;
}

// This process's environment with `added`, which goes before.
std::vector<std::string> Environment(
    const std::map<std::string, std::string>& added) {
  std::vector<std::string> variables;
  variables.reserve(added.size());
  for (const auto& [name, value] : added) {
    variables.push_back(absl::StrCat(name, "=", value));
  }
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string variable = *at;
    if (added.count(variable.substr(0, variable.find('='))) == 0) {
      variables.push_back(variable);
    }
  }
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string ShellCommand::Exit::Text() const {
  if (signal == 0) return absl::StrCat("exited with ", code);
  return absl::StrCat("was killed by signal ", signal, " (",
                      sigdescr_np(signal), ")");
}

absl::StatusOr<pid_t> ShellCommand::Start(
    int input_fd, const std::map<std::string, std::string>& environment) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input_fd, STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  std::vector<std::string> arguments = {"sh", "-c", command_line_};
  std::vector<std::string> variables = Environment(environment);
  pid_t pid = 0;
  int error = 0;
  {
    // Started and entered in one: KillAllAndExit misses none.
    absl::MutexLock lock(&mu_);
    error = posix_spawn(&pid, "/bin/sh", &actions, &attributes,
                        Pointers(arguments).data(), Pointers(variables).data());
    if (error == 0) running_.insert(pid);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SystemError("/bin/sh", error);
  return pid;
}

absl::StatusOr<ShellCommand::Exit> ShellCommand::Run(
    std::string_view input,
    const std::map<std::string, std::string>& environment) {
  const absl::StatusOr<int> file = FileOf(input);
  if (!file.ok()) return file.status();
  const absl::StatusOr<pid_t> pid = Start(*file, environment);
  close(*file);
  if (!pid.ok()) return pid.status();
  // Waited for in two steps: its number is not another's while it is in
  // running_.
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(*pid), &info, WEXITED | WNOWAIT) !=
             0 &&
         errno == EINTR) {
  }
  absl::MutexLock lock(&mu_);
  running_.erase(*pid);
  int status = 0;
  waitpid(*pid, &status, 0);
  if (WIFSIGNALED(status)) return Exit{.code = 0, .signal = WTERMSIG(status)};
  return Exit{.code = WEXITSTATUS(status), .signal = 0};
}

size_t ShellCommand::running() {
  absl::MutexLock lock(&mu_);
  return running_.size();
}

void ShellCommand::KillAllAndExit(int exit_code) {
  // Held to the end: a Run whose command is dead waits for it.
  absl::MutexLock lock(&mu_);
  for (const pid_t pid : running_) kill(-pid, SIGKILL);
  _exit(exit_code);
}

}  // namespace timecache::cli
