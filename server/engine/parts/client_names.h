// Names that clients give, which name no partition.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_CLIENT_NAMES_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_CLIENT_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {

// INVALID_ARGUMENT for the name of a partition that is not the first: there is a
// map of that name, and no namespace can have it.
inline absl::Status CheckName(absl::string_view name) {
  return PlaceOf(name).partition == 0 ? absl::OkStatus()
                                      : ValidateNamespaceName(name);
}

inline absl::Status CheckNames(absl::Span<const std::string> names) {
  absl::Status status;
  for (const std::string& name : names) status.Update(CheckName(name));
  return status;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_CLIENT_NAMES_H_
