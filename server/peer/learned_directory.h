// What a node has learned of the namespaces of its cluster.

#ifndef TIMECACHED_SERVER_PEER_LEARNED_DIRECTORY_H_
#define TIMECACHED_SERVER_PEER_LEARNED_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/store/partition_directory.h"

namespace timecache::server {

// How many partitions namespaces have, as far as this node knows: kMaxNames at most, of
// which the one that was learned first is forgotten first. It may be old, and then maps
// refuse what they are asked (LocalStore::Names::kAddresses). Maps are called by their
// addresses.
//
// Thread-safe. A question costs a reader's lock and a hash lookup.
class LearnedDirectory final : public PartitionDirectory {
 public:
  static constexpr size_t kMaxNames = 100'000;

  // Null also for a namespace of which nothing is known.
  Names PartitionsOf(absl::string_view namespace_name) const override
      ABSL_LOCKS_EXCLUDED(mu_);
  Names NamesOf(absl::string_view namespace_name, int count) const override;

  enum class Known : uint8_t { kNothing, kOne, kSeveral };
  Known Know(absl::string_view namespace_name) const ABSL_LOCKS_EXCLUDED(mu_);

  void Learn(absl::string_view namespace_name, int count)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(absl::string_view namespace_name) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    // Null: it has one.
    Names partitions = nullptr;
    uint64_t number = 0;
  };

  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mu_);
  // The names as they were learned, with the numbers of their entries: one that has
  // another number, or none, was learned anew, or forgotten.
  std::deque<std::pair<std::string, uint64_t>> learned_ ABSL_GUARDED_BY(mu_);
  uint64_t last_number_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_LEARNED_DIRECTORY_H_
