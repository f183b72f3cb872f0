#include "server/engine/parts/partitioned_store.h"

#include <utility>

namespace timecache::server {

void PartitionedStore::Execute(absl::string_view name,
                               absl::Span<const Operation> operations,
                               absl::Span<Result> results,
                               BatchProgress* progress, Done done) {
  maps_->Execute(name, operations, results, progress, std::move(done));
}

void PartitionedStore::ExecuteAtomic(absl::string_view name,
                                     absl::Span<const Operation> operations,
                                     absl::Span<Result> results, Done done) {
  maps_->ExecuteAtomic(name, operations, results, std::move(done));
}

void PartitionedStore::GetSize(absl::string_view name,
                               DoneWith<NamespaceSize> done) {
  maps_->GetSize(name, std::move(done));
}

void PartitionedStore::Scan(absl::string_view name, absl::string_view prefix,
                            int max_entries, int64_t max_bytes,
                            ScanPosition* position, bool* more,
                            EntryVisitor visit, Done done) {
  maps_->Scan(name, prefix, max_entries, max_bytes, position, more,
              std::move(visit), std::move(done));
}

void PartitionedStore::CreateNamespace(absl::string_view name,
                                       NamespaceOptions options,
                                       DoneWith<NamespaceInfo> done) {
  maps_->CreateNamespace(name, std::move(options), std::move(done));
}

void PartitionedStore::GetNamespace(absl::string_view name,
                                    bool include_statistics,
                                    DoneWith<NamespaceInfo> done) {
  maps_->GetNamespace(name, include_statistics, std::move(done));
}

void PartitionedStore::ListNamespaces(ListQuery query,
                                      DoneWith<Page<NamespaceInfo>> done) {
  maps_->ListNamespaces(std::move(query), std::move(done));
}

void PartitionedStore::UpdateNamespace(absl::string_view name,
                                       OptionsChange<NamespaceOptions> change,
                                       DoneWith<NamespaceInfo> done) {
  maps_->UpdateNamespace(name, std::move(change), std::move(done));
}

void PartitionedStore::DeleteNamespace(absl::string_view name, Done done) {
  maps_->DeleteNamespace(name, std::move(done));
}

void PartitionedStore::RotateNamespace(absl::string_view name,
                                       DoneWith<int64_t> done) {
  maps_->RotateNamespace(name, std::move(done));
}

void PartitionedStore::GetDeaths(absl::string_view name, DeathsQuery query,
                                 DoneWith<DeathsAhead> done) {
  maps_->GetDeaths(name, query, std::move(done));
}

void PartitionedStore::GetHotKeys(absl::string_view name, size_t max_keys,
                                  DoneWith<HotKeys> done) {
  maps_->GetHotKeys(name, max_keys, std::move(done));
}

StoreUsage PartitionedStore::GetUsage() const { return maps_->GetUsage(); }

void PartitionedStore::SetDeadLetterRight(DeadLetterRight right) {
  maps_->SetDeadLetterRight(std::move(right));
}

}  // namespace timecache::server
