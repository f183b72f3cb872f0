// The part of a PartitionedStore that is about entries.

#include "server/engine/parts/partitioned_store.h"

#include <memory>
#include <optional>
#include <utility>

#include "server/base/error.h"
#include "server/engine/parts/gather.h"
#include "server/engine/parts/partitioned_batch.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {
namespace {

using Names = PartitionDirectory::Names;

// The partition of all keys; the first one if there are none.
std::optional<size_t> PartitionOfAll(absl::Span<const Operation> operations,
                                     size_t num_partitions) {
  int partition = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    const int of_key =
        PartitionOfKey(operations[i].key, static_cast<int>(num_partitions));
    if (i > 0 && of_key != partition) return std::nullopt;
    partition = of_key;
  }
  return static_cast<size_t>(partition);
}

// `done`, which keeps the names that a call uses until then.
Store::Done Keeping(Names names, Store::Done done) {
  return [names = std::move(names), done = std::move(done)](
             absl::Status status) mutable { done(std::move(status)); };
}

// A step of a walk.
struct ScanStep {
  Store* maps;
  Names names;
  absl::string_view prefix;
  int max_entries;
  int64_t max_bytes;
  ScanPosition* position;
  bool* more;
  EntryVisitor visit;
  Store::Done done;
  bool visited = false;

  bool in_last() const {
    return position->partition + 1 == static_cast<int>(names->size());
  }
  // A position of no partition is none of this namespace: the map refuses it.
  const std::string& map() const {
    const auto partition = static_cast<size_t>(position->partition);
    return (*names)[partition < names->size() ? partition : 0];
  }
};

// A step that has visited entries ends behind the last one of a partition, not
// before the next one: so each position is one of a map that is there.
void TakeStep(const std::shared_ptr<ScanStep>& step) {
  step->maps->Scan(
      step->map(), step->prefix, step->max_entries, step->max_bytes,
      step->position, step->more,
      [step](const ScannedEntry& entry) {
        step->visited = true;
        step->visit(entry);
      },
      [step](absl::Status status) {
        if (!status.ok() || *step->more || step->in_last()) {
          return step->done(std::move(status));
        }
        if (step->visited) {
          *step->more = true;
          return step->done(std::move(status));
        }
        *step->position = {.begun = true,
                           .partition = step->position->partition + 1};
        TakeStep(step);
      });
}

}  // namespace

absl::StatusOr<Names> PartitionedStore::PartitionsOf(
    absl::string_view name) const {
  // Maps of partitions are found by their names, too.
  if (PlaceOf(name).namespace_name.size() != name.size()) {
    return ValidateNamespaceName(name);
  }
  return directory_->PartitionsOf(name);
}

void PartitionedStore::Execute(absl::string_view name,
                               absl::Span<const Operation> operations,
                               absl::Span<Result> results,
                               BatchProgress* progress, Done done) {
  // As it began, whatever became of the namespace.
  if (progress != nullptr && progress->state != nullptr) {
    return static_cast<PartitionedBatch*>(progress->state.get())
        ->TakeTurn(maps_, results, progress, std::move(done));
  }
  auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) {
    return maps_->Execute(name, operations, results, progress, std::move(done));
  }
  if (const auto only = PartitionOfAll(operations, (*names)->size())) {
    const std::string& map = (**names)[*only];
    return maps_->Execute(map, operations, results, progress,
                          Keeping(*std::move(names), std::move(done)));
  }
  if (progress == nullptr) {
    auto whole = std::make_shared<BatchProgress>();
    whole->in_turns = false;
    progress = whole.get();
    done = [whole = std::move(whole), done = std::move(done)](
               absl::Status status) mutable { done(std::move(status)); };
  }
  const auto batch =
      std::make_shared<PartitionedBatch>(*std::move(names), operations);
  progress->state = batch;
  batch->TakeTurn(maps_, results, progress, std::move(done));
}

void PartitionedStore::ExecuteAtomic(absl::string_view name,
                                     absl::Span<const Operation> operations,
                                     absl::Span<Result> results, Done done) {
  auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) {
    return maps_->ExecuteAtomic(name, operations, results, std::move(done));
  }
  const auto only = PartitionOfAll(operations, (*names)->size());
  if (!only.has_value()) {
    return done(InvalidField("operations",
                             "must be on keys of one partition in an atomic "
                             "batch: such keys have the "
                             "same text in {}, as order:{42} and lock:{42}, or "
                             "num_partitions is 1"));
  }
  const std::string& map = (**names)[*only];
  maps_->ExecuteAtomic(map, operations, results,
                       Keeping(*std::move(names), std::move(done)));
}

void PartitionedStore::GetSize(absl::string_view name,
                               DoneWith<NamespaceSize> done) {
  auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) return maps_->GetSize(name, std::move(done));
  const Names& maps = *names;
  GatherAll<NamespaceSize>(
      maps->size(),
      [&](size_t i, DoneWith<NamespaceSize> done_of_part) {
        maps_->GetSize((*maps)[i], std::move(done_of_part));
      },
      [maps, done = std::move(done)](
          absl::StatusOr<std::vector<NamespaceSize>> sizes) mutable {
        if (!sizes.ok()) return done(sizes.status());
        NamespaceSize sum;
        for (const NamespaceSize& size : *sizes) {
          sum.entries += size.entries;
          sum.bytes += size.bytes;
        }
        done(sum);
      });
}

void PartitionedStore::Scan(absl::string_view name, absl::string_view prefix,
                            int max_entries, int64_t max_bytes,
                            ScanPosition* position, bool* more,
                            EntryVisitor visit, Done done) {
  auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) {
    return maps_->Scan(name, prefix, max_entries, max_bytes, position, more,
                       std::move(visit), std::move(done));
  }
  TakeStep(std::make_shared<ScanStep>(
      ScanStep{maps_, *std::move(names), prefix, max_entries, max_bytes,
               position, more, std::move(visit), std::move(done)}));
}

// --- Of this process.

StoreUsage PartitionedStore::GetUsage() const { return maps_->GetUsage(); }

void PartitionedStore::SetDeadLetterRight(DeadLetterRight right) {
  maps_->SetDeadLetterRight(std::move(right));
}

}  // namespace timecache::server
