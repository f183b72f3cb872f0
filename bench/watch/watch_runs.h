// What watch_bench measures. Each run starts a server as a process of its own,
// prints its figures, and returns the program's exit code; one that fails ends
// the program.

#ifndef TIMECACHED_BENCH_WATCH_WATCH_RUNS_H_
#define TIMECACHED_BENCH_WATCH_WATCH_RUNS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "bench/watch/watch_storm.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"
#include "timecache/v1/namespaces.pb.h"

namespace timecache::bench {

struct Arguments {
  // Entries that die: in all, or in a round.
  uint64_t entries = 0;
  int watchers = 1;
  int members = 1;
  int max_in_flight = 8'192;
  int rounds = 5;
  int seconds = 5;
  // Puts a second: single ones, whose latency is taken, and those in batches.
  int rate = 5'000;
  int batched_rate = 15'000;
  int64_t retention_bytes = int64_t{4} << 20;
  int lead_ms = 0;
  int timeout_seconds = 120;
  std::string address;
  bool json = false;
};

// How late one watcher gets the events of entries that all die at once.
int RunStorm(const Arguments& arguments, absl::Time give_up);
// What it costs to tell many watchers of such entries.
int RunFanout(const Arguments& arguments, absl::Time give_up);
// How late the last of very many watchers gets a few events, and what an idle
// watcher takes.
int RunRounds(const Arguments& arguments, absl::Time give_up);
// What a watcher that does not read does to puts, to the other watchers and to
// the server's memory.
int RunStall(const Arguments& arguments, absl::Time give_up);
// What it costs a consumer group to take and settle everything that died.
int RunGroup(const Arguments& arguments, absl::Time give_up);

// A line that is written over on a terminal.
void Progress(const std::string& line);
// The figures, as one JSON object or a line each.
void Print(const nlohmann::ordered_json& figures, bool json);

std::shared_ptr<grpc::Channel> Connect(const std::string& address);
// Ends the program if a call failed.
void Check(const grpc::Status& status);
void CreateNamespace(const std::shared_ptr<grpc::Channel>& channel,
                     const v1::CreateNamespaceRequest& request,
                     absl::Time give_up);

// From the start of a storm to its death: room to open the watches and to fill
// at a tenth of the usual pace.
absl::Duration StormLead(const Arguments& arguments);
// Fills and lets time pass until just before the death. Returns how long before
// it all was put.
absl::Duration FillAndWait(Storm* storm);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_WATCH_WATCH_RUNS_H_
