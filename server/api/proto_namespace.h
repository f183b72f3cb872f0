// Converts namespaces and consumer groups between messages and the engine's
// types.

#ifndef TIMECACHED_SERVER_API_PROTO_NAMESPACE_H_
#define TIMECACHED_SERVER_API_PROTO_NAMESPACE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/store_types.h"
#include "timecache/v1/groups.pb.h"
#include "timecache/v1/namespaces.pb.h"

namespace timecache::server {

// Sets the fields that are set in `from`. INVALID_ARGUMENT for values that
// cannot be represented; the engine checks ranges.
absl::Status ApplyOptions(const v1::NamespaceOptions& from,
                          NamespaceOptions* to);
// The same, for an existing namespace: options that are fixed at its creation
// cannot change.
absl::Status ChangeOptions(const v1::NamespaceOptions& from,
                           NamespaceOptions* to);

// The options of a new namespace: the defaults, of which a server sets
// `default_partitions`, and the fields set in `from`.
absl::StatusOr<NamespaceOptions> NewOptions(const v1::NamespaceOptions& from,
                                            int default_partitions = 1);

void SetOptions(const NamespaceOptions& options, v1::NamespaceOptions* to);

// With the statistics, if it has them.
void SetNamespace(const NamespaceInfo& from, v1::Namespace* to);
void SetStatistics(const NamespaceStatistics& from,
                   v1::NamespaceStatistics* statistics);

// The same of a consumer group.
absl::Status ApplyOptions(const v1::GroupOptions& from, GroupOptions* to);
// INVALID_ARGUMENT about key_prefix, too, if it is another one.
absl::Status ChangeOptions(const v1::GroupOptions& from, GroupOptions* to);
void SetOptions(const GroupOptions& options, v1::GroupOptions* to);
void SetStatistics(const GroupStatistics& from, v1::GroupStatistics* to);
void SetGroup(const GroupInfo& from, v1::Group* to);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_PROTO_NAMESPACE_H_
