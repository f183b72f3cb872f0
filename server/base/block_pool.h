// Memory for segments and index lines: blocks that the kernel backs with huge
// pages, and that are used again.

#ifndef TIMECACHED_SERVER_BASE_BLOCK_POOL_H_
#define TIMECACHED_SERVER_BASE_BLOCK_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// A map's entries lie all over its memory, and with pages of 4 KiB nearly every
// lookup of a large map misses the TLB as well as the cache. So blocks are cut
// from slabs of 2 MiB, aligned to 2 MiB, which Linux backs with one page each
// where transparent huge pages are allowed (`madvise` or `always`). A slab has
// blocks of one size, a power of two from kMinBlockBytes to kMaxBlockBytes; any
// other size comes from malloc, so that small maps stay small.
//
// Thread-safe: one mutex, taken once a block. A slab whose blocks are all free
// is idle: it waits for use by any size, and counts against the limit of memory
// (MemoryBudget::AddIdle). Blocks come from the fullest slab with room, so that
// others become idle. More than kMaxIdleSlabs of them go back to the system
// as GiveBack is called, and all of them as the memory is needed.
class BlockPool {
 public:
  static constexpr size_t kSlabBytes = size_t{2} << 20;
  static constexpr size_t kMinBlockBytes = size_t{8} << 10;
  static constexpr size_t kMaxBlockBytes = size_t{1} << 20;
  static constexpr size_t kMaxIdleSlabs = 1;

  // The address and memory sanitizers only track malloc: with them all blocks
  // come from malloc, and there are no slabs.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) ||   \
    defined(ABSL_HAVE_HWADDRESS_SANITIZER) || \
    defined(ABSL_HAVE_MEMORY_SANITIZER)
  static constexpr bool kPooled = false;
#else
  static constexpr bool kPooled = true;
#endif

  // The one of this process. Never destroyed.
  static BlockPool& Default();

  // Uninitialized, aligned to 16 bytes, and to 64 if its size is a multiple of
  // that. Never null: without memory the process ends. `lasting` are blocks that
  // stay while others come and go: in slabs of their own, because one of them
  // would keep a slab of the others from becoming idle.
  void* Allocate(size_t bytes, bool lasting = false) ABSL_LOCKS_EXCLUDED(mu_);
  // Frees a block of Allocate.
  void Free(void* block) ABSL_LOCKS_EXCLUDED(mu_);

  // Prepares the slab that Allocate will need next, if there is none: a system
  // call and 2 MiB of zeros, which would otherwise delay a caller of Allocate
  // that holds locks. Call it often, without a lock; costs a load if there is
  // nothing to do.
  void Prepare() ABSL_LOCKS_EXCLUDED(mu_) {
    if (wanted_.load(std::memory_order_relaxed)) MakeReady();
  }

  // Returns some idle memory to the system: one slab, or of very many one in
  // kGiveBackShare. Returns whether more is left. Call it periodically:
  // returning a GiB at once keeps the kernel busy, and on a virtual machine,
  // whose hypervisor reclaims such memory in turn, stops the machine for tens
  // of milliseconds.
  static constexpr size_t kGiveBackShare = 512;
  bool GiveBack() ABSL_LOCKS_EXCLUDED(mu_);
  // The same at once, up to so many bytes, for who needs them elsewhere; but
  // leaves so many slabs. Returns whether there were more.
  bool GiveBackNow(int64_t bytes, size_t keep) ABSL_LOCKS_EXCLUDED(mu_);

  // Taken from the system, with what is idle.
  size_t slab_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Slab {
    // Sorted by the number of used blocks.
    using ByUse = absl::btree_set<std::pair<size_t, Slab*>>;

    char* memory = nullptr;
    size_t block_bytes = 0;
    // A bit for each block, set for a free one.
    std::array<uint64_t, kSlabBytes / kMinBlockBytes / 64> free = {};
    size_t used = 0;
    // The slabs of its kind that have a free block.
    ByUse* with_room = nullptr;

    bool full() const { return used * block_bytes == kSlabBytes; }
  };
  static constexpr int kSizeClasses = 8;

  Slab* NewSlab(size_t block_bytes, Slab::ByUse* with_room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeReady() ABSL_LOCKS_EXCLUDED(mu_);
  void AddIdle(char* slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  char* TakeIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::flat_hash_map<uintptr_t, std::unique_ptr<Slab>> slabs_
      ABSL_GUARDED_BY(mu_);
  // Of each size; lasting ones behind.
  std::array<Slab::ByUse, size_t{2} * kSizeClasses> with_room_
      ABSL_GUARDED_BY(mu_);
  std::vector<char*> idle_ ABSL_GUARDED_BY(mu_);
  // The last idle slab was taken, or there never was one.
  std::atomic<bool> wanted_{true};
};

// Owns a block of the default pool.
struct FreeBlock {
  void operator()(void* block) const { BlockPool::Default().Free(block); }
};
template <typename T>
using Block = std::unique_ptr<T, FreeBlock>;

// An array of `count` T, uninitialized.
template <typename T>
Block<T[]> AllocateBlock(size_t count, bool lasting = false) {
  return Block<T[]>(static_cast<T*>(
      BlockPool::Default().Allocate(count * sizeof(T), lasting)));
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_BLOCK_POOL_H_
