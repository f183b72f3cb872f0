// A server under test, as its users start it.

#ifndef TIMECACHED_TESTS_EXAMPLES_SERVER_PROCESS_H_
#define TIMECACHED_TESTS_EXAMPLES_SERVER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "timecache/client.h"

namespace timecache {

// A timecached process on a socket of its own, for as long as it lives. Not
// thread-safe.
class ServerProcess {
 public:
  // Starts it with these flags, and waits until it takes connections; a test
  // without its server has nothing left to check, so that the process aborts.
  explicit ServerProcess(const std::vector<std::string>& flags = {});
  // Ends it, in good order.
  ~ServerProcess();

  // As clients take it: "unix:/...".
  const std::string& address() const { return address_; }
  Client MakeClient(const std::string& ns) const {
    return Client(address_, {.default_namespace = ns});
  }

 private:
  const std::string directory_;
  const std::string address_;
  test::ChildProcess process_;
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_EXAMPLES_SERVER_PROCESS_H_
