// The namespaces that the configuration names: made at the start, and made or
// changed when the configuration is read again.

#ifndef TIMECACHED_SERVER_CONFIG_CONFIGURED_NAMESPACES_H_
#define TIMECACHED_SERVER_CONFIG_CONFIGURED_NAMESPACES_H_

#include "absl/status/status.h"
#include "server/engine/registry.h"
#include "server/service/admin/change.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Thread-safe functions; each costs one creation or update a namespace.

// What happened to a namespace: an AdminObserver.
void LogNamespace(const AdminChange& change);

// INVALID_ARGUMENT that names the first namespace whose name or options are
// wrong, or that needs a journal where the configuration has none.
absl::Status CheckNamespaces(const config::v1::ServerConfig& config);

// Makes them all, or the first ones and says why not the next.
absl::Status CreateNamespaces(const config::v1::ServerConfig& config,
                              Registry* registry);

// Logs them, with all options, as the service does with others.
void LogNamespaces(const config::v1::ServerConfig& config);

// Makes what is new in `now`. Where an option differs between `before` and
// `now` it is changed to what `now` says, or to its default if `now` says
// nothing; options that the file did not change stay as they are, whoever set
// them. What is no more in `now` stays, and the log says how to delete it. Goes
// on behind an error and returns the first; each is logged
// (namespace_not_reloaded).
absl::Status ReloadNamespaces(const config::v1::ServerConfig& before,
                              const config::v1::ServerConfig& now,
                              Registry* registry);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CONFIG_CONFIGURED_NAMESPACES_H_
