// The command-line arguments of `watch`.

#ifndef TIMECACHED_CLIENT_CLI_WATCH_ARGUMENTS_H_
#define TIMECACHED_CLIENT_CLI_WATCH_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace timecache::cli {

struct WatchArguments {
  std::vector<std::string> namespaces = {};
  std::string prefix = {};
  bool from_earliest = false;
  bool keys_only = false;
  bool watermarks = false;
  uint64_t count = 0;  // 0: no end.
  std::optional<absl::Time> until = {};
  std::optional<absl::Duration> heartbeat = {};
  std::optional<absl::Duration> lead_time = {};
  bool changes = false;

  std::string resume_file = {};  // Empty: none.
  bool fail_on_loss = false;

  std::string group = {};  // Empty: none.
  std::optional<uint32_t> max_in_flight = {};
  bool delivery_tokens = false;  // With --json.

  // With a group: the command line to run for each event; empty: print them.
  std::string exec = {};
  int jobs = 1;
  absl::Duration extend_max = absl::Hours(12);
  absl::Duration retry_delay = absl::Seconds(1);
  std::optional<int> put_back_exit = {};
  std::optional<int> terminate_exit = {};
  std::optional<absl::Duration> put_back_ttl = {};
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_WATCH_ARGUMENTS_H_
