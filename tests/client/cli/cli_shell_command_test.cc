// Commands that timecachectl runs for events.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/shell_command.h"
#include "gtest/gtest.h"

namespace timecache::cli {
namespace {

using namespace std::string_literals;

ShellCommand::Exit RunOnce(
    const std::string& command_line, const std::string& input = "",
    const std::map<std::string, std::string>& environment = {}) {
  const auto exit = ShellCommand(command_line).Run(input, environment);
  EXPECT_TRUE(exit.ok()) << exit.status();
  return exit.value_or(ShellCommand::Exit{.code = -1});
}

TEST(ShellCommandTest, ExitCodes) {
  EXPECT_EQ(RunOnce("true").code, 0);
  EXPECT_EQ(RunOnce("exit 75").code, 75);
  EXPECT_EQ(RunOnce("exit 255").code, 255);
  EXPECT_EQ(RunOnce("/no/such/program 2>/dev/null").code, 127);
  EXPECT_EQ(RunOnce("exit 3").Text(), "exited with 3");
}

TEST(ShellCommandTest, DeathBySignalIsNoExitCode) {
  const ShellCommand::Exit exit = RunOnce("kill -KILL $$");
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.Text(), "was killed by signal 9 (Killed)");
}

TEST(ShellCommandTest, InputComesAsItIs) {
  EXPECT_EQ(RunOnce("test \"$(od -An -tx1 | tr -d ' \\n')\" = 610062ff0a",
                    "a\0b\xff\n"s)
                .code,
            0);
  EXPECT_EQ(RunOnce("test $(wc -c) -eq 0", "").code, 0);
}

TEST(ShellCommandTest, InputLargerThanAPipeMayBeReadOrNot) {
  const std::string large(16 << 20, 'x');
  EXPECT_EQ(RunOnce("test $(wc -c) -eq 16777216", large).code, 0);
  EXPECT_EQ(RunOnce("exit 5", large).code, 5);
  EXPECT_EQ(RunOnce("exec <&-; exit 6", large).code, 6);
  EXPECT_EQ(RunOnce("test $(head -c 10 | wc -c) -eq 10", large).code, 0);
}

TEST(ShellCommandTest, EachReadsItsInputFromTheBeginning) {
  ShellCommand command("test $(cat) = value");
  EXPECT_EQ(command.Run("value", {})->code, 0);
  EXPECT_EQ(command.Run("value", {})->code, 0);
}

TEST(ShellCommandTest, EnvironmentIsAddedToOurs) {
  setenv("TIMECACHED_TEST_A", "outer", 1);
  setenv("TIMECACHED_TEST_B", "outer", 1);
  const std::string inner = "in = \n\"$x\" '\xff";
  EXPECT_EQ(RunOnce("test \"$TIMECACHED_TEST_A\" = \"$(cat)\" && "
                    "test $TIMECACHED_TEST_B = outer && "
                    "test $(env | grep -c ^TIMECACHED_TEST_A=) -eq 1",
                    inner, {{"TIMECACHED_TEST_A", inner}})
                .code,
            0);
  unsetenv("TIMECACHED_TEST_A");
  unsetenv("TIMECACHED_TEST_B");
}

TEST(ShellCommandTest, HasDefaultSignalsWhateverWeDoWithThem) {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &held, &before);
  const auto pipe_before = signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(RunOnce("kill -TERM $$; exit 1").signal, SIGTERM);
  EXPECT_EQ(RunOnce("kill -PIPE $$; exit 1").signal, SIGPIPE);
  signal(SIGPIPE, pipe_before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ShellCommandTest, IsAProcessGroupOfItsOwn) {
  EXPECT_EQ(RunOnce("test $(cut -d' ' -f5 /proc/$$/stat) = $$").code, 0);
}

TEST(ShellCommandTest, ManyAtATime) {
  ShellCommand command("exit $(cat)");
  std::vector<std::thread> threads;
  std::vector<int> codes(40, -1);
  for (size_t i = 0; i < codes.size(); ++i) {
    threads.emplace_back([&command, &codes, i] {
      const auto exit = command.Run(absl::StrCat(i), {});
      if (exit.ok()) codes[i] = exit->code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(codes[i], static_cast<int>(i));
  }
  EXPECT_EQ(command.running(), 0u);
}

TEST(ShellCommandDeathTest, KillAllKillsWhatTheyHaveStartedToo) {
  // Whoever lives of them holds the writing end.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EXIT(
      {
        ShellCommand command("sleep 1000 & sleep 1000");
        std::thread thread([&command] {
          command.Run("", {}).IgnoreError();
          std::fputs("the end that Run tells is not the command's", stderr);
          _exit(1);
        });
        while (command.running() == 0) std::this_thread::yield();
        command.KillAllAndExit(3);
      },
      ::testing::ExitedWithCode(3), "^$");
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace timecache::cli
