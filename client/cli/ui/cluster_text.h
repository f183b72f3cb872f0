// A cluster on one screen.

#ifndef TIMECACHED_CLIENT_CLI_UI_CLUSTER_TEXT_H_
#define TIMECACHED_CLIENT_CLI_UI_CLUSTER_TEXT_H_

#include <string>

#include "client/cli/ui/output.h"
#include "timecache/cluster_types.h"

namespace timecache::cli {

// Lines without an end of the last: the owner, the node that answered, a table
// of the nodes, and a line for each setting that is wrong.
std::string ClusterText(const std::string& address, const ClusterInfo& cluster);

// All that the node reported; durations as milliseconds.
Json ClusterJson(const ClusterInfo& cluster);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_CLUSTER_TEXT_H_
