// An administrative change, for the log.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_CHANGE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_CHANGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"

namespace timecache::server {

struct AdminChange {
  // "namespace_created", "group_deleted" and the like.
  absl::string_view event;
  absl::string_view name;
  // Of a group alone.
  absl::string_view group = "";
  // Those in force, or those that an update changes; null: the event has none.
  const google::protobuf::Message* options = nullptr;
  // Entries that died in namespace_rotated.
  std::optional<int64_t> entries = std::nullopt;
  // A sentence each, as in CreateNamespaceResponse.
  absl::Span<const std::string> warnings = {};
};

using AdminObserver = std::function<void(const AdminChange& change)>;

inline void IgnoreAdminChange(const AdminChange& /*change*/) {}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_CHANGE_H_
