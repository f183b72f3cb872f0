#include "server/base/memory_budget.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/error.h"

namespace timecache::server {

constinit MemoryBudget MemoryBudget::process_;

void MemoryBudget::SetLimit(int64_t bytes) {
  const int64_t limit = bytes == 0 ? kNone : bytes;
  limit_.store(limit, std::memory_order_relaxed);
  exhausted_.store(limit > kNone - limit / kReserveShare
                       ? kNone
                       : limit + limit / kReserveShare,
                   std::memory_order_relaxed);
}

MemoryBudget::Shares MemoryBudget::shares() const {
  // Each is added to before the one that it is a part of is, or nearly so.
  const int64_t used = used_bytes();
  const int64_t events = events_.load(std::memory_order_relaxed);
  const int64_t retained = retained_bytes();
  return {std::max<int64_t>(used - events, 0), retained,
          std::max<int64_t>(events - retained, 0)};
}

int64_t MemoryBudget::BytesBeyond(int64_t sixteenths) const {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  if (limit == kNone) return 0;
  const int64_t below = limit / kSixteenths * (kSixteenths - sixteenths);
  return std::max<int64_t>(held_bytes() - (limit - below), 0);
}

absl::Status MemoryBudget::Error() const {
  const int64_t used = used_bytes();
  const int64_t limit = limit_bytes();
  const Shares held = shares();
  const absl::string_view advice =
      held.backlog_bytes > held.entries_bytes
          ? "settle events, or delete groups that no member serves"
          : "retry when entries have expired, or remove some";
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kMaxMemory,
      absl::StrCat("the server holds ", used,
                   " bytes and has no memory for more under its "
                   "limits.max_memory_bytes of ",
                   limit, " (", held.entries_bytes, " in entries, ",
                   held.retained_bytes, " in retained events, ",
                   held.backlog_bytes,
                   " in backlogs of consumer groups): ", advice),
      {{"max_memory_bytes", std::to_string(limit)},
       {"used_bytes", std::to_string(used)},
       {"entries_bytes", std::to_string(held.entries_bytes)},
       {"retained_bytes", std::to_string(held.retained_bytes)},
       {"backlog_bytes", std::to_string(held.backlog_bytes)}});
}

}  // namespace timecache::server
