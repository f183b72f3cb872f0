// The namespaces of the configuration: created at start, created or updated on
// a reload.

#ifndef TIMECACHED_SERVER_MAIN_CONFIG_CONFIGURED_NAMESPACES_H_
#define TIMECACHED_SERVER_MAIN_CONFIG_CONFIGURED_NAMESPACES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/registry.h"
#include "server/engine/store/partitions.h"
#include "server/engine/store/store.h"
#include "server/rpc/admin/change.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Thread-safe functions; each costs one creation or update a namespace.

// Which maps a registry has: all, or those of one slot of a cluster, in which each
// registry does its part of what is said below.
struct OwnMaps {
  uint32_t slot = 0;
  uint32_t slots = 1;

  bool all() const { return slots == 1; }
  bool Has(absl::string_view map_name) const {
    return all() || SlotOfMap(map_name, slots) == slot;
  }
};

// What happened to a namespace: an AdminObserver.
void LogNamespace(const AdminChange& change);

// INVALID_ARGUMENT that names the first namespace whose name or options are
// invalid, whose dead letters would come back to it, or that needs a journal if the
// configuration has none.
absl::Status CheckNamespaces(const config::v1::ServerConfig& config);

// Creates all of them, or stops at the first error and returns it. Of a slot: creates
// the partitions that are in it, and goes on behind an error.
absl::Status CreateNamespaces(const config::v1::ServerConfig& config,
                              Registry* registry, const OwnMaps& own = {});

// Logs them, with all options and warnings, as the service does with others. Of a
// slot: those whose home it is, without warnings.
void LogNamespaces(const config::v1::ServerConfig& config,
                   const Registry& registry, const OwnMaps& own = {});

// Creates the namespaces that are new in `now`. An option that differs between
// `before` and `now` gets its value of `now`, or its default if it is unset
// there; options that the file did not change keep their values, also those set
// by a client. A namespace that is no longer in `now` stays, and the log says
// how to delete it. Continues after an error and returns the first; each is
// logged (namespace_not_reloaded). What was done is logged by the slot that is the
// namespace's home.
absl::Status ReloadNamespaces(const config::v1::ServerConfig& before,
                              const config::v1::ServerConfig& now,
                              Registry* registry, const OwnMaps& own = {});

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CONFIG_CONFIGURED_NAMESPACES_H_
