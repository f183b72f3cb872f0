#include "server/engine/memory_budget.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"

namespace timecache {

constinit MemoryBudget MemoryBudget::process_;

void MemoryBudget::SetLimit(int64_t bytes) {
  const int64_t limit = bytes == 0 ? kNone : bytes;
  limit_.store(limit, std::memory_order_relaxed);
  exhausted_.store(limit > kNone - limit / kReserveShare
                       ? kNone
                       : limit + limit / kReserveShare,
                   std::memory_order_relaxed);
}

int64_t MemoryBudget::ExcessBytes() const {
  return std::max<int64_t>(
      used_bytes() - exhausted_.load(std::memory_order_relaxed), 0);
}

absl::Status MemoryBudget::Error() const {
  const int64_t used = used_bytes();
  const int64_t limit = limit_bytes();
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, "MAX_MEMORY",
      absl::StrCat("the server holds ", used,
                   " bytes and has no memory for more under its "
                   "limits.max_memory_bytes of ",
                   limit,
                   ": come again when entries have died, or remove some"),
      {{"max_memory_bytes", std::to_string(limit)},
       {"used_bytes", std::to_string(used)}});
}

}  // namespace timecache
