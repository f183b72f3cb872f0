#include "server/engine/store/group_types.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/range_check.h"

namespace timecache::server {
namespace {

// As good as random: the finalizer of MurmurHash3.
uint64_t Mix(uint64_t bits) {
  bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccd;
  bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53;
  return bits ^ (bits >> 33);
}

// Before jitter.
int64_t FullDelayUs(const GroupOptions& options, int attempt) {
  if (const auto& list = options.retry_delays_us; !list.empty()) {
    const auto past = static_cast<size_t>(std::max(attempt - 1, 0));
    return list[std::min(past, list.size() - 1)];
  }
  const int64_t most_us = options.max_retry_delay_us;
  int64_t delay_us = std::min(options.retry_delay_us, most_us);
  if (delay_us == 0) return 0;
  for (; attempt > 1 && delay_us < most_us && options.retry_multiplier > 1;
       --attempt) {
    delay_us = std::min(delay_us * options.retry_multiplier, most_us);
  }
  return delay_us;
}

}  // namespace

absl::Status Validate(const GroupOptions& options) {
  if (options.key_prefix.size() > kMaxGroupPrefixBytes) {
    return InvalidField(
        "key_prefix", absl::StrCat("must be at most ", kMaxGroupPrefixBytes,
                                   " bytes, not ", options.key_prefix.size()));
  }
  if (options.retry_delays_us.size() > kMaxRetryDelays) {
    return InvalidField("retry_delays",
                        absl::StrCat("must be at most ", kMaxRetryDelays,
                                     ", not ", options.retry_delays_us.size()));
  }
  for (const int64_t delay_us : options.retry_delays_us) {
    if (absl::Status status =
            CheckDuration("retry_delays", delay_us, 0, kMaxNackDelayUs);
        !status.ok()) {
      return status;
    }
  }
  return CheckRanges(options);
}

int64_t RetryDelayUs(const GroupOptions& options, uint64_t event_id,
                     int attempt) {
  const int64_t delay_us = FullDelayUs(options, attempt);
  const int64_t jitter_us = delay_us * options.retry_jitter_percent / 100;
  if (jitter_us == 0) return delay_us;
  const uint64_t random = Mix(event_id * 31 + static_cast<uint64_t>(attempt));
  return delay_us -
         static_cast<int64_t>(random % (static_cast<uint64_t>(jitter_us) + 1));
}

}  // namespace timecache::server
