// The namespaces of the configuration: created at start, created or updated on
// a reload.

#ifndef TIMECACHED_SERVER_MAIN_CONFIG_CONFIGURED_NAMESPACES_H_
#define TIMECACHED_SERVER_MAIN_CONFIG_CONFIGURED_NAMESPACES_H_

#include "absl/status/status.h"
#include "server/engine/registry.h"
#include "server/rpc/admin/change.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Thread-safe functions; each costs one creation or update a namespace.

// What happened to a namespace: an AdminObserver.
void LogNamespace(const AdminChange& change);

// INVALID_ARGUMENT that names the first namespace whose name or options are
// invalid, whose dead letters would come back to it, or that needs a journal if the configuration has none.
absl::Status CheckNamespaces(const config::v1::ServerConfig& config);

// Creates all of them, or stops at the first error and returns it.
absl::Status CreateNamespaces(const config::v1::ServerConfig& config,
                              Registry* registry);

// Logs them, with all options and warnings, as the service does with others.
void LogNamespaces(const config::v1::ServerConfig& config,
                   const Registry& registry);

// Creates the namespaces that are new in `now`. An option that differs between
// `before` and `now` gets its value of `now`, or its default if it is unset
// there; options that the file did not change keep their values, also those set
// by a client. A namespace that is no longer in `now` stays, and the log says
// how to delete it. Continues after an error and returns the first; each is
// logged (namespace_not_reloaded).
absl::Status ReloadNamespaces(const config::v1::ServerConfig& before,
                              const config::v1::ServerConfig& now,
                              Registry* registry);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CONFIG_CONFIGURED_NAMESPACES_H_
