#include "client/cli/console/read_only.h"

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "timecache/v1/data.pb.h"

namespace timecache::cli {

bool ChangesNothing(const google::protobuf::MethodDescriptor& method,
                    const std::string& request) {
  // A later method is refused until it is here.
  static const auto* const methods = new absl::flat_hash_set<std::string>{
      "timecache.v1.TimeCacheService.Contains",
      "timecache.v1.TimeCacheService.Size",
      "timecache.v1.TimeCacheService.Scan",
      "timecache.v1.TimeCacheService.WatchExpired",
      "timecache.v1.TimeCacheService.WatchChanges",
      "timecache.v1.TimeCacheService.WatchExpiring",
      "timecache.v1.GroupService.GetGroup",
      "timecache.v1.GroupService.ListGroups",
      "timecache.v1.GroupService.ListMembers",
      "timecache.v1.GroupService.ListUnsettled",
      "timecache.v1.NamespaceService.GetDeaths",
      "timecache.v1.NamespaceService.GetHotKeys",
      "timecache.v1.NamespaceService.GetNamespace",
      "timecache.v1.NamespaceService.GetOwners",
      "timecache.v1.NamespaceService.ListNamespaces",
      "timecache.v1.ServerService.GetCluster",
      "timecache.v1.ServerService.GetServer",
      "timecache.v1.ServerService.ListConnections",
      "timecache.v1.ServerService.ListSlowCalls",
      "timecache.v1.ServerService.TailCalls",
      "timecache.v1.ServerService.WhoAmI",
      "timecache.testing.v1.VirtualClockService.Now",
  };
  if (method.input_type() == v1::GetRequest::descriptor()) {
    v1::GetRequest get;
    return get.ParseFromString(request) && get.has_touch() && !get.touch();
  }
  return methods->contains(method.full_name());
}

}  // namespace timecache::cli
