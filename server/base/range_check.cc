#include "server/base/range_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

std::string Text(int64_t time_us) {
  return absl::FormatDuration(absl::Microseconds(time_us));
}

}  // namespace

absl::Status CheckNumber(absl::string_view field, int64_t value, int64_t least,
                         int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("must be between ", least, " and ",
                                          most, ", not ", value));
}

absl::Status CheckDuration(absl::string_view field, int64_t value_us,
                           int64_t least_us, int64_t most_us) {
  if (value_us >= least_us && value_us <= most_us) return absl::OkStatus();
  return InvalidField(field,
                      absl::StrCat("must be between ", Text(least_us), " and ",
                                   Text(most_us), ", not ", Text(value_us)));
}

}  // namespace timecache::server
