// A server at one moment, as `status` and `top` show it.
#pragma once

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

// How far behind the group is: the age of its oldest unsettled event.
absl::Duration LagOf(const ServerSample& sample, const Group& group);

}  // namespace timecache::cli
