// A server at one moment, as `status` and `top` show it.

#ifndef TIMECACHED_CLIENT_CLI_SERVER_SAMPLE_H_
#define TIMECACHED_CLIENT_CLI_SERVER_SAMPLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/ui/output.h"
#include "timecache/client.h"

namespace timecache::cli {

// Namespaces whose groups are asked for, a call each.
inline constexpr size_t kMaxGroupNamespaces = 100;

// Namespaces and groups with their statistics.
struct ServerSample {
  ServerInfo server;
  std::vector<Namespace> namespaces;
  // Of the first kMaxGroupNamespaces.
  std::vector<Group> groups;
  // See AddHotKeys; empty without it.
  std::string hot_namespace;
  HotKeys hot;
};

// Asks for all of it. Groups that the caller may not see are left out.
absl::StatusOr<ServerSample> TakeSample(const Client& client);

// What happened to a namespace per second.
struct Rates {
  double puts = 0;
  double hits = 0;
  double misses = 0;
  double deaths = 0;

  double operations() const { return puts + hits + misses; }
};

// Between two samples, by the server's clock. Zero for a namespace that is not
// in `before`, or was made again since.
Rates RatesOf(const ServerSample& before, const ServerSample& now,
              const Namespace& ns);

// Asks for the hottest keys of the namespace that was the busiest since `before`,
// if the caller may see them.
void AddHotKeys(const Client& client, const ServerSample& before,
                ServerSample* sample);

// What the journal did per second, and its commits on average: between two
// samples, or, without one before or after a restart, since its start.
struct JournalRates {
  // Unset: without a sample before.
  std::optional<double> commits_per_second;
  std::optional<double> bytes_per_second;
  absl::Duration commit = {};
  double group_appends = 0;
  double group_bytes = 0;
};
JournalRates JournalRatesOf(const ServerSample* before,
                            const ServerSample& now);

// The group's lag: the age of its oldest unsettled event.
absl::Duration LagOf(const ServerSample& sample, const Group& group);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_SERVER_SAMPLE_H_
