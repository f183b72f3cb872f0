#include "server/base/block_pool.h"

#include <malloc.h>
#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <utility>

#include "server/base/check.h"
#include "server/base/memory_budget.h"

namespace timecache::server {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kBitsPerWord = 64;

uintptr_t Address(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

// The size of a block of malloc, including its header.
int64_t MallocBytes(void* block) {
  return static_cast<int64_t>(malloc_usable_size(block) + sizeof(size_t));
}

void FreeMalloc(void* block) {
  MemoryBudget::Process().Add(-MallocBytes(block));
  std::free(block);
}

// A slab from the system, aligned to its size.
char* MapSlab() {
  constexpr size_t kBytes = BlockPool::kSlabBytes;
  void* const mapped = mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): so the system defines it.
  TIMECACHED_CHECK(mapped != MAP_FAILED);
  char* const begin = static_cast<char*>(mapped);
  const size_t before = (kBytes - Address(begin) % kBytes) % kBytes;
  char* const slab = begin + before;
  if (before > 0) munmap(begin, before);
  munmap(slab + kBytes, kBytes - before);
  // If it is not allowed, pages are small, and everything else is the same.
  madvise(slab, kBytes, MADV_HUGEPAGE);
  return slab;
}

}  // namespace

BlockPool& BlockPool::Default() {
  static BlockPool* const pool = new BlockPool();
  return *pool;
}

void* BlockPool::Allocate(size_t bytes, bool lasting) {
  if (!kPooled || bytes < kMinBlockBytes || bytes > kMaxBlockBytes ||
      !std::has_single_bit(bytes)) {
    void* const block = bytes % kLineBytes == 0 && bytes < kMinBlockBytes
                            ? std::aligned_alloc(kLineBytes, bytes)
                            : std::malloc(bytes);
    TIMECACHED_CHECK(block != nullptr);
    MemoryBudget::Process().Add(MallocBytes(block));
    return block;
  }
  const int size_class =
      std::countr_zero(bytes) - std::countr_zero(kMinBlockBytes);
  absl::MutexLock lock(&mu_);
  Slab::ByUse& with_room = with_room_[static_cast<size_t>(
      lasting ? kSizeClasses + size_class : size_class)];
  Slab* const slab = with_room.empty() ? NewSlab(bytes, &with_room)
                                       : with_room.rbegin()->second;
  with_room.erase({slab->used, slab});
  size_t word = 0;
  while (slab->free[word] == 0) ++word;
  const size_t index = word * kBitsPerWord +
                       static_cast<size_t>(std::countr_zero(slab->free[word]));
  slab->free[word] &= slab->free[word] - 1;
  ++slab->used;
  if (!slab->full()) with_room.emplace(slab->used, slab);
  return slab->memory + index * bytes;
}

BlockPool::Slab* BlockPool::NewSlab(size_t block_bytes,
                                    Slab::ByUse* with_room) {
  auto slab = std::make_unique<Slab>();
  if (idle_.empty()) {
    slab->memory = MapSlab();
  } else {
    slab->memory = TakeIdle();
  }
  wanted_.store(idle_.empty(), std::memory_order_relaxed);
  MemoryBudget::Process().Add(kSlabBytes);
  slab->block_bytes = block_bytes;
  for (size_t i = 0; i < kSlabBytes / block_bytes; ++i) {
    slab->free[i / kBitsPerWord] |= uint64_t{1} << i % kBitsPerWord;
  }
  slab->with_room = with_room;
  Slab* const made = slab.get();
  slabs_.emplace(Address(made->memory), std::move(slab));
  return made;
}

void BlockPool::Free(void* block) {
  // Blocks of malloc are hardly ever aligned like this, and then in no slab.
  if (Address(block) % kMinBlockBytes != 0) return FreeMalloc(block);
  absl::MutexLock lock(&mu_);
  const auto it = slabs_.find(Address(block) / kSlabBytes * kSlabBytes);
  if (it == slabs_.end()) return FreeMalloc(block);
  Slab* const slab = it->second.get();
  const size_t index = Address(block) % kSlabBytes / slab->block_bytes;
  const uint64_t bit = uint64_t{1} << index % kBitsPerWord;
  uint64_t& word = slab->free[index / kBitsPerWord];
  TIMECACHED_CHECK((word & bit) == 0);
  word |= bit;
  if (!slab->full()) slab->with_room->erase({slab->used, slab});
  if (--slab->used > 0) {
    slab->with_room->emplace(slab->used, slab);
    return;
  }
  MemoryBudget::Process().Add(-int64_t{kSlabBytes});
  AddIdle(slab->memory);
  wanted_.store(false, std::memory_order_relaxed);
  slabs_.erase(it);
}

void BlockPool::AddIdle(char* slab) {
  MemoryBudget::Process().AddIdle(kSlabBytes);
  idle_.push_back(slab);
}

char* BlockPool::TakeIdle() {
  MemoryBudget::Process().AddIdle(-int64_t{kSlabBytes});
  char* const slab = idle_.back();
  idle_.pop_back();
  return slab;
}

bool BlockPool::GiveBack() {
  std::vector<char*> given;
  bool more;
  {
    absl::MutexLock lock(&mu_);
    size_t count = 1 + idle_.size() / kGiveBackShare;
    for (; count > 0 && idle_.size() > kMaxIdleSlabs; --count) {
      given.push_back(TakeIdle());
    }
    more = idle_.size() > kMaxIdleSlabs;
  }
  for (char* slab : given) munmap(slab, kSlabBytes);
  return more;
}

bool BlockPool::GiveBackNow(int64_t bytes, size_t keep) {
  bool given = false;
  for (; bytes > 0; bytes -= kSlabBytes) {
    char* slab;
    {
      absl::MutexLock lock(&mu_);
      if (idle_.size() <= keep) break;
      slab = TakeIdle();
    }
    munmap(slab, kSlabBytes);
    given = true;
  }
  return given;
}

void BlockPool::MakeReady() {
  // The first to ask gets it.
  if (!wanted_.exchange(false, std::memory_order_relaxed) || !kPooled) return;
  char* const slab = MapSlab();
  constexpr size_t kPageBytes = 4096;
  for (size_t i = 0; i < kSlabBytes; i += kPageBytes) slab[i] = 0;
  absl::MutexLock lock(&mu_);
  AddIdle(slab);
}

size_t BlockPool::slab_bytes() const {
  absl::MutexLock lock(&mu_);
  return (slabs_.size() + idle_.size()) * kSlabBytes;
}

}  // namespace timecache::server
