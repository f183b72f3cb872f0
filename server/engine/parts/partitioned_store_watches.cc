// The part of a PartitionedStore that opens watches.

#include <utility>

#include "server/engine/parts/partitioned_store.h"

namespace timecache::server {

void PartitionedStore::OpenLogs(absl::Span<const std::string> names,
                                LogStart start, const LogPoints& points,
                                Wake wake, DoneWith<Readers> done) {
  maps_->OpenLogs(names, start, points, std::move(wake), std::move(done));
}

void PartitionedStore::OpenChanges(absl::Span<const std::string> names,
                                   LogStart start, const LogPoints& points,
                                   Wake wake, DoneWith<Readers> done) {
  maps_->OpenChanges(names, start, points, std::move(wake), std::move(done));
}

void PartitionedStore::JoinGroups(absl::Span<const std::string> names,
                                  Membership membership, Wake wake,
                                  DoneWith<Readers> done) {
  maps_->JoinGroups(names, std::move(membership), std::move(wake),
                    std::move(done));
}

void PartitionedStore::OpenExpiring(absl::Span<const std::string> names,
                                    ExpiringOptions options, Wake wake,
                                    DoneWith<Readers> done) {
  maps_->OpenExpiring(names, options, std::move(wake), std::move(done));
}

}  // namespace timecache::server
