// The part of a PartitionedStore that is about consumer groups.

#include <utility>

#include "server/engine/parts/partitioned_store.h"

namespace timecache::server {

void PartitionedStore::CreateGroup(GroupName name, NewGroup group,
                                   DoneWith<GroupInfo> done) {
  maps_->CreateGroup(name, std::move(group), std::move(done));
}

void PartitionedStore::GetGroup(GroupName name, bool include_statistics,
                                DoneWith<GroupInfo> done) {
  maps_->GetGroup(name, include_statistics, std::move(done));
}

void PartitionedStore::ListGroups(absl::string_view namespace_name,
                                  ListQuery query,
                                  DoneWith<Page<GroupInfo>> done) {
  maps_->ListGroups(namespace_name, std::move(query), std::move(done));
}

void PartitionedStore::UpdateGroup(GroupName name,
                                   OptionsChange<GroupOptions> change,
                                   DoneWith<GroupInfo> done) {
  maps_->UpdateGroup(name, std::move(change), std::move(done));
}

void PartitionedStore::SeekGroup(GroupName name, LogPosition position,
                                 bool drop, DoneWith<SeekResult> done) {
  maps_->SeekGroup(name, position, drop, std::move(done));
}

void PartitionedStore::ListUnsettled(GroupName name, UnsettledQuery query,
                                     DoneWith<UnsettledPage> done) {
  maps_->ListUnsettled(name, query, std::move(done));
}

void PartitionedStore::DeleteGroup(GroupName name, Done done) {
  maps_->DeleteGroup(name, std::move(done));
}

void PartitionedStore::ListMembers(GroupName name,
                                   DoneWith<std::vector<MemberInfo>> done) {
  maps_->ListMembers(name, std::move(done));
}

void PartitionedStore::Settle(GroupName name,
                              absl::Span<const Settlement> settlements,
                              absl::Span<SettleResult> results, Done done) {
  maps_->Settle(name, settlements, results, std::move(done));
}

}  // namespace timecache::server
