#include "server/service/watch/watch_source.h"

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"

namespace timecache {

absl::Status WatchSource::NamespaceDeleted(absl::string_view map) {
  return ErrorWithReason(absl::StatusCode::kNotFound,
                         Reason::kNamespaceNotFound,
                         absl::StrCat("namespace ", map, " was deleted"));
}

}  // namespace timecache
