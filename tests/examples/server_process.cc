#include "tests/examples/server_process.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

#include "absl/time/clock.h"
#include "grpcpp/channel.h"

namespace timecache {
namespace {

constexpr absl::Duration kStartMax = absl::Seconds(60);

// A socket's path must be short, so that the tests' own directory will not do.
std::string MakeDirectory() {
  std::string path = "/tmp/timecached-test-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
  return path;
}

std::vector<std::string> Argv(const std::string& address,
                              const std::vector<std::string>& flags) {
  std::vector<std::string> argv = {TIMECACHED, "--listen", address};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return argv;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& flags)
    : directory_(MakeDirectory()),
      address_("unix:" + directory_ + "/socket"),
      process_(Argv(address_, flags)) {
  const Client client(address_);
  if (!client.channel()->WaitForConnected(
          absl::ToChronoTime(absl::Now() + kStartMax))) {
    std::fprintf(stderr, "the server did not start\n");
    std::abort();
  }
}

ServerProcess::~ServerProcess() {
  process_.Signal(SIGTERM);
  process_.Wait();
  unlink((directory_ + "/socket").c_str());
  rmdir(directory_.c_str());
}

}  // namespace timecache
