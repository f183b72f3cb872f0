// A batch whose keys are in several partitions.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_BATCH_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/store/operation.h"
#include "server/engine/store/partition_directory.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// Divides a batch among the partitions of its keys and takes turns with all of them
// until all is applied. Operations of one partition keep their order.
//
// Used by one thread at a time. Copies the operations, but no keys and values.
class PartitionedBatch {
 public:
  // The keys and values of `operations` must outlive the batch.
  PartitionedBatch(PartitionDirectory::Names names,
                   absl::Span<const Operation> operations);
  PartitionedBatch(const PartitionedBatch&) = delete;
  PartitionedBatch& operator=(const PartitionedBatch&) = delete;

  // A turn of Store::Execute of the batch, with a turn of each partition that is not
  // done: they share the response budget, and once kTurnCopiedBytes were copied the
  // others wait for the next turn. `results` and `progress`, not null, must stay until
  // `done`, and be the same each time. Fails if all partitions do; if some do, their
  // operations have the error.
  void TakeTurn(Store* maps, absl::Span<Result> results,
                BatchProgress* progress, Store::Done done);

 private:
  // What is in one partition: operations_, results_ and places_ from `begin` on.
  struct Part {
    const std::string* name;
    size_t begin;
    size_t count = 0;
    BatchProgress progress = {};
    // What kept all from being tried. Of a turn that has ended.
    absl::Status error = {};

    bool ended() const { return progress.done || !error.ok(); }
    bool HasResult(size_t i, const Result& result) const;
  };

  void CheckApplied(const BatchProgress& progress) const;
  absl::Status EndTurn(absl::Span<Result> results, BatchProgress* progress);

  const PartitionDirectory::Names names_;
  std::vector<Part> parts_;
  // By partition.
  std::vector<Operation> operations_;
  std::vector<Result> results_;
  // Where in the batch they are; kGiven once the result is there.
  static constexpr uint32_t kGiven = UINT32_MAX;
  std::vector<uint32_t> places_;
  bool begun_ = false;
  // The part that is first in the next turn.
  size_t first_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_BATCH_H_
