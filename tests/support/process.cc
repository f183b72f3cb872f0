#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

extern char** environ;

namespace timecache::test {
namespace {

constexpr size_t kReadBytes = 64 << 10;

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& string : *strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::array<int, 2> MakePipe() {
  std::array<int, 2> ends;
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0) << std::strerror(errno);
  return ends;
}

}  // namespace

ChildProcess::ChildProcess(
    const std::vector<std::string>& argv, const std::string& input,
    const std::map<std::string, std::string>& environment)
    : name_(absl::StrJoin(argv, " ")) {
  // A program that does not read its input may be gone when it is written.
  std::signal(SIGPIPE, SIG_IGN);
  const auto in = MakePipe();
  const auto out = MakePipe();
  const auto err = MakePipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    // What whoever runs the tests has set there is not for the program.
    if (!absl::StartsWith(*at, "TIMECACHED_")) variables.push_back(*at);
  }
  for (const auto& [name, value] : environment) {
    variables.push_back(name + "=" + value);
  }
  const int error =
      posix_spawn(&pid_, argv[0].c_str(), &actions, nullptr,
                  Pointers(&arguments).data(), Pointers(&variables).data());
  EXPECT_EQ(error, 0) << name_ << ": " << std::strerror(error);
  if (error != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  out_.fd = out[0];
  err_.fd = err[0];
  const ssize_t written = write(in[1], input.data(), input.size());
  EXPECT_TRUE(written == static_cast<ssize_t>(input.size()) || errno == EPIPE)
      << name_ << ": " << std::strerror(errno);
  close(in[1]);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  CloseOutput();
  close(err_.fd);
}

bool ChildProcess::Fill(absl::Time deadline) {
  std::vector<Pipe*> open;
  std::vector<pollfd> fds;
  for (Pipe* pipe : {&out_, &err_}) {
    if (pipe->ended) continue;
    open.push_back(pipe);
    fds.push_back({pipe->fd, POLLIN, 0});
  }
  const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
  if (open.empty() || left_ms <= 0) return false;
  if (poll(fds.data(), fds.size(), static_cast<int>(left_ms)) <= 0) {
    return false;
  }
  for (size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    std::string block(kReadBytes, '\0');
    const ssize_t length = read(fds[i].fd, block.data(), block.size());
    open[i]->ended = length <= 0;
    if (length > 0) {
      open[i]->bytes.append(block, 0, static_cast<size_t>(length));
    }
  }
  return true;
}

std::string ChildProcess::ReadLine(Pipe* pipe) {
  const absl::Time deadline = absl::Now() + kPatience;
  size_t end;
  while ((end = pipe->bytes.find('\n')) == std::string::npos) {
    if (pipe->ended || !Fill(deadline)) {
      ADD_FAILURE() << name_ << ": no line came, only \"" << pipe->bytes
                    << "\"; on standard error: " << err_.bytes;
      return "";
    }
  }
  const std::string line = pipe->bytes.substr(0, end);
  pipe->bytes.erase(0, end + 1);
  return line;
}

void ChildProcess::Signal(int signal) {
  ASSERT_GT(pid_, 0);
  kill(pid_, signal);
}

void ChildProcess::CloseOutput() {
  close(out_.fd);
  out_ = {.fd = -1, .bytes = "", .ended = true};
}

bool ChildProcess::HasEnded() const {
  siginfo_t info = {};
  return pid_ > 0 &&
         waitid(P_PID, static_cast<id_t>(pid_), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

Exit ChildProcess::Wait() {
  Exit exit;
  if (pid_ <= 0) return exit;
  // Its pipes end with it: nothing else holds them.
  const absl::Time deadline = absl::Now() + kPatience;
  while (!(out_.ended && err_.ended)) {
    if (Fill(deadline)) continue;
    ADD_FAILURE() << name_ << " did not end within " << kPatience
                  << "; on standard error: " << err_.bytes;
    kill(pid_, SIGKILL);
    break;
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_) << std::strerror(errno);
  pid_ = -1;
  if (WIFEXITED(status)) exit.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
  exit.out = std::exchange(out_.bytes, "");
  exit.err = std::exchange(err_.bytes, "");
  return exit;
}

Exit RunToEnd(const std::vector<std::string>& argv, const std::string& input) {
  return ChildProcess(argv, input).Wait();
}

}  // namespace timecache::test
