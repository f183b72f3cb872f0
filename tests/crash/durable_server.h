// A durable server that is killed and started again.

#ifndef TIMECACHED_TESTS_CRASH_DURABLE_SERVER_H_
#define TIMECACHED_TESTS_CRASH_DURABLE_SERVER_H_

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/journal/temporary_directory.h"
#include "tests/support/server_process.h"

namespace timecache::test {

// A server on one directory and one address, over all its lives.
class DurableServer {
 public:
  DurableServer() { Start("127.0.0.1:0"); }

  // As `kill -9` does.
  void Kill() {
    process_->process().Signal(SIGKILL);
    process_->process().Wait();
  }
  void Restart() { Start(address_); }
  // In good order.
  Exit Stop() {
    process_->process().Signal(SIGTERM);
    return process_->process().Wait();
  }
  const std::string& address() const { return address_; }

 private:
  void Start(const std::string& address) {
    process_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--listen", address, "--virtual-clock",
                                 "--journal", directory_.path() + "/journal"});
    address_ = process_->address();
  }

  server::TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> process_;
  std::string address_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_CRASH_DURABLE_SERVER_H_
