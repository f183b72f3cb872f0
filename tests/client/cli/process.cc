#include "tests/client/cli/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace timecache {
namespace {

// A test that cannot even start its program has nothing left to check.
void Check(bool condition, const char* what) {
  if (condition) return;
  std::perror(what);
  std::abort();
}

std::string ReadAll(std::FILE* file) {
  std::string bytes;
  char block[4096];
  size_t length;
  while ((length = std::fread(block, 1, sizeof(block), file)) > 0) {
    bytes.append(block, length);
  }
  return bytes;
}

}  // namespace

Process::Process(std::vector<std::string> argv, const std::string& input) {
  std::vector<char*> pointers;
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int in[2];
  int out[2];
  Check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
  err_ = std::tmpfile();
  Check(err_ != nullptr, "tmpfile");
  pid_ = fork();
  Check(pid_ >= 0, "fork");
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(fileno(err_), STDERR_FILENO);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  // A program that does not read its input may be gone by now.
  signal(SIGPIPE, SIG_IGN);
  const ssize_t written = write(in[1], input.data(), input.size());
  Check(written == static_cast<ssize_t>(input.size()) || errno == EPIPE,
        "write");
  close(in[1]);
  out_ = fdopen(out[0], "r");
  Check(out_ != nullptr, "fdopen");
}

Process::~Process() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  CloseOutput();
  std::fclose(err_);
}

std::string Process::ReadLine() {
  std::string line;
  int c;
  while ((c = std::fgetc(out_)) != EOF && c != '\n') {
    line.push_back(static_cast<char>(c));
  }
  return line;
}

void Process::CloseOutput() {
  if (out_ != nullptr) std::fclose(out_);
  out_ = nullptr;
}

void Process::Signal(int signal) { kill(pid_, signal); }

ProcessResult Process::Wait() {
  ProcessResult result;
  if (out_ != nullptr) result.out = ReadAll(out_);
  int status = 0;
  Check(waitpid(pid_, &status, 0) == pid_, "waitpid");
  pid_ = -1;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  std::rewind(err_);
  result.err = ReadAll(err_);
  return result;
}

}  // namespace timecache
