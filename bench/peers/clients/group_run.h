// What the clients that measure a peer's consumer group have in common: their
// flags, their figures, and the order of things: everything is added first, then
// members take it.

#ifndef TIMECACHED_BENCH_PEERS_CLIENTS_GROUP_RUN_H_
#define TIMECACHED_BENCH_PEERS_CLIENTS_GROUP_RUN_H_

#include <cstdint>
#include <functional>

namespace timecache::bench {

struct GroupArguments {
  int port = 0;
  int server_pid = 0;
  int members = 1;
  uint64_t events = 1'000'000;
  // Events that one request of a member takes, and requests that it has in
  // flight.
  int count = 1'000;
  int depth = 2;
  // Of an event's value.
  int bytes = 80;
};

struct GroupPeer {
  // The program's, and what it measures.
  const char* name;
  const char* about;
  std::function<void(const GroupArguments&)> add;
  // Takes and settles all events. Returns how many requests that took.
  std::function<uint64_t(const GroupArguments&)> settle;
};

// Parses the flags, runs, and prints the figures as JSON. Returns the exit code.
int GroupMain(int argc, char** argv, const GroupPeer& peer);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_PEERS_CLIENTS_GROUP_RUN_H_
