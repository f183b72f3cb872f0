#include "server/engine/store/stale_names.h"

#include "absl/strings/cord.h"

namespace timecache::server {
namespace {

constexpr char kStaleUrl[] = "timecached/stale";

}  // namespace

absl::Status MarkStale(absl::Status status) {
  status.SetPayload(kStaleUrl, absl::Cord());
  return status;
}

bool IsStale(const absl::Status& status) {
  return !status.ok() && status.GetPayload(kStaleUrl).has_value();
}

}  // namespace timecache::server
