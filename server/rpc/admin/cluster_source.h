// What the services need of the cluster that the server is a node of.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_CLUSTER_SOURCE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_CLUSTER_SOURCE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// All thread-safe and not blocking. All null: the server is no node of a
// cluster. They must stay valid until the server is gone.
struct ClusterSource {
  // OK while the node serves; else UNAVAILABLE (NOT_OWNER), with the metadata
  // owner_address if a node owns. Called for each call and each message of a
  // stream: to cost as little as reading a clock.
  std::function<absl::Status()> check_service = nullptr;
  // Fills an empty response.
  std::function<void(v1::GetClusterResponse* cluster)> describe = nullptr;
  // Calls `done` with the successor's name once the release is in the log, or
  // with the error as HandOver documents it: on any thread, once, possibly
  // before it returns.
  using HandedOver = std::function<void(absl::StatusOr<std::string> to)>;
  std::function<void(const std::string& to, HandedOver done)> hand_over =
      nullptr;
  // The addresses of the owners of a namespace's partitions, as GetOwners has them.
  // Null: the nodes share no ownership.
  using OwnersOf = std::function<std::vector<std::string>(
      absl::string_view namespace_name, int partitions)>;
  OwnersOf owners_of = nullptr;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_CLUSTER_SOURCE_H_
