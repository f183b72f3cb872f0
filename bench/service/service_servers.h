// Servers of a benchmark, each in a process of its own.

#ifndef TIMECACHED_BENCH_SERVICE_SERVICE_SERVERS_H_
#define TIMECACHED_BENCH_SERVICE_SERVICE_SERVERS_H_

#include <sys/types.h>

#include <string>

namespace timecache::bench {

// A server that this program runs as a child. It ends when its input does, so
// it never outlives its parent. Not thread-safe.
class ServerChild {
 public:
  // `kind` is "timecached" or "echo". Waits until it serves; ends the program
  // if it does not.
  explicit ServerChild(const std::string& kind);
  ~ServerChild();
  ServerChild(const ServerChild&) = delete;
  ServerChild& operator=(const ServerChild&) = delete;

  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::string address_;
};

// Keeps this process, from now on, on the first half of the processors (the
// clients) or on the second (the servers): where they share, the scheduler's
// choices are most of what one measures. On one processor nothing happens.
void PinTo(bool second_half);

// What the child does: serves on a free loopback port, says which on standard
// output, and ends when standard input does. The server as it is, with a
// namespace "bench" whose entries outlive the run.
int ServeTimecached();

// Its second half, for a server that stands at this address.
int ServeUntilInputEnds(const std::string& address);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_SERVICE_SERVERS_H_
