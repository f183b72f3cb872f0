#include "bench/service/service_servers.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "server/base/clock.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/engine/store/namespace_options.h"
#include "server/main/config/config.h"
#include "server/rpc/server.h"

extern char** environ;

namespace timecache::bench {
namespace {

constexpr size_t kMaxAddressBytes = 256;

}  // namespace

void PinTo(bool second_half) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  const int half = CPU_COUNT(&all) / 2;
  if (half == 0) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  int seen = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    if ((seen++ >= half) == second_half) CPU_SET(cpu, &mine);
  }
  sched_setaffinity(0, sizeof(mine), &mine);
}

int ServeUntilInputEnds(const std::string& address) {
  std::printf("%s\n", address.c_str());
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return EXIT_SUCCESS;
}

int ServeTimecached() {
  const server::SystemClock clock;
  server::Reaper reaper(&clock);
  server::Registry registry(&clock, &reaper, server::RegistryLimits());
  server::NamespaceOptions map_options;
  map_options.ttl_us = 3'600 * server::kMicrosPerSecond;
  if (!registry.Create("bench", map_options).ok()) return EXIT_FAILURE;
  server::ServerOptions options;
  options.limits = server::DefaultConfig().limits();
  options.addresses = {"127.0.0.1:0"};
  options.observer = [](const server::AdminChange&) {};
  server::LocalStore store(&registry, &clock);
  server::Server timecached(&store, &clock, options);
  if (!timecached.Start().ok()) return EXIT_FAILURE;
  return ServeUntilInputEnds(timecached.addresses().at(0));
}

ServerChild::ServerChild(const std::string& kind) {
  std::array<int, 2> in;
  std::array<int, 2> out;
  std::string program = "/proc/self/exe";
  std::string argument = "--serve=" + kind;
  std::vector<char*> argv = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  bool ok =
      pipe2(in.data(), O_CLOEXEC) == 0 && pipe2(out.data(), O_CLOEXEC) == 0;
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  ok = ok && posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(),
                         environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  char byte;
  while (ok && address_.size() < kMaxAddressBytes &&
         read(out[0], &byte, 1) == 1 && byte != '\n') {
    address_.push_back(byte);
  }
  close(out[0]);
  if (address_.empty()) {
    std::fprintf(stderr, "%s: the %s server did not start\n",
                 program_invocation_short_name, kind.c_str());
    std::exit(EXIT_FAILURE);
  }
}

ServerChild::~ServerChild() {
  close(input_);
  waitpid(pid_, nullptr, 0);
}

}  // namespace timecache::bench
